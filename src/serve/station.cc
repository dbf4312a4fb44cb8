#include "serve/station.h"

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
      recycle_(target_->capabilities().n_vocab, target_->capabilities().n_sequences) {
  make_engine();
}

Station::~Station() = default;

void Station::make_engine() {
  // The draft model's place is the first: it has the credit for what others guess as well.
  std::vector<Drafter*> drafters = {draft_ ? &draft_->drafter() : nullptr, &suffix_, &recycle_};
  engine_ = std::make_unique<Engine>(target_->model(), target_->vocabulary(), std::move(drafters),
                                     options_);
}

void Station::set_draft(std::unique_ptr<Draft> draft, const std::string& reason) {
  if (draft_) engine_->detach(&draft_->drafter(), reason);
  draft_ = std::move(draft);
  if (!draft_) return;
  // There is room: a place is kept for it.
  const Status attached = engine_->attach(&draft_->drafter());
  if (!attached.ok()) draft_.reset();
}

const TokenizerId& Station::tokenizer() const {
  std::call_once(tokenizer_once_, [this] { tokenizer_ = tokenizer_id(target_->vocabulary()); });
  return tokenizer_;
}

void Station::add_file(const OpenedDrafterFile& file) {
  if (file.suffix != nullptr) suffix_.add_store(file.suffix);
}

void Station::remove_file(const DrafterFile& file, std::string reason) {
  if (file.drafter == suffix_.name()) suffix_.remove_store(file.path, std::move(reason));
}

std::uint64_t Station::memory_of(std::string_view drafter) const {
  if (drafter == suffix_.name()) return suffix_.memory_bytes();
  if (drafter == recycle_.name()) return recycle_.bytes();
  return draft_ != nullptr && drafter == kDraftModelName ? draft_->info().size_bytes : 0;
}

void Station::restart() {
  engine_.reset();
  for (SeqId seq = 0; seq < target_->capabilities().n_sequences; ++seq) {
    if (draft_) draft_->drafter().end(seq);
    suffix_.end(seq);
    recycle_.end(seq);
    (void)target_->model().truncate(seq, 0);
  }
  make_engine();
}

}  // namespace outrider
