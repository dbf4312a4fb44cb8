// Runtime: what an app embeds. It owns the models and some threads: one loads models and files, one
// for each target at work decodes, one ends requests that have run out of time, one calls
// subscribe()'s callback.
//
//   clients, any thread      start -> queue                 poll <- updates, result
//                                      |                             ^
//   a decode thread          install -> admit -> step -> lend; one for each target at work
//                               ^
//   the loading thread       target, draft: open, with progress; cancelled by its flag
//
// Models. The target that was loaded last serves new requests. While another one is loaded, it goes
// on serving; once the new one is ready, requests that were started on the old one, queued ones
// included, end on it, side by side with the new ones, and then it is freed. So both are in memory
// for a while: unload first where that is too much. A draft belongs to one target: when another
// target comes, the same file is loaded again for it, and a draft waits for the target that is
// being loaded. A failed load changes nothing but the status. When the process of an isolated
// target dies, the target's requests end with an error, and it is kFailed.
//
// Drafters. Those of the table (draft/drafter_table.h) need no model: every target has them.
// For a request those guess that it names; when it names none, those of automatic_drafters(). Their
// files are added or taken away between two steps; running requests go on with those that are left,
// and their results say so. A file belongs to a tokenizer: when another target comes, it is opened
// and checked anew for it. When a target is unloaded, the files that it used are closed.
//
// Memory. With remember_tokens, the text of a request that names a namespace is a source of guesses
// for later requests of that namespace that use the suffix drafter, and for no others
// (draft/suffix/suffix_memory.h): all of its tokens, also of a cancelled request, but not of one
// that failed. It belongs to a target and goes with it. Its decode thread owns it; to remember a
// text of 4,096 tokens takes it 0.009 ms.
//
// Requests. At most `slots` run at once on a target, the others wait in order of arrival. What a
// request gets does not depend on the others where the backend is bit-exact. A request that was
// admitted before a draft was there runs plain to its end, and its result says so.
//
// All functions: any thread, unless said otherwise; none waits for loading or decoding, unless said
// so. Callbacks come from a thread of their own and may call everything but the destructor.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>

#include "base/status.h"
#include "draft/drafter_table.h"
#include "request/completion_request.h"
#include "serve/completion_result.h"
#include "serve/loader.h"
#include "serve/runtime_options.h"
#include "serve/runtime_status.h"

namespace outrider {

class Engine;

class Runtime {
 public:
  using TargetWork = std::function<void(LanguageModel& target, const Engine& engine)>;

  // `loader` must outlive the runtime. Errors: kInvalidArgument for an option out of range;
  // kResourceExhausted when threads cannot be made. What folders cannot keep is forgotten: see
  // prepare_folders().
  static Result<std::unique_ptr<Runtime>> create(const RuntimeOptions& options,
                                                 ModelLoader& loader);

  // Ends what is running and loading, and joins the threads; waiting calls of poll() and run() get
  // what there is, that of a callback which is running too. No other call may be made from then on,
  // but by that callback. No callback is made after it. Not from a callback.
  ~Runtime();
  Runtime(const Runtime&) = delete;
  Runtime& operator=(const Runtime&) = delete;

  // Ends what is running and loading, and joins the threads that compute, without waiting for a
  // callback; what has been said can still be polled. Nothing can be loaded or started from then
  // on: kCancelled. For the process's end, which what computes must not outlive.
  void shut_down();

  // Keeps in folders what was read and learned, as the destructor does. For a process that ends
  // without it. REQUIRES: shut_down() has returned
  void keep_learned();

  const RuntimeOptions& options() const;

  // Begins to load a model; returns at once. A load of a target takes the place of one that is not
  // done; likewise for drafts. `options.n_sequences` is set by the runtime. A draft may come before
  // a target: it is loaded once there is one. `draft`: asked for in the same moment. A target is
  // opened for the draft that is wanted by then, where it names no head of its own.
  // Errors: kInvalidArgument (an empty path; an option out of range, about the field).
  Status load(ModelRole role, ModelOptions options,
              std::optional<ModelOptions> draft = std::nullopt);

  // Ends a load that is not done, as kFailed with a kCancelled error. kNotFound when there is
  // none.
  Status cancel_load(ModelRole role);

  // Takes the model out of service, at the end of the step that is running. A target's requests run
  // to their end first, or, with `at_once`, end with what they have. Cancels a load that is not
  // done. kNotFound when there is neither.
  Status unload(ModelRole role, bool at_once);

