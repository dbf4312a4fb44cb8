#include "serve/experiences.h"

#include <algorithm>
#include <exception>

namespace outrider {
namespace {

// Its place in the engine; not there: the number of places.
std::size_t place_of(const Engine& engine, std::string_view name) {
  std::size_t place = 0;
  for (const Drafter* drafter : engine.drafters()) {
    if (drafter != nullptr && drafter->name() == name) return place;
    ++place;
  }
  return place;
}

}  // namespace

void Experiences::recall(Engine& engine, const Drafter& drafter, const std::string& identity) {
  if (store_ == nullptr) return;
  kept_at_ = std::min(kept_at_, engine.planner().steps_noted());  // the engine may be a new one
  const std::size_t place = place_of(engine, drafter.name());
  try {
    identities_.erase(std::string(drafter.name()));
    if (identity.empty() || place == engine.drafters().size()) return;
    identities_[std::string(drafter.name())] = identity;
    const std::optional<DrafterExperience> known = store_->load(identity);
    if (!known) return;
    engine.planner().recall(place, *known);
    engine.drafters()[place]->recall(known->own);
  } catch (const std::exception&) {  // out of memory
  }
}

void Experiences::keep(const Engine& engine) {
  const std::int64_t steps = engine.planner().steps_noted();
  if (store_ == nullptr || steps == kept_at_) return;
  kept_at_ = steps;
  try {
    for (const auto& [name, identity] : identities_) {
      const std::size_t place = place_of(engine, name);
      if (place == engine.drafters().size()) continue;
      DrafterExperience experience = engine.planner().experience(place);
      experience.own = engine.drafters()[place]->learned();
      if (!experience.empty()) store_->save(identity, experience);
    }
  } catch (const std::exception&) {  // out of memory
  }
}

void Experiences::keep_now_and_then(const Engine& engine) {
  if (engine.planner().steps_noted() - kept_at_ >= kWorthKeeping) keep(engine);
}

}  // namespace outrider
