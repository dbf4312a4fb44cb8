#include "http/metrics/floors.h"

#include <memory>

namespace outrider::http {

std::optional<std::vector<CostPoint>> Floors::find(const std::string& model, Runtime& runtime) {
  const std::unique_lock<std::mutex> lock(mutex_, std::try_to_lock);
  if (!lock.owns_lock()) return {};
  const std::shared_ptr<const Target> target = runtime.target();
  const auto known = known_.find(model);
  const bool is_known = known != known_.end();
  if (is_known && (target == nullptr || known->second.path == target->info().path)) {
    return known->second.floor;
  }
  if (!measure_ || target == nullptr) return {};
  std::vector<CostPoint> floor;
  const Status measured = runtime.with_free_target(
      [&](LanguageModel& /*model*/, const Engine& /*engine*/) { floor = measure_(*target); });
  if (!measured.ok()) return {};
  return known_.insert_or_assign(model, Known{target->info().path, std::move(floor)})
      .first->second.floor;
}

}  // namespace outrider::http
