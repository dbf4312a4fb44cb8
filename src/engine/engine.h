// Engine: requests in, steps, updates out.
//
// One thread owns an engine and its models; only cancel() may be called from others. add() never
// computes; all work is done by step().
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "base/status.h"
#include "draft/drafter.h"
#include "engine/request.h"
#include "engine/sequence.h"
#include "model/language_model.h"
#include "model/vocabulary.h"

namespace outrider {

class Engine {
 public:
  // All arguments must outlive the engine. `drafters` propose in this order (at most 32).
  Engine(LanguageModel& target, const Vocabulary& vocabulary, std::vector<Drafter*> drafters);
  ~Engine();
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  // Takes a request into a free sequence of the target.
  // Errors: kInvalidArgument (empty prompt, an id outside the vocabulary, a prompt that leaves no
  // room in the context, an empty stop string, width < 1, max_tokens < -1, no sampler);
  // kResourceExhausted when all sequences are taken. Nothing has changed then.
  Result<RequestId> add(Request request);

  // What add() would say about a prompt.
  Status check_prompt(std::span<const Token> prompt) const;

  // True while any request is running.
  bool busy() const { return !sequences_.empty(); }

  // One step for all running requests. Never blocks when idle. Whatever fails ends up in the
  // completion of the request that it concerns, as FinishReason::kError. At least one token of
  // progress (a prompt's chunk or a token of text) for each running request, unless interrupted.
  std::vector<Update> step();

  // The completion of a request whose Update said `finished`, once. kNotFound otherwise.
  Result<Completion> take(RequestId id);

  // Ends a request with what it has; it finishes in the step that is running, or in the next one.
  // Any thread. Unknown ids are ignored: the request may just have ended.
  void cancel(RequestId id);

  // Empty when the models' states are what the texts say, else what differs. Between steps.
  std::string check_integrity() const;

 private:
  void set_interrupt(const std::atomic<bool>* flag);
  void apply_cancels();
  void retire(std::vector<Update>& updates);
  Completion complete(Sequence& sequence);

  LanguageModel& target_;
  const Vocabulary& vocabulary_;
  std::vector<Drafter*> drafters_;
  std::vector<std::unique_ptr<Sequence>> sequences_;  // running, oldest first
  std::vector<Completion> done_;                      // finished, not taken
  std::vector<SeqId> free_;                           // sequences of the target not in use
  RequestId next_id_ = 1;

  std::mutex cancel_mutex_;  // guards cancels_
  std::vector<RequestId> cancels_;
  std::atomic<bool> interrupt_{false};  // raised with cancels_; read inside the target's evaluate
};

}  // namespace outrider
