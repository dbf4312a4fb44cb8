#include "serve/station.h"

#include <cassert>
#include <exception>
#include <utility>

namespace outrider {
namespace {

EngineOptions engine_options(const Target& target, const RuntimeOptions& options) {
  EngineOptions result;
  result.prompt_chunk = options.prompt_chunk;
  result.reuse_prefix = options.reuse_prefix;
  set_planning(target, result);
  return result;
}

}  // namespace

void set_planning(const Target& target, EngineOptions& options) {
  options.planned_width = planned_width(target.exactness());
  options.costs = target.costs();
}

Station::Station(std::shared_ptr<Target> target, const RuntimeOptions& options)
    : options_(engine_options(*target, options)),
      target_(std::move(target)),
      suffix_(target_->capabilities().n_sequences),
      recycle_(target_->capabilities().n_vocab, target_->capabilities().n_sequences),
      experiences_(target_->experiences()) {
  if (options.remember_tokens > 0) {
    suffix_.use_memory(&remembered_.emplace(static_cast<std::size_t>(options.remember_tokens)));
  }
  make_engine();
}

Station::~Station() {
  if (engine_) experiences_.keep(*engine_);
}

void Station::make_engine() {
  // The draft model's place is the first; drafters are listed by their places.
  std::vector<Drafter*> drafters = {draft_ ? &draft_->drafter() : nullptr, &suffix_, &ngrams_,
                                    &recycle_};
  engine_ = std::make_unique<Engine>(target_->model(), target_->vocabulary(), std::move(drafters),
                                     options_);
  if (draft_) experiences_.recall(*engine_, draft_->drafter(), draft_->identity());
  experiences_.recall(*engine_, suffix_);
  experiences_.recall(*engine_, ngrams_);
  experiences_.recall(*engine_, recycle_);
}

void Station::set_draft(std::unique_ptr<Draft> draft, const std::string& reason) {
  if (draft_) {
    experiences_.keep(*engine_);
    engine_->detach(&draft_->drafter(), reason);
  }
  draft_ = std::move(draft);
  if (!draft_) return;
  // There is room: a place is kept for it.
  const Status attached = engine_->attach(&draft_->drafter());
  if (!attached.ok()) return draft_.reset();
  experiences_.recall(*engine_, draft_->drafter(), draft_->identity());
}

const TokenizerId& Station::tokenizer() const {
  std::call_once(tokenizer_once_, [this] { tokenizer_ = tokenizer_id(target_->vocabulary()); });
  return tokenizer_;
}

void Station::add_file(const OpenedDrafterFile& file) {
  if (file.suffix != nullptr) suffix_.add_store(file.suffix);
  if (file.ngrams != nullptr) ngrams_.set_cache(ngram_tier(file.file.tier), file.ngrams);
}

void Station::remove_file(const DrafterFile& file, std::string reason) {
  if (file.drafter == suffix_.name()) {
    suffix_.remove_store(file.path, std::move(reason));
  } else if (file.drafter == ngrams_.name()) {
    ngrams_.remove_cache(ngram_tier(file.tier), std::move(reason));
  }
}

std::uint64_t Station::memory_of(std::string_view drafter) const {
  if (drafter == suffix_.name()) return suffix_.memory_bytes();
  if (drafter == ngrams_.name()) return ngrams_.memory_bytes();
  if (drafter == recycle_.name()) return recycle_.bytes();
  return draft_ != nullptr && drafter == kDraftModelName ? draft_->info().size_bytes : 0;
}

Remembered Station::remember(std::string name_space, std::span<const Token> text) {
  Remembered result{.name_space = std::move(name_space)};
  assert(remembered_);
  try {
    result.tokens = static_cast<std::int64_t>(remembered_->add(result.name_space, text));
    if (result.tokens == 0) result.reason = "the text is too short to guess from";
  } catch (const std::exception&) {
    result.reason = "out of memory";  // short enough to need none
  }
  return result;
}

std::optional<MemoryStatus> Station::memory() const {
  if (!remembered_) return std::nullopt;
  const SuffixMemory::Stats stats = remembered_->stats();
  return MemoryStatus{.max_tokens = static_cast<std::int64_t>(stats.max_tokens),
                      .namespaces = static_cast<std::int64_t>(stats.namespaces),
                      .tokens = static_cast<std::int64_t>(stats.tokens),
                      .memory_bytes = stats.memory_bytes};
}

void Station::restart() {
  engine_.reset();
  if (remembered_) remembered_->clear();  // a text may have been read in part
  for (SeqId seq = 0; seq < target_->capabilities().n_sequences; ++seq) {
    if (draft_) draft_->drafter().end(seq);
    suffix_.end(seq);
    ngrams_.end(seq);
    recycle_.end(seq);
    (void)target_->model().truncate(seq, 0);
  }
  make_engine();
}

}  // namespace outrider
