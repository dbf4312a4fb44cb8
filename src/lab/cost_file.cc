#include "lab/cost_file.h"

#include <cmath>
#include <iterator>

#include "input/prompt_file.h"
#include "json/json.h"

namespace outrider::lab {

using json::Json;

Result<CostFile> CostFile::read(const std::string& path) {
  const Result<std::string> text = read_all(path);
  if (!text.ok()) return text.status();
  const auto refuse = [&path](const std::string& what) {
    return invalid_argument("cost curve '" + path + "': " + what +
                            "; it takes an array of {\"width\": tokens, \"ms\": time}");
  };
  const json::Parsed parsed = json::parse(*text);
  if (!parsed.ok()) return refuse(parsed.error);
  const Json* curve = &*parsed.value;
  for (const char* field : {"curve", "cost_curve"}) {
    if (curve->is_object() && curve->contains(field)) curve = &(*curve)[field];
  }
  if (!curve->is_array() || curve->empty()) return refuse("there is no array of points");
  CostFile result;
  result.path_ = path;
  for (const Json& point : *curve) {
    const bool good = point.is_object() && point.contains("width") && point.contains("ms") &&
                      point["width"].is_number_integer() && point["ms"].is_number();
    if (!good) return refuse("a point has no 'width' (a whole number) or no 'ms' (a number)");
    const std::int64_t width = point["width"].get<std::int64_t>();
    const double ms = point["ms"].get<double>();
    if (width < 1 || width > 65536) return refuse("'width' must be from 1 to 65536");
    if (!(ms > 0.0) || !std::isfinite(ms)) return refuse("'ms' must be above 0");
    if (!result.ms_.emplace(static_cast<std::int32_t>(width), ms).second) {
      return refuse("width " + std::to_string(width) + " is there twice");
    }
  }
  if (result.ms_.count(1) == 0) return refuse("width 1, plain decoding, is missing");
  return result;
}

Result<double> CostFile::ms(std::int32_t width) const {
  const std::map<std::int32_t, double>::const_iterator above = ms_.lower_bound(width);
  if (above == ms_.end()) {
    return invalid_argument("cost curve '" + path_ + "' ends at width " +
                            std::to_string(ms_.rbegin()->first) + ", but there is a step of " +
                            std::to_string(width) + "; give a smaller --width, or measure wider");
  }
  if (above->first == width) return above->second;
  const std::map<std::int32_t, double>::const_iterator below = std::prev(above);
  const double share =
      static_cast<double>(width - below->first) / static_cast<double>(above->first - below->first);
  return below->second + share * (above->second - below->second);
}

Result<double> CostFile::speedup(const ReplayStats& stats) const {
  double total = stats.draft_ms + stats.accept_ms;
  for (std::size_t width = 1; width < stats.steps_by_width.size(); ++width) {
    if (stats.steps_by_width[width] == 0) continue;
    const Result<double> step = ms(static_cast<std::int32_t>(width));
    if (!step.ok()) return step.status();
    total += static_cast<double>(stats.steps_by_width[width]) * *step;
  }
  return static_cast<double>(stats.tokens) * ms_.at(1) / total;
}

}  // namespace outrider::lab
