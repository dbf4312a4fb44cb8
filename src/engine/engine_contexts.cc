// What the target's sequences hold between requests, what a text begins with, and what gives way
// when they are full.
#include <algorithm>
#include <cassert>
#include <new>

#include "base/random.h"
#include "engine/engine.h"
#include "engine/step_width.h"

namespace outrider {

IdleTexts::Use prefix_use(const Capabilities& target) {
  if (target.rollback != Rollback::kAny) return IdleTexts::Use::kWhole;
  return target.can_share ? IdleTexts::Use::kShared : IdleTexts::Use::kOwn;
}

// Cuts what `seq` holds to its first `kept` tokens, or to nothing where that does not work. Returns
// what is left.
std::size_t Engine::take_over(SeqId seq, std::size_t kept) {
  const Pos length = std::min(static_cast<Pos>(kept), target_.length(seq));
  if (length > 0 && target_.truncate(seq, length).ok()) return static_cast<std::size_t>(length);
  // Truncating to nothing always works; a model that is gone for good holds nothing any more
  // (LanguageModel::truncate).
  const Status cleared = target_.truncate(seq, 0);
  assert(cleared.ok() || target_.length(seq) == 0);
  (void)cleared;
  return 0;
}

// The same where `seq` may begin with another sequence's tokens. The order of Drafter::begin_like.
std::size_t Engine::begin_like(SeqId seq, SeqId from, std::size_t kept) {
  if (from == seq || kept == 0) return take_over(seq, kept);
  const Pos length = std::min(static_cast<Pos>(kept), target_.length(from));
  if (target_.share(from, seq, length).ok()) return static_cast<std::size_t>(length);
  return take_over(seq, 0);
}

// The models begin the text of `s`. What throws in between may have left anything in its sequence:
// the idle text is forgotten before, so that no later prompt goes on from what is there then.
void Engine::begin(Sequence& s, const IdleTexts::Choice& choice) {
  idle_.clear(choice.seq);
  try {
    const std::size_t kept = begin_like(choice.seq, choice.from, choice.kept);
    s.cached_tokens = static_cast<std::int64_t>(kept);
    begin_drafting(s, choice.from, kept);
  } catch (...) {
    forget_drafts();
    take_over(choice.seq, 0);
    throw;
  }
}

// Drafters know of no text from now on, and read those that go on again. An exception may have left
// the model of any of them without the texts of all sequences (LanguageModel), and its lengths do
// not always tell: of a text whose first draft is still tentative nothing is committed yet.
void Engine::forget_drafts() {
  for (Drafter* drafter : drafters_) {
    if (drafter == nullptr) continue;
    for (SeqId seq = 0; seq < target_.capabilities().n_sequences; ++seq) {
      try {
        drafter->end(seq);
      } catch (const std::bad_alloc&) {
        drafter->end(seq);  // its model is empty now: that takes no memory
      }
    }
  }
}

// A new text of `seq` begins with the first `kept` tokens of that of `from`.
Status Engine::begin_drafter(std::size_t d, SeqId seq, SeqId from, std::size_t kept) {
  const bool shared = from != seq && kept > 0;
  return shared ? drafters_[d]->begin_like(seq, from, kept) : drafters_[d]->begin(seq, kept);
}

// The same for all that guess for `s`. Its text goes on without those that fail.
void Engine::begin_drafters(Sequence& s, SeqId from, std::size_t kept) {
  for (std::size_t d = 0; d < drafters_.size(); ++d) {
    if (drafters_[d] == nullptr || !s.asks(d)) continue;
    const Status status = begin_drafter(d, s.seq, from, kept);
    if (!status.ok()) s.drop_failed(d, drafters_[d]->name(), status);
  }
}

void Engine::begin_drafting(Sequence& s, SeqId from, std::size_t kept) {
  const Capabilities& caps = target_.capabilities();
  s.stats.rule = s.request.rule;
  s.stats.reason = s.request.speculation_off_reason;
  const bool can_roll_back = caps.rollback != Rollback::kNone;
  if (!can_roll_back && s.stats.reason.empty()) s.stats.reason = caps.rollback_reason;
  if (caps.max_width == 1 && s.request.speculative && s.stats.reason.empty()) {
    s.stats.reason = caps.n_batch == 1 ? "batch=1 leaves no room for guesses"
                                       : "the target takes one token in a step here";
  }
  const bool wanted =
      s.request.speculative && s.request.width != 1 && caps.max_width > 1 && can_roll_back;
  const DrafterPlan& plan = s.request.drafters;
  for (std::size_t d = 0; d < drafters_.size(); ++d) {
    s.stats.drafters.emplace_back();
    if (drafters_[d] == nullptr) continue;
    const std::string name(drafters_[d]->name());
    if (!wanted || (!plan.empty() && !plan.mentions(name))) {
      drafters_[d]->end(s.seq);  // it is not told of this text
      continue;
    }
    s.stats.drafters[d].name = name;
    if (plan.empty()) s.chains.push_back({d});
    s.drafters |= DrafterMask{1} << d;
  }
  begin_drafters(s, from, kept);
  for (const std::vector<std::string>& names : plan.chains) {
    std::vector<std::size_t> chain;
    for (const std::string& name : names) {
      const std::optional<std::size_t> d = find_drafter(name);
      if (d && s.asks(*d)) chain.push_back(*d);
    }
    if (!chain.empty()) s.chains.push_back(std::move(chain));
  }
  s.stats.enabled = s.drafters != 0;
  if (s.stats.enabled && s.request.width > caps.max_width && s.stats.reason.empty()) {
    s.stats.reason = "the target takes at most " + std::to_string(caps.max_width) +
                     " tokens in a step here, so the width is not " +
                     std::to_string(s.request.width);
  }
}

// Of all that have a sequence; of one that has ended, what is held.
std::vector<IdleTexts::Running> Engine::running_texts() const {
  std::vector<IdleTexts::Running> texts;
  if (!options_.reuse_prefix || !target_.capabilities().can_share) return texts;
  for (const std::unique_ptr<Sequence>& s : sequences_) {
    const std::size_t held = static_cast<std::size_t>(target_.length(s->seq));
    std::span<const Token> text = s->text;
    if (s->over()) text = text.first(std::min(held, text.size()));  // nobody reads the rest
    texts.push_back({.seq = s->seq, .text = text, .held = held});
  }
  return texts;
}

// The request that `choice` says to wait for, if it says one.
void Engine::wait_for(Sequence& s, const IdleTexts::Choice& choice) const {
  s.awaited.reset();
  for (const std::unique_ptr<Sequence>& other : sequences_) {
    if (choice.awaited == 0 || other->seq != choice.awaited_seq) continue;
    s.awaited = {.id = other->id, .tokens = choice.awaited};
  }
}

// Requests that waited for an older one get what they waited for. Where that one ends before, they
// get what there is of it, and one of them reads the rest for all. Oldest first: who waits may be
// waited for.
void Engine::share_awaited() {
  for (std::size_t i = 0; i < sequences_.size(); ++i) {
    Sequence& s = *sequences_[i];
    if (!s.awaited) continue;
    const std::size_t wanted = s.awaited->tokens;
    const auto other = std::find_if(sequences_.begin(), sequences_.end(),
                                    [&s](const auto& o) { return o->id == s.awaited->id; });
    const bool gone = other == sequences_.end();
    const bool there = !gone && target_.length((*other)->seq) >= static_cast<Pos>(wanted);
    if (!there && !gone && !(*other)->over() && !(*other)->answered) continue;
    s.awaited.reset();
    if (s.over()) continue;
    if (there) {
      go_on_from(s, (*other)->seq, wanted);
    } else {
      share_again(s, i);
    }
  }
}

// As add() chooses, for one that has a sequence and read nothing itself. It waits for older ones
// only, so that no two wait for each other.
void Engine::share_again(Sequence& s, std::size_t n_older) {
  const std::vector<IdleTexts::Running> running = running_texts();
  const IdleTexts::Choice choice =
      idle_.longest(s.text, std::span(running).first(std::min(n_older, running.size())),
                    static_cast<std::size_t>(options_.least_awaited));
  wait_for(s, choice);
  if (choice.kept > 0) go_on_from(s, choice.from, choice.kept);
}

// The text of `s`, which is not read yet, begins with the first `held` tokens of that of `from`.
void Engine::go_on_from(Sequence& s, SeqId from, std::size_t held) {
  if (held <= static_cast<std::size_t>(target_.length(s.seq))) return;
  const std::size_t kept = begin_like(s.seq, from, held);
  s.cached_tokens = static_cast<std::int64_t>(kept);
  begin_drafters(s, from, kept);
}

// Requests for no token: what they were for has been read, and is kept.
void Engine::end_those_that_only_read() {
  for (const std::unique_ptr<Sequence>& s : sequences_) {
    if (!s->only_reads() || s->over() || s->unseen(target_.length(s->seq)).size() > 1) continue;
    if (s->started) s->timings.prompt_ms = s->age.elapsed_ms() - s->waited_ms;
    s->output.finish(FinishReason::kLength);
  }
}

// A text that ends: its drafters keep what they know of the text, and no guesses.
void Engine::rest(const Sequence& s, std::span<const Token> text) {
  for (std::size_t d = 0; d < drafters_.size(); ++d) {
    if (drafters_[d] != nullptr && s.asks(d)) drafters_[d]->rest(s.seq, text);
  }
}

void Engine::forget(SeqId seq) {
  for (Drafter* drafter : drafters_) {
    if (drafter != nullptr) drafter->end(seq);
  }
  take_over(seq, 0);
}

// False: no ended text is left.
bool Engine::forget_oldest() {
  const std::optional<SeqId> oldest = idle_.oldest();
  if (!oldest) return false;
  forget(*oldest);
  idle_.clear(*oldest);
  return true;
}

Result<SeqId> Engine::restore_idle(const std::vector<Token>& text,
                                   std::span<const std::uint8_t> bytes) {
  if (!options_.reuse_prefix) return unsupported("ended texts are not kept (reuse_prefix=false)");
  OUTRIDER_RETURN_IF_ERROR(check_prompt(target_.capabilities(), text));
  for (const IdleTexts::Entry& entry : idle_.entries()) {
    if (!entry.text().empty()) continue;
    const SeqId seq = entry.seq;
    OUTRIDER_RETURN_IF_ERROR(target_.restore(seq, bytes, static_cast<Pos>(text.size())));
    idle_.put_oldest(seq, text);
    return seq;
  }
  return resource_exhausted("every sequence holds a text");
}

void Engine::forget_idle() {
  assert(!busy());
  apply_cancels();  // one that came too late for its request would interrupt others
  for (SeqId seq = 0; seq < target_.capabilities().n_sequences; ++seq) {
    forget(seq);
    idle_.clear(seq);
  }
  set_interrupt(&interrupt_);
}

// Ended texts give way when a running one finds too little room for its next step.
void Engine::make_room() {
  const Capabilities& caps = target_.capabilities();
  for (const std::unique_ptr<Sequence>& s : sequences_) {
    if (s->over() || s->awaited) continue;
    const std::int64_t length = target_.length(s->seq);
    const std::int64_t missing = static_cast<std::int64_t>(s->text.size()) - length;
    const std::int32_t width = width_of(s->request, options_.planned_width, caps);
    const std::int64_t wanted =
        std::min<std::int64_t>({missing + width - 1, caps.n_batch, caps.n_ctx - length});
    while (target_.room(s->seq) < wanted) {
      if (!forget_oldest()) return;
    }
  }
}

void Engine::shift_full_contexts() {
  for (const std::unique_ptr<Sequence>& s : sequences_) {
    const bool full = static_cast<std::int64_t>(s->text.size()) >= target_.capabilities().n_ctx;
    if (full && s->request.shift_keep >= 0 && !s->over()) shift(*s);
  }
}

// The tokens that stay are read again at their new places, which is exact for every kind of model;
// rotating cached keys, as llama.cpp does, keeps what they had seen of the dropped ones.
void Engine::shift(Sequence& s) {
  const std::int64_t size = static_cast<std::int64_t>(s.text.size());
  const std::int64_t keep =
      std::clamp<std::int64_t>(s.request.shift_keep, 0, std::max<std::int64_t>(size - 4, 0));
  const std::int64_t dropped = std::max<std::int64_t>((size - keep) / 2, 1);
  s.text.erase(s.text.begin() + keep, s.text.begin() + keep + dropped);
  s.n_dropped += dropped;
  ++s.shifts;
  s.plan.forget_asked();
  s.reading = 0;
  s.noise_seed = mix64(s.request.seed ^ mix64(static_cast<std::uint64_t>(s.shifts)));
  const bool whole_only = target_.capabilities().rollback != Rollback::kAny;
  const std::size_t kept = take_over(s.seq, whole_only ? 0 : static_cast<std::size_t>(keep));
  begin_drafters(s, s.seq, kept);
}

}  // namespace outrider
