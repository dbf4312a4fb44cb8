#include "http/metrics/floors.h"

#include <memory>

namespace outrider::http {

std::optional<std::vector<CostPoint>> Floors::find(const std::string& model, Runtime& runtime) {
  const std::unique_lock<std::mutex> lock(mutex_, std::try_to_lock);
  if (!lock.owns_lock()) return {};
  const auto known = known_.find(model);
  if (known != known_.end()) return known->second;
  const std::shared_ptr<const Target> target = runtime.target();
  if (!measure_ || target == nullptr) return {};
  std::vector<CostPoint> floor;
  const Status measured = runtime.with_free_target(
      [&](LanguageModel& /*model*/, const Engine& /*engine*/) { floor = measure_(*target); });
  if (!measured.ok()) return {};
  return known_.emplace(model, std::move(floor)).first->second;
}

}  // namespace outrider::http
