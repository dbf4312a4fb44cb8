#include "serve/station.h"

#include <utility>

namespace outrider {

Station::Station(std::shared_ptr<Target> target, const RuntimeOptions& options)
    : options_{.prompt_chunk = options.prompt_chunk, .reuse_prefix = options.reuse_prefix},
      target_(std::move(target)) {
  make_engine();
}

Station::~Station() = default;

void Station::make_engine() {
  std::vector<Drafter*> drafters;
  if (draft_) drafters.push_back(&draft_->drafter());
  engine_ = std::make_unique<Engine>(target_->model(), target_->vocabulary(), std::move(drafters),
                                     options_);
}

void Station::set_draft(std::unique_ptr<Draft> draft, const std::string& reason) {
  if (draft_) engine_->detach(&draft_->drafter(), reason);
  draft_ = std::move(draft);
  if (!draft_) return;
  // There is room: the draft is the only drafter.
  const Status attached = engine_->attach(&draft_->drafter());
  if (!attached.ok()) draft_.reset();
}

void Station::restart() {
  engine_.reset();
  for (SeqId seq = 0; seq < target_->capabilities().n_sequences; ++seq) {
    if (draft_) draft_->drafter().end(seq);
    (void)target_->model().truncate(seq, 0);
  }
  make_engine();
}

}  // namespace outrider
