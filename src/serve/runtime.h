// Runtime: what an app embeds. It owns the models and three threads: one loads models, one decodes,
// one ends what has run out of time.
//
//   clients, any thread      start -> queue                 poll <- updates, result
//                                      |                             ^
//   the decode thread        install -> admit -> step -> publish -> expire      (runtime_loop.cc)
//                               ^
//   the loading thread       target, draft: open, with progress; cancelled by its flag
//
// Models. The target that was loaded last serves new requests. Loading another one leaves the
// running one at work; once the new one is there, requests that were started on the old one, queued
// ones included, end on it, side by side with the new ones, and then it is freed. So both are in
// memory for a while: unload first where that is too much. A draft works for one target; when
// another target comes, the same file is loaded again for that one. A draft's order waits for the
// target that is being loaded. A failed load changes nothing but the status. When a target's
// process is lost (an isolated one's), its requests end with an error, and it is kFailed.
//
// Drafters. Those of the table (draft/lookup_table.h) need no model: every target has them.
// A request is guessed for by those that it names; when it names none, by automatic_drafters().
// Files for them (suffix stores, n-gram caches) come and go like a draft, in the background and
// between two steps, and running requests go on: with what is left of the drafter, and their
// results say so. A file belongs to a tokenizer: when another target comes it is opened and checked
// anew for that one. What a target that is unloaded had at work goes with it.
//
// Memory. With remember_tokens, what was said to a request that names a namespace drafts for later
// requests of that namespace that use the suffix drafter, and for nobody else (draft/
// suffix_memory.h): all that was said, also of a text that was cancelled, but not of one that
// failed. It belongs to a target and goes with it. The decode thread owns it; to remember
// a text costs it microseconds.
//
// Requests. At most `slots` run at once on a target, the others wait in order of arrival. What a
// request gets does not depend on the others where the backend is bit-exact. A request that was
// admitted before a draft was there runs plain to its end, and its result says so.
//
// All functions: any thread, unless said otherwise; none waits for loading or decoding, unless said
// so. Callbacks come from a thread of their own and may call everything but the destructor.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/status.h"
#include "draft/lookup_table.h"
#include "engine/request.h"
#include "model/exactness.h"
#include "serve/completion_request.h"
#include "serve/loader.h"

namespace outrider {

using CompletionId = std::uint64_t;  // unique in a runtime, from 1 on

// One more drafter, of whoever embeds these layers. It guesses for requests that name it.
struct AddedDrafter {
  std::string_view name;  // static storage; no other drafter's
  // Called by the loading thread for each target; may throw std::bad_alloc. What it makes (not
  // null, of this name) is the decode thread's and ends with the target.
  std::function<std::unique_ptr<LookupDrafter>(const LookupSettings&)> make;
};

struct RuntimeOptions {
  std::int32_t slots = 4;              // requests that run at once, 1 to 64
  std::int32_t max_queue = 256;        // requests that wait, at most; >= 0
  std::int32_t prompt_chunk = 128;     // prompt tokens of a step while other texts go on, >= 1
  bool reuse_prefix = true;            // keep the state of ended texts for prompts that begin alike
  std::int64_t retention_ms = 60'000;  // how long a finished result waits to be fetched, >= 0
  // Tokens of finished texts that the suffix drafter remembers, over all namespaces (a quarter of
  // them for one at most): 0: none; else from SuffixMemory::kLeastTokens to kMostTokens.
  std::int64_t remember_tokens = 0;
  // Beside those of the table (draft/lookup_table.h). At most kMaxAddedDrafters.
  std::vector<AddedDrafter> drafters = {};
  static constexpr std::size_t kMaxAddedDrafters = 8;

