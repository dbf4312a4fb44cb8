// The plots of the report. Each is an SVG, or empty when there is nothing to draw.
#pragma once

#include <string>

#include "lab/bench_result.h"

namespace outrider::lab {

std::string speedup_plot(const BenchResult& result);      // per category, with intervals
std::string depth_plot(const BenchResult& result);        // acceptance by depth
std::string cost_plot(const BenchResult& result);         // what steps take, and how wide they were
std::string time_plot(const BenchResult& result);         // where the time goes, a token
std::string reliability_plot(const BenchResult& result);  // predicted against observed

}  // namespace outrider::lab
