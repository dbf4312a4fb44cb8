#include "serve/experiences.h"

#include <algorithm>
#include <exception>
#include <utility>

namespace outrider {

void Experiences::recall(Engine& engine, const Drafter& drafter, const std::string& identity) {
  if (store_ == nullptr) return;
  kept_at_ = std::min(kept_at_, engine.planner().steps_noted());  // the engine may be a new one
  const std::optional<std::size_t> place = engine.find_drafter(drafter.name());
  try {
    identities_.erase(std::string(drafter.name()));
    if (identity.empty() || !place) return;
    identities_[std::string(drafter.name())] = identity;
    const std::optional<DrafterExperience> known = store_->load(identity);
    if (!known) return;
    engine.planner().recall(*place, *known);
    engine.drafters()[*place]->recall(known->own);
  } catch (const std::exception&) {  // out of memory
  }
}

Status Experiences::keep(const Engine& engine) {
  const std::int64_t steps = engine.planner().steps_noted();
  Status first;
  if (store_ == nullptr || steps == kept_at_) return first;
  kept_at_ = steps;
  try {
    for (const auto& [name, identity] : identities_) {
      const std::optional<std::size_t> place = engine.find_drafter(name);
      if (!place) continue;
      DrafterExperience experience = engine.planner().experience(*place);
      experience.own = engine.drafters()[*place]->learned();
      if (experience.empty()) continue;
      Status saved = store_->save(identity, experience);
      if (first.ok()) first = std::move(saved);
    }
  } catch (const std::exception&) {  // out of memory
  }
  return first;
}

}  // namespace outrider
