#include "engine/engine.h"

#include <algorithm>
#include <cassert>
#include <limits>

#include "engine/schedule.h"
#include "engine/step.h"

namespace outrider {

Sequence::Sequence(RequestId request_id, SeqId seq_id, Request r, std::int64_t n_ctx)
    : text(r.prompt),
      noise_seed(r.seed),
      id(request_id),
      seq(seq_id),
      request(std::move(r)),
      n_prompt(static_cast<std::int64_t>(text.size())),
      output({.stop = request.stop,
              .max_tokens = request.max_tokens,
              .context_tokens = request.shift_keep >= 0
                                    ? std::numeric_limits<std::int64_t>::max()
                                    : n_ctx - static_cast<std::int64_t>(text.size())}) {}

std::int64_t Sequence::remaining() const {
  if (request.max_tokens < 0) return std::numeric_limits<std::int64_t>::max();
  return request.max_tokens - static_cast<std::int64_t>(output.tokens().size());
}

void Sequence::drop_drafter(std::size_t drafter, const std::string& reason) {
  drafters &= ~(DrafterMask{1} << drafter);
  stats.reason = reason;
  stats.enabled = stats.enabled && drafters != 0;
}

void Sequence::drop_failed(std::size_t drafter, std::string_view name, const Status& why) {
  drop_drafter(drafter, std::string(name) + " failed: " + why.message());
}

Engine::Engine(LanguageModel& target, const Vocabulary& vocabulary, std::vector<Drafter*> drafters,
               const EngineOptions& options)
    : target_(target),
      vocabulary_(vocabulary),
      drafters_(std::move(drafters)),
      options_(options),
      prompts_(options.prompt_chunk, options.prompt_share) {
  planner_.set_target_cost(CostCurve(options_.costs.points, options_.costs.rebuild_ms));
  assert(drafters_.size() <= kMaxDrafters && options_.prompt_chunk >= 1);
  assert(options_.prompt_share > 0.0);
  for (std::size_t d = 0; d < drafters_.size(); ++d) {
    const Drafter* const drafter = drafters_[d];
    names_.push_back(drafter == nullptr ? std::string_view() : drafter->name());
    if (drafter != nullptr) planner_.account(d).set_at_once(drafter->guesses_at_once());
  }
  const std::int32_t n_sequences = target.capabilities().n_sequences;
  sequences_.reserve(static_cast<std::size_t>(n_sequences));
  for (SeqId seq = 0; seq < n_sequences; ++seq) idle_.put(seq, {});
  set_interrupt(&interrupt_);
}

Engine::~Engine() { set_interrupt(nullptr); }

void Engine::set_interrupt(const std::atomic<bool>* flag) {
  target_.set_interrupt(flag);
  for (Drafter* drafter : drafters_) {
    if (drafter != nullptr) drafter->set_interrupt(flag);
  }
}

namespace {

Status check_options(const Request& r) {
  for (const std::string& stop : r.stop) {
    if (stop.empty())
      return invalid_argument("a stop string is empty; give at least one character");
  }
  if (!kWidthRange.contains(r.width) && r.width != kAutoWidth) {
    return out_of_range("width", r.width, kWidthRange, {}, /*whole=*/true);
  }
  if (!kMaxTokensRange.contains(r.max_tokens)) {
    return out_of_range("max_tokens", r.max_tokens, kMaxTokensRange, {}, /*whole=*/true);
  }
  OUTRIDER_RETURN_IF_ERROR(validate(r.draft));
  OUTRIDER_RETURN_IF_ERROR(check_branches(r.rule, r.draft.branches));
  if (!kLogprobsRange.contains(r.logprobs)) {
    return out_of_range("logprobs", r.logprobs, kLogprobsRange, {}, /*whole=*/true);
  }
  if (!r.sampler) return invalid_argument("the request has no sampler");
  return Status();
}

}  // namespace

Status check_prompt(const Capabilities& caps, std::span<const Token> prompt) {
  if (prompt.empty()) {
    return invalid_argument("the prompt is empty; it needs at least one token").about("prompt");
  }
  for (const Token token : prompt) {
    if (token >= 0 && token < caps.n_vocab) continue;
    return invalid_argument("prompt token " + std::to_string(token) +
                            " is outside the vocabulary of " + std::to_string(caps.n_vocab))
        .about("prompt");
  }
  if (prompt.size() < static_cast<std::size_t>(caps.n_ctx)) return Status();
  return invalid_argument(
             "the prompt has " + std::to_string(prompt.size()) +
             " tokens, which exceeds the available context size of " + std::to_string(caps.n_ctx) +
             " less room for an answer; give a larger context (ctx, -c) or a shorter prompt")
      .about("prompt")
      .over({.count = static_cast<std::int64_t>(prompt.size()), .limit = caps.n_ctx});
}

Status check_request(const Capabilities& caps, const Request& request) {
  OUTRIDER_RETURN_IF_ERROR(check_prompt(caps, request.prompt));
  return check_options(request);
}

Result<RequestId> Engine::add(Request request) {
  const Capabilities& caps = target_.capabilities();
  OUTRIDER_RETURN_IF_ERROR(check_request(caps, request));
  const std::optional<IdleTexts::Choice> choice =
      idle_.choose(request.prompt, prefix_use(caps), running_texts(),
                   static_cast<std::size_t>(options_.least_awaited));
  if (!choice) {
    return resource_exhausted("all " + std::to_string(caps.n_sequences) +
                              " sequences are in use; wait for one to end");
  }
  std::unique_ptr<Sequence> s =
      std::make_unique<Sequence>(next_id_, choice->seq, std::move(request), caps.n_ctx);
  wait_for(*s, *choice);
  {
    const std::lock_guard<std::mutex> lock(cancel_mutex_);
    cancels_.reserve(cancels_.size() + static_cast<std::size_t>(caps.n_sequences));
  }
  s->request.sampler->begin(s->text, s->request.seed);
  begin(*s, *choice);
  idle_.remove(choice->seq);
  sequences_.push_back(std::move(s));  // there is room for as many as the target has sequences
  return next_id_++;
}

std::optional<std::size_t> Engine::find_drafter(std::string_view name) const {
  for (std::size_t d = 0; d < drafters_.size(); ++d) {
    if (drafters_[d] != nullptr && drafters_[d]->name() == name) return d;
  }
  return std::nullopt;
}

Status Engine::attach(Drafter* drafter) {
  std::vector<Drafter*>::iterator place =
      std::find(drafters_.begin(), drafters_.end(), static_cast<Drafter*>(nullptr));
  if (place == drafters_.end()) {
    if (drafters_.size() == kMaxDrafters) {
      return resource_exhausted("there are " + std::to_string(kMaxDrafters) +
                                " drafters already; detach one first");
    }
    names_.reserve(drafters_.size() + 1);
    place = drafters_.insert(place, nullptr);
    names_.resize(drafters_.size());
  }
  *place = drafter;
  const std::size_t d = static_cast<std::size_t>(place - drafters_.begin());
  planner_.forget(d);
  planner_.account(d).set_at_once(drafter->guesses_at_once());
  names_[d] = drafter->name();
  drafter->set_interrupt(&interrupt_);
  return Status();
}

void Engine::detach(Drafter* drafter, const std::string& reason) {
  const std::vector<Drafter*>::iterator place =
      std::find(drafters_.begin(), drafters_.end(), drafter);
  if (place == drafters_.end()) return;
  const std::size_t d = static_cast<std::size_t>(place - drafters_.begin());
  for (const std::unique_ptr<Sequence>& s : sequences_) {
    if (s->asks(d)) s->drop_drafter(d, reason);
  }
  for (SeqId seq = 0; seq < target_.capabilities().n_sequences; ++seq) drafter->end(seq);
  drafter->set_interrupt(nullptr);
  *place = nullptr;
}

// A piece may be held back (half a character, the beginning of a stop string) until after its
// drafter is gone.
std::string_view Engine::name_of(std::int32_t by) const {
  if (by == kByTarget || by < 0 || static_cast<std::size_t>(by) >= names_.size()) return "target";
  return names_[static_cast<std::size_t>(by)];
}

double Engine::prompt_progress(RequestId id) const {
  for (const std::unique_ptr<Sequence>& s : sequences_) {
    if (s->id != id || s->answered) continue;
    return std::min(1.0,
                    static_cast<double>(target_.length(s->seq)) / static_cast<double>(s->n_prompt));
  }
  return 1.0;
}

void Engine::cancel(RequestId id) {
  const std::lock_guard<std::mutex> lock(cancel_mutex_);
  cancels_.push_back(id);
  if (may_interrupt_.load()) interrupt_.store(true);
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

std::vector<Update> Engine::step() {
  std::vector<Update> updates;
  // A target that cannot take back what it read loses the other texts of a pass that is
  // interrupted, and would read them again: there a cancel waits for the pass.
  const bool keeps_texts = target_.capabilities().rollback == Rollback::kAny;
  if (!keeps_texts && sequences_.size() > 1) may_interrupt_.store(false);
  apply_cancels();
  shift_full_contexts();
  make_room();
  const NowMs* clock = options_.now_ms ? &options_.now_ms : nullptr;
  const Stopwatch watch(clock);
  Step step{.target = target_,
            .vocabulary = vocabulary_,
            .drafters = drafters_,
            .planner = planner_,
            .clock = clock,
            .planned_width = options_.planned_width,
            .prompts = &prompts_,
            .forget_oldest = [this] { return forget_oldest(); }};
  step.parts = choose_parts(target_, sequences_, prompts_, division_);
  if (!step.parts.empty()) {
    prepare(step);
    propose(step);
    plan(step);
    evaluate(step);
    verify(step);
    commit(step);
    learn(step);
    emit(step, updates);
    const double ms = watch.elapsed_ms();
    planner_.note_step(ms);
    note_prompts(step, ms);
  }
  may_interrupt_.store(!step.interrupted);
  end_those_that_only_read();
  share_awaited();
  retire(updates);
  return updates;
}

// What texts that go on lost to prompts, and to what drafters read of them. What the pass would
// have taken without them is known of most widths; where it is not, they are charged in proportion.
void Engine::note_prompts(const Step& step, double ms) {
  if (step.n_text == 0 || step.interrupted) return;
  if (step.n_prompt == 0) return prompts_.note(ms, 0.0, 0, step.reading_ms);
  const CostCurve& costs = planner_.target_cost();
  const double without = costs.noted(step.n_text) > 0
                             ? std::min(costs.ms(step.n_text), step.evaluate_ms)
                             : step.evaluate_ms * step.n_text / (step.n_text + step.n_prompt);
  prompts_.note(ms, step.evaluate_ms - without, step.n_prompt, step.reading_ms);
}

// Moves what is finished to done_ and frees its sequence. Requests that took no part (cancelled, or
// finished at once) get their last update here.
void Engine::retire(std::vector<Update>& updates) {
  for (std::unique_ptr<Sequence>& s : sequences_) {
    if (!s->over()) continue;
    const bool told = std::any_of(updates.begin(), updates.end(),
                                  [&](const Update& u) { return u.id == s->id && u.finished; });
    if (!told) {
      updates.push_back(next_update(*s));
      updates.back().finished = true;
    }
    // One that its client left counts as ended: nobody wanted what would have come.
    const bool at_limit = s->output.finish_reason() == FinishReason::kLength;
    if (s->answered) planner_.note_text(s->stats.emitted, at_limit);
    std::vector<Token> text = std::move(s->text);
    const bool keep = options_.reuse_prefix && s->error.ok();
    done_.push_back(complete(*s));
    if (keep) {
      rest(*s, text);
    } else {
      forget(s->seq);
    }
    text.resize(static_cast<std::size_t>(target_.length(s->seq)));
    idle_.put(s->seq, std::move(text));
    s.reset();
  }
  std::erase(sequences_, nullptr);
}

Completion Engine::complete(Sequence& s) {
  std::erase_if(s.stats.drafters, [](const DrafterStats& d) { return d.name.empty(); });
  return {.id = s.id,
          .text = s.output.text(),
          .tokens = s.output.tokens(),
          .finish = s.output.finish_reason(),
          .stop = s.output.stop(),
          // A text that was whole before its last tokens could not be kept has not failed.
          .error = s.output.finish_reason() == FinishReason::kError ? s.error : Status(),
          .seed = s.request.seed,
          .logprobs = std::move(s.logprobs),
          .has_logprobs = s.request.logprobs >= 0,
          .shifts = s.shifts,
          .prompt_tokens = s.n_prompt,
          .cached_tokens = s.cached_tokens,
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
    const bool may_lag = target_.capabilities().rollback != Rollback::kAny || s->shifts > 0;
    if (s->answered && seen != size - 1 && !may_lag) {
      return where + "the target holds " + std::to_string(seen) + " of " + std::to_string(size) +
             " tokens, not all but the last";
    }
    if (size + s->n_dropped != s->n_prompt + static_cast<std::int64_t>(s->output.tokens().size())) {
      return where + "text and output differ in length";
    }
  }
  for (const IdleTexts::Entry& idle : idle_.entries()) {
    if (target_.length(idle.seq) == static_cast<Pos>(idle.text().size())) continue;
    return "idle sequence " + std::to_string(idle.seq) + " holds another text than it is known for";
  }
  if (idle_.entries().size() + sequences_.size() !=
      static_cast<std::size_t>(target_.capabilities().n_sequences)) {
    return "a sequence of the target is lost";
  }
  return "";
}

}  // namespace outrider