  // Begins to load a file for a drafter (a suffix store, an n-gram cache); returns at once. One of
  // the same path is opened anew, and works on until the new one is there. It waits for a target.
  // ngram-cache reads one file a tier; without a tier it is the static one. Errors:
  // kInvalidArgument (an empty path, a drafter that takes no files, a tier that has another file,
  // unless that failed), kResourceExhausted (kMaxDrafterFiles are there).
  Status attach(DrafterFile file);

  // Takes a file away, or calls its load off; with an empty path, all of that drafter (and tier,
  // when it names one). Running requests go on without it from their next step on. Errors:
  // kInvalidArgument as above; kNotFound when there is none.
  Status detach(const DrafterFile& file);

  RuntimeStatus status() const;
  RuntimeTotals totals() const;  // of it; needs no memory

  // The target that new requests get; null when there is none. It stays alive while it is held, so
  // whoever holds it last waits for its end.
  std::shared_ptr<const Target> target() const;
  bool has_target() const;
  // The options of the target that is being loaded, else of the one that served last; null: none
  // has. For who opens it again, here or in another runtime.
  std::shared_ptr<const ModelOptions> latest_target() const;

  // Whether no completion runs or waits, on whichever target. A result that waits to be fetched
  // does not count.
  bool is_idle() const;

  // Waits until no load, of a model or a file, is being worked on; for callers with nothing else
  // to do. False when `wait` (milliseconds, negative: no limit) ran out.
  bool wait_loaded(std::int64_t wait_ms) const;

  // Whether `n` more (>= 1) can be started now. Errors: kInvalidArgument when slots and queue never
  // have so much room; kResourceExhausted when others have it now.
  Status check_room(std::size_t n) const;

  // Errors: kInvalidArgument, about the field (request/completion_request.h); kUnsupported (no
  // chat template); kNotFound when no target is ready (the message says what state it is in);
  // kResourceExhausted when the queue is full. Tokenises on the caller's thread.
  Result<StartedCompletion> start(CompletionRequest request);

  // What is new, waiting up to `wait_ms` (>= 0) until there is anything. After the result has been
  // handed out the id is unknown. Errors: kNotFound.
  Result<PolledCompletion> poll(CompletionId id, std::int64_t wait_ms);

  // Waits up to `wait_ms` (>= 0) until one of these has something new or has ended, which poll()
  // tells, or is unknown. For who waits for several.
  void wait_any(std::span<const CompletionId> ids, std::int64_t wait_ms);

  // Ends the completion with what it has, within one step. No error when it has ended already.
  // Errors: kNotFound for an unknown id.
  Status cancel(CompletionId id);

  // start() and poll() in one: waits for the end, without a limit.
  Result<std::shared_ptr<const CompletionResult>> run(CompletionRequest request);

  // Lends the target that new requests get, and the drafters of its engine (the draft model's is
  // the first, null where there is none), to `work`, which may do with them what it likes: measure
  // passes, read texts of its own, and look at what the engine's planner has learned. Waits for it:
  // requests of that target that run come to their end first, those that wait are admitted
  // afterwards, and nothing else is computed meanwhile. The models hold no text when `work` begins,
  // and whatever it leaves in them is forgotten, so later prompts find nothing to reuse. A draft
  // that was loaded before is there.
  //
  // `work` runs on its decode thread, which has what computing threads need, and may call back in
  // only what does not wait for that thread: status(), not run(). It cannot be interrupted from
  // here, so a shut down waits for it, too. An exception out of it is an error, and costs what the
  // target's drafters know.
  // Errors: kNotFound when there is no target (any more); kCancelled when the runtime is shut down
  // first; kResourceExhausted and kInternal for an exception; the target's own when its process is
  // lost.
  Status with_idle_target(const TargetWork& work);
  // The same where no completion runs or waits; else kResourceExhausted, at once.
  Status with_free_target(const TargetWork& work);

  // From now on every event goes to `callback`, one at a time, in order, from one thread of the
  // runtime; an empty function ends it. When this returns, the one before is not running any more
  // (unless it is the caller). `wait` false: it may be, for which this does not wait; for callers
  // that are inside another runtime's callback, which could be waiting for them.
  void subscribe(std::function<void(const RuntimeEvent&)> callback, bool wait = true);

  // Empty, or which invariant is broken. For tests.
  std::string check_integrity() const;

 private:
  class Impl;
  explicit Runtime(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace outrider