  // A year: the most that those who read the options from a user let him say.
  static constexpr std::int64_t kMaxRetentionMs = 31'536'000'000;
};

enum class ModelRole { kTarget, kDraft };
enum class ModelState { kAbsent, kLoading, kReady, kFailed };

// "target", "draft"; "absent", "loading", "ready", "failed". Static storage.
std::string_view model_role_name(ModelRole role);
std::string_view model_state_name(ModelState state);

struct ModelStatus {
  ModelState state = ModelState::kAbsent;  // of the newest order; see `serving`
  std::string path;                        // of the newest order; empty: there was none
  double progress = 0.0;                   // 0 to 1
  Status error;                            // of the newest order, when it failed
  bool serving = false;           // one is at work (which a failed or running load does not change)
  std::string serving_path;       // its path
  std::optional<ModelInfo> info;  // of the one at work
  std::vector<std::string> notes;  // of the one at work
};

struct DrafterFileStatus {
  DrafterFile file;
  ModelState state =
      ModelState::kLoading;      // of the newest order; kFailed also when damage is found
  Status error;                  // when it failed
  bool serving = false;          // one is at work (which a failed order does not change)
  std::uint64_t file_bytes = 0;  // of the one at work
  // That it takes: 0 for a store, which is mapped and not read as a whole.
  std::uint64_t memory_bytes = 0;
};

// What finished texts take (RuntimeOptions::remember_tokens), of the target at work.
struct MemoryStatus {
  std::int64_t max_tokens = 0;
  std::int64_t namespaces = 0;
  std::int64_t tokens = 0;
  std::uint64_t memory_bytes = 0;
};

// Of one that is there or could be.
struct DrafterStatus {
  std::string name;
  ModelState state = ModelState::kAbsent;
  bool attached = false;  // to the target at work
  std::string path;       // of the draft model; else empty
  Status error;           // of the draft model, when it failed
  // What it holds: for its sequences, of its files what is in memory as a whole, and what it
  // remembers; of a draft model the weights.
  std::uint64_t memory_bytes = 0;
  std::vector<DrafterFileStatus> files;  // in the order in which they came
  std::optional<MemoryStatus> memory;    // of one that remembers texts, when it is to
  DrafterStats totals;                   // over all requests that have ended
};

struct RuntimeStatus {
  ModelStatus target;
  ModelStatus draft;
  std::optional<Exactness> exactness;  // of the target at work
  std::int32_t n_ctx = 0;              // of one request; 0: no target
  std::int32_t slots = 0;
  std::int64_t running = 0;  // requests
  std::int64_t queued = 0;
  std::vector<DrafterStatus> drafters;  // in the order of kDrafterNames; added ones behind
  // Since the start:
  std::int64_t started = 0;
  std::int64_t finished = 0;       // in any way
  std::int64_t prompt_tokens = 0;  // evaluated
  std::int64_t cached_tokens = 0;  // reused
  std::int64_t generated_tokens = 0;
  std::int64_t drafted_tokens = 0;
  std::int64_t accepted_tokens = 0;
  std::int64_t steps = 0;  // target evaluations that gave text, over all requests
};

// How a completion ended before its own end.
enum class EndedBy { kItself, kClient, kTimeout, kUnload, kShutdown };
std::string_view ended_by_name(EndedBy by);  // "itself", "client", "timeout", "unload", "shutdown"

// What became of a text that was to be remembered.
struct Remembered {
  std::string name_space;
  std::int64_t tokens = 0;  // of the text; 0: see `reason`
  std::string reason;       // why it is not remembered; empty: it is
};

// A completion and where it came from.
struct CompletionResult {
  Completion completion;
  Exactness exactness;
  KernelUse kernels;  // of the target
  std::string model;  // path of the target
  PromptStats prompt;
  EndedBy ended_by = EndedBy::kItself;
  bool shifted = false;                  // the context was full and was shifted (shift_keep)
  std::optional<Remembered> remembered;  // of a request that named a namespace
};

struct StartedCompletion {
  CompletionId id = 0;
  PromptStats prompt;
};

// A token of the text as clients see it.
struct SaidToken {
  Token id = kNoToken;
  std::string text;     // the bytes it adds; "" for control tokens
  std::string_view by;  // "target", or the drafter whose guess it was; static storage
  std::optional<TokenLogprob> logprob;  // when they were asked for
};

struct PolledCompletion {
  std::vector<SaidToken> tokens;                   // since the last poll
  bool finished = false;                           // true with `result`
  double prompt_progress = 0.0;                    // 0 to 1
  std::shared_ptr<const CompletionResult> result;  // once finished; all tokens are out then
};

struct ModelEvent {
  ModelRole role = ModelRole::kTarget;
  ModelStatus status;
};

struct DrafterEvent {
  DrafterFileStatus file;
  bool attached = true;  // false: it was taken away
};

struct CompletionEvent {
  CompletionId id = 0;
  std::vector<SaidToken> tokens;
  std::shared_ptr<const CompletionResult> result;  // with the last one; else null
};

// Exactly one of them is set.
struct RuntimeEvent {
  std::optional<ModelEvent> model;
  std::optional<DrafterEvent> drafter;
  std::optional<CompletionEvent> completion;
};

class Runtime {
 public:
  // `loader` must outlive the runtime. Errors: kInvalidArgument for an option out of range;
  // kResourceExhausted when threads cannot be made.
  static Result<std::unique_ptr<Runtime>> create(const RuntimeOptions& options,
                                                 ModelLoader& loader);

