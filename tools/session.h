// Session: the models of one call of a command, opened and put together.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/log.h"
#include "base/status.h"
#include "draft/recycle/recycle.h"
#include "draft/suffix/suffix_drafter.h"
#include "engine/engine.h"
#include "lab/prompt_file.h"
#include "model/exactness.h"
#include "model/model_options.h"
#include "serve/experiences.h"
#include "serve/loader.h"
#include "tools/ngram_options.h"
#include "tools/progress.h"
#include "tools/signals.h"

namespace outrider::tools {

struct SessionOptions {
  // Its `widest` is the widest step that will be asked for; the settings of --exact on depend on
  // it, so give the same with and without speculation.
  ModelOptions target;
  std::optional<ModelOptions> draft;
  bool suffix = false;                     // the suffix drafter, behind the draft model
  std::vector<std::string> suffix_stores;  // files that it looks things up in
  bool recycle = false;                    // guess from what the target found likely before
  std::optional<NgramArguments> ngrams;    // the drafter ngram-cache, with its files
  bool speculation = true;                 // false: only single steps will be asked for
  bool planned = false;                    // what steps cost here is wanted, to choose widths by
  bool widest_is_wish = true;  // false: the planner chooses, and a narrower target is no news
  bool refresh_costs = false;  // what steps cost is measured although it is known
  bool whole_probe = false;    // the probe takes all the time that it needs
  std::vector<Drafter*> other_drafters;  // asked after all of these; must outlive the session
};

// What the opening needs of its caller.
struct SessionHooks {
  ProgressBar& progress;
  const SignalWatch& signals;  // a signal ends the loading with kCancelled
  LogSink log;                 // llama.cpp's own lines; may be empty
};

class Session {
 public:
  // Opens the target, then the draft model, and checks that they fit. Takes seconds.
  // Errors: what the adapter gives, with the file's name; kUnsupported for a draft model whose
  // vocabulary shares too little with the target's; what SuffixStore::open,
  // StoreFile::check_tokenizer and open_ngram_drafting give.
  static Result<std::unique_ptr<Session>> open(const SessionOptions& options,
                                               const SessionHooks& hooks);
  ~Session();
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  Engine& engine() { return *engine_; }
  const Engine& engine() const { return *engine_; }
  const LanguageModel& target() const { return target_->model(); }
  // To measure it. REQUIRES: the engine is not busy
  LanguageModel& idle_target() { return target_->model(); }
  const ModelInfo& target_info() const { return target_->info(); }
  const ModelInfo* draft_info() const { return draft_ ? &draft_->info() : nullptr; }
  const Vocabulary& vocabulary() const { return target_->vocabulary(); }
  const Exactness& exactness() const { return target_->exactness(); }

  // Null without the drafter ngram-cache.
  NgramDrafting* ngrams() { return ngrams_ ? &*ngrams_ : nullptr; }

  // What the user should know although it works: "the context is larger than ...".
  const std::vector<std::string>& warnings() const { return warnings_; }

  // A request of at most `width` tokens a step; 1: no speculation.
  Result<Request> request(std::vector<Token> prompt, const SamplingOptions& sampling,
                          std::uint64_t seed, std::int32_t width) const;

  // The tokens of a prompt: a text as it is, or a conversation by the model's own chat template.
  // Errors: kInvalidArgument (not UTF-8), kUnsupported (no template).
  Result<std::vector<Token>> tokenize(std::string_view text) const;
  Result<std::vector<Token>> tokenize(const std::vector<ChatMessage>& messages) const;
  // All prompts as tokens, so that a mistake in the last one is found before the first is run. With
  // `chat` texts are a user's messages. Also the errors of check_prompt(); each names the prompt.
  Result<std::vector<std::vector<Token>>> tokenize(std::span<const lab::Prompt> prompts,
                                                   bool chat) const;

 private:
  Session() = default;
  Status open_lookups(const SessionOptions& options, std::vector<Drafter*>& drafters);
  Status open_suffix(const SessionOptions& options);
  void collect_warnings(const SessionOptions& options);
  void recall_experience();

  std::shared_ptr<Target> target_;
  std::unique_ptr<Draft> draft_;
  std::unique_ptr<SuffixDrafter> suffix_;
  std::unique_ptr<RecycleDrafter> recycle_;
  std::optional<NgramDrafting> ngrams_;
  std::unique_ptr<Engine> engine_;
  std::optional<Experiences> experiences_;  // of its drafters
  std::vector<std::string> warnings_;
  std::string off_reason_;  // why no step may hold more than one token; empty: it may
};

// Runs one request to its end, on this thread. `on_update` gets each update and returns false to
// end it; a signal ends it too, both as FinishReason::kCancelled. While a prompt of several batches
// is read, `progress` shows how far, and is cleared when the first text comes.
// Errors: what Engine::add gives. A failure on the way is in the completion.
Result<Completion> generate(Session& session, Request request, SignalWatch& signals,
                            ProgressBar& progress,
                            const std::function<bool(const Update&)>& on_update);

}  // namespace outrider::tools
