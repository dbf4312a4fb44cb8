// The least that steps of a machine can take, as a line of a plot.
#pragma once

#include <string>
#include <vector>

#include "lab/svg_plot.h"
#include "machine/machine_limits.h"

namespace outrider::lab {

inline PlotSeries floor_series(const std::string& name, int colour,
                               const std::vector<Floor>& floor) {
  PlotSeries series{.name = name, .look = SeriesLook::kReference, .colour = colour, .points = {}};
  for (const Floor& point : floor) {
    series.points.push_back({.x = static_cast<double>(point.width), .y = point.ms()});
  }
  return series;
}

}  // namespace outrider::lab