  // Ends what is running and loading, and joins the threads; waiting calls of poll() and run() get
  // what there is. No other call may be made from then on. No callback is made after it. Not from a
  // callback.
  ~Runtime();
  Runtime(const Runtime&) = delete;
  Runtime& operator=(const Runtime&) = delete;

  // Ends what is running and loading, and joins the threads that compute, without waiting for a
  // callback; what has been said can still be polled. Nothing can be ordered or started from then
  // on: kCancelled. For the process's end, which what computes must not outlive.
  void shut_down();

  const RuntimeOptions& options() const;

  // Orders a model; returns at once. An order for a target takes the place of one that is not done;
  // likewise for drafts. `options.n_sequences` is set by the runtime. A draft may be ordered before
  // a target: it is loaded once there is one.
  // Errors: kInvalidArgument (an empty path).
  Status load(ModelRole role, ModelOptions options);

  // Ends an order that is not done, as kFailed with a kCancelled error. kNotFound when there is
  // none.
  Status cancel_load(ModelRole role);

  // Takes the model out of service, at the end of the step that is running. A target's requests run
  // to their end first, or, with `at_once`, end with what they have. Cancels an order that is not
  // done. kNotFound when there is neither.
  Status unload(ModelRole role, bool at_once);

  // Orders a file for a drafter; returns at once. One of the same path is opened anew, and works on
  // until the new one is there. It waits until there is a target. ngram-cache reads one file a
  // tier; without a tier it is the static one. Errors: kInvalidArgument (an empty path, a drafter
  // that takes no files, a tier that has another file, unless that failed), kResourceExhausted
  // (kMaxDrafterFiles are there).
  static constexpr std::size_t kMaxDrafterFiles = 64;
  Status attach(DrafterFile file);

  // Takes a file away, or calls its order off; with an empty path, all of that drafter (and tier,
  // when it names one). Running
  // requests go on without it from their next step on. Errors: kInvalidArgument as above; kNotFound
  // when there is none.
  Status detach(const DrafterFile& file);

  RuntimeStatus status() const;

  // The target that new requests get; null when there is none. It stays alive while it is held.
  std::shared_ptr<const Target> target() const;

  // Waits until no order, of a model or a file, is being worked on; for callers with nothing else
  // to do. False when `wait` (milliseconds, negative: for ever) ran out.
  bool wait_loaded(std::int64_t wait_ms) const;

  // Errors: kInvalidArgument naming the option as `run` spells it ("--top-p"); kUnsupported (no
  // chat template); kNotFound when no target is ready (the message says what state it is in);
  // kResourceExhausted when the queue is full. Tokenises on the caller's thread.
  Result<StartedCompletion> start(CompletionRequest request);

  // What is new, waiting up to `wait_ms` (>= 0) until there is anything. After the result has been
  // handed out the id is unknown. Errors: kNotFound.
  Result<PolledCompletion> poll(CompletionId id, std::int64_t wait_ms);

  // Ends it with what it has, within one step. Fine when it has ended already. Errors: kNotFound
  // for an unknown id.
  Status cancel(CompletionId id);

  // Both in one: waits to the end, for ever.
  Result<std::shared_ptr<const CompletionResult>> run(CompletionRequest request);

  // From now on every event goes to `callback`, one at a time, in order, from one thread of the
  // runtime; an empty function ends it. When this returns, the one before is not running any more
  // (unless it is the caller).
  void subscribe(std::function<void(const RuntimeEvent&)> callback);

  // Empty, or which invariant is broken. For tests.
  std::string check_integrity() const;

 private:
  class Impl;
  explicit Runtime(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace outrider
