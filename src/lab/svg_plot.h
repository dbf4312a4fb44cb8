// Plots as SVG, legible in light and in dark surroundings.
//
// A plot is described as data, and svg_of() draws it: a string "<svg ...>...</svg>" that is a whole
// SVG file and also can stand inside an HTML page. It needs no script and no network; its colours
// are CSS variables that follow the reader's colour scheme, and each mark says its values when the
// pointer is on it. All texts are escaped (lab/markup.h).
//
// Tested by svg_plot_test.cc; how they look is looked at by hand (docs/rules.svg).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace outrider::lab {

struct PlotPoint {
  double x = 0.0;
  double y = 0.0;
  // What is known of y's spread, drawn as a whisker; equal to each other: none.
  double low = 0.0;
  double high = 0.0;
};

enum class SeriesLook {
  kLine,       // points joined, each with a dot
  kDots,       // points alone
  kReference,  // a thin dashed line, cut off at the plot's edge
  kColumns,    // from the axis up, behind everything else
};

struct PlotSeries {
  std::string name;  // in the legend; empty: not there
  SeriesLook look = SeriesLook::kLine;
  int colour = 0;         // 0 to 4
  bool on_right = false;  // measured by the right axis
  std::vector<PlotPoint> points;
};

struct PlotAxis {
  std::string label;            // with the unit
  std::vector<double> ticks;    // empty: round numbers
  std::optional<double> least;  // not given: 0 or the data's
  std::optional<double> most;   // not given: the data's, without kReference
  bool percent = false;         // values are shares: 0.25 is shown as 25 %
};

// x against y.
struct XyPlot {
  std::string title;
  PlotAxis x;
  PlotAxis y;
  PlotAxis right;  // used when a series is on_right
  std::vector<PlotSeries> series;
  std::int32_t width = 680;  // of the drawing; it scales
  std::int32_t height = 380;
};

// One bar, lying; its parts beside each other.
struct BarRow {
  std::string label;
  std::vector<double> parts;  // one for each name of BarChart::parts, none negative
  double low = 0.0;           // of the whole bar, as in PlotPoint
  double high = 0.0;
  bool heading = false;  // a line of text only
  int colour = 0;        // of a bar that has one part
  std::string value;     // written behind the bar; empty: the sum
};

struct BarChart {
  std::string title;
  std::string label;               // of the values' axis, with the unit
  std::vector<std::string> parts;  // names in the legend; one or none: no legend
  std::vector<BarRow> rows;
  double origin = 0.0;         // where bars begin
  std::optional<double> mark;  // a dashed line at this value
  std::int32_t digits = 2;     // of the written values
  std::int32_t width = 680;
};

std::string svg_of(const XyPlot& plot);
std::string svg_of(const BarChart& chart);

// Round numbers from at most `least` on, the last at least `most`: about `n` of them, in steps of
// 1, 2 or 5 times a power of ten. REQUIRES: least < most, n >= 1
std::vector<double> round_ticks(double least, double most, int n);

}  // namespace outrider::lab
