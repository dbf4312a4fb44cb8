#include "engine/engine.h"

#include <algorithm>
#include <cassert>

#include "engine/step.h"

namespace outrider {

Sequence::Sequence(RequestId request_id, SeqId seq_id, Request r, std::int64_t n_ctx)
    : text(r.prompt),
      id(request_id),
      seq(seq_id),
      request(std::move(r)),
      n_prompt(static_cast<std::int64_t>(text.size())),
      output({.stop = request.stop,
              .max_tokens = request.max_tokens,
              .context_tokens = n_ctx - static_cast<std::int64_t>(text.size())}) {}

Engine::Engine(LanguageModel& target, const Vocabulary& vocabulary, std::vector<Drafter*> drafters)
    : target_(target), vocabulary_(vocabulary), drafters_(std::move(drafters)) {
  assert(drafters_.size() <= 32);
  for (SeqId seq = target.capabilities().n_sequences; seq > 0; --seq) free_.push_back(seq - 1);
  set_interrupt(&interrupt_);
}

Engine::~Engine() { set_interrupt(nullptr); }

void Engine::set_interrupt(const std::atomic<bool>* flag) {
  target_.set_interrupt(flag);
  for (Drafter* drafter : drafters_) drafter->set_interrupt(flag);
}

namespace {

Status check_request(const Request& r) {
  for (const std::string& stop : r.stop) {
    if (stop.empty())
      return invalid_argument("a stop string is empty; give at least one character");
  }
  if (r.width < 1) {
    return invalid_argument("--width is " + std::to_string(r.width) +
                            ", but must be at least 1 (1 is no speculation)");
  }
  if (r.max_tokens < -1) {
    return invalid_argument("--max-tokens is " + std::to_string(r.max_tokens) +
                            ", but must be at least 0, or -1 for no limit");
  }
  OUTRIDER_RETURN_IF_ERROR(validate(r.draft));
  if (r.rule == AcceptanceRule::kBlock && r.draft.branches > 1) {
    return invalid_argument("--branches is " + std::to_string(r.draft.branches) +
                            ", but must be 1 with --rule block, which judges chains");
  }
  if (r.logprobs < -1 || r.logprobs > 20) {
    return invalid_argument("--logprobs is " + std::to_string(r.logprobs) +
                            ", but must be from 0 to 20");
  }
  if (!r.sampler) return invalid_argument("the request has no sampler");
  return Status();
}

}  // namespace

Status Engine::check_prompt(std::span<const Token> prompt) const {
  const Capabilities& caps = target_.capabilities();
  if (prompt.empty()) return invalid_argument("the prompt is empty; it needs at least one token");
  for (const Token token : prompt) {
    if (token >= 0 && token < caps.n_vocab) continue;
    return invalid_argument("prompt token " + std::to_string(token) +
                            " is outside the vocabulary of " + std::to_string(caps.n_vocab));
  }
  if (prompt.size() < static_cast<std::size_t>(caps.n_ctx)) return Status();
  return invalid_argument("the prompt has " + std::to_string(prompt.size()) +
                          " tokens, but the context holds " + std::to_string(caps.n_ctx) +
                          " and needs room for an answer; give a larger --ctx or a shorter prompt");
}

Result<RequestId> Engine::add(Request request) {
  const Capabilities& caps = target_.capabilities();
  OUTRIDER_RETURN_IF_ERROR(check_prompt(request.prompt));
  OUTRIDER_RETURN_IF_ERROR(check_request(request));
  if (free_.empty()) {
    return resource_exhausted("all " + std::to_string(caps.n_sequences) +
                              " sequences are in use; wait for one to end");
  }
  const SeqId seq = free_.back();
  OUTRIDER_RETURN_IF_ERROR(target_.truncate(seq, 0));
  std::unique_ptr<Sequence> s =
      std::make_unique<Sequence>(next_id_, seq, std::move(request), caps.n_ctx);
  s->stats.rule = s->request.rule;
  s->stats.reason = s->request.speculation_off_reason;
  const bool can_roll_back = caps.rollback != Rollback::kNone;
  s->stats.enabled = !drafters_.empty() && s->request.speculative && s->request.width > 1 &&
                     caps.max_width > 1 && can_roll_back;
  if (!can_roll_back && s->stats.reason.empty()) s->stats.reason = caps.rollback_reason;
  for (Drafter* drafter : drafters_) {
    if (!s->stats.enabled) break;
    s->stats.drafters.push_back({.name = std::string(drafter->name())});
    const Status status = drafter->begin(seq);
    if (status.ok()) continue;
    s->stats.enabled = false;
    s->stats.reason = std::string(drafter->name()) + " failed: " + status.message();
  }
  s->request.sampler->begin(s->text, s->request.seed);
  free_.pop_back();
  sequences_.push_back(std::move(s));
  return next_id_++;
}

void Engine::cancel(RequestId id) {
  const std::lock_guard<std::mutex> lock(cancel_mutex_);
  cancels_.push_back(id);
  interrupt_.store(true);
}

void Engine::apply_cancels() {
  const std::lock_guard<std::mutex> lock(cancel_mutex_);
  interrupt_.store(false);
  for (const std::unique_ptr<Sequence>& s : sequences_) {
    if (std::find(cancels_.begin(), cancels_.end(), s->id) != cancels_.end()) {
      s->output.finish(FinishReason::kCancelled);
    }
  }
  cancels_.clear();
}

namespace {

// Who takes part: texts that only miss their last token first, then as much of the prompts (and of
// what a target that cannot drop a part of its state has to read again), oldest first, as the batch
// has room for. Chunks end at multiples of the batch size where they can, so that a prompt is cut
// in the same places whatever else runs.
std::vector<Part> choose_parts(const LanguageModel& target,
                               std::span<const std::unique_ptr<Sequence>> sequences) {
  std::vector<Part> parts;
  const std::int64_t n_batch = target.capabilities().n_batch;
  std::int64_t room = n_batch;
  for (const bool reading : {false, true}) {
    for (const std::unique_ptr<Sequence>& s : sequences) {
      const Pos seen = target.length(s->seq);
      const std::span<const Token> unseen = s->unseen(seen);
      const std::int64_t missing = static_cast<std::int64_t>(unseen.size());
      if (s->over() || (missing > 1) != reading || room == 0) continue;
      const std::int64_t to_boundary = n_batch - seen % n_batch;
      const std::int64_t n = std::min({missing, to_boundary, room});
      room -= n;
      const bool ready = n == missing;
      parts.push_back({.sequence = s.get(),
                       .seen = seen,
                       .prefix = unseen.first(static_cast<std::size_t>(ready ? n - 1 : n)),
                       .ready = ready});
      if (s->started) continue;
      s->started = true;
      s->waited_ms = s->age.elapsed_ms();
    }
  }
  return parts;
}

}  // namespace

std::vector<Update> Engine::step() {
  std::vector<Update> updates;
  apply_cancels();
  Step step{.target = target_, .vocabulary = vocabulary_, .drafters = drafters_};
  step.parts = choose_parts(target_, sequences_);
  if (!step.parts.empty()) {
    propose(step);
    plan(step);
    evaluate(step);
    verify(step);
    commit(step);
    emit(step, updates);
  }
  retire(updates);
  return updates;
}

// Moves what is finished to done_ and frees its sequence. Requests that took no part (cancelled, or
// finished at once) get their last update here.
void Engine::retire(std::vector<Update>& updates) {
  for (std::unique_ptr<Sequence>& s : sequences_) {
    if (!s->over()) continue;
    const bool told = std::any_of(updates.begin(), updates.end(),
                                  [&](const Update& u) { return u.id == s->id && u.finished; });
    if (!told) {
      updates.push_back({.id = s->id, .pieces = s->output.take(), .finished = true});
    }
    done_.push_back(complete(*s));
    for (Drafter* drafter : drafters_) drafter->end(s->seq);
    // Truncating to nothing always works; a model that is gone for good holds nothing any more
    // (LanguageModel::truncate).
    const Status cleared = target_.truncate(s->seq, 0);
    assert(cleared.ok() || target_.length(s->seq) == 0);
    (void)cleared;
    free_.push_back(s->seq);
    s.reset();
  }
  std::erase(sequences_, nullptr);
}

Completion Engine::complete(Sequence& s) {
  return {.id = s.id,
          .text = s.output.text(),
          .tokens = s.output.tokens(),
          .finish = s.output.finish_reason(),
          .stop = s.output.stop(),
          .error = s.error,
          .seed = s.request.seed,
          .logprobs = std::move(s.logprobs),
          .has_logprobs = s.request.logprobs >= 0,
          .prompt_tokens = s.n_prompt,
          .cached_tokens = 0,
          .timings = s.timings,
          .speculation = std::move(s.stats)};
}

Result<Completion> Engine::take(RequestId id) {
  for (std::size_t i = 0; i < done_.size(); ++i) {
    if (done_[i].id != id) continue;
    Completion completion = std::move(done_[i]);
    done_.erase(done_.begin() + static_cast<std::ptrdiff_t>(i));
    return completion;
  }
  return not_found("request " + std::to_string(id) + " is not finished, or was taken already");
}

std::string Engine::check_integrity() const {
  for (const std::unique_ptr<Sequence>& s : sequences_) {
    const std::string where = "request " + std::to_string(s->id) + ": ";
    const std::int64_t seen = target_.length(s->seq);
    const std::int64_t size = static_cast<std::int64_t>(s->text.size());
    if (seen >= size) return where + "the target has seen the token that it is to see next";
    const bool may_lag = target_.capabilities().rollback != Rollback::kAny;
    if (s->answered && seen != size - 1 && !may_lag) {
      return where + "the target holds " + std::to_string(seen) + " of " + std::to_string(size) +
             " tokens, not all but the last";
    }
    if (size != s->n_prompt + static_cast<std::int64_t>(s->output.tokens().size())) {
      return where + "text and output differ in length";
    }
  }
  for (const SeqId seq : free_) {
    if (target_.length(seq) != 0) return "free sequence " + std::to_string(seq) + " is not empty";
  }
  return "";
}

}  // namespace outrider
