#include "lab/svg_plot.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/numbers.h"
#include "lab/svg_canvas.h"

namespace outrider::lab {
namespace {

constexpr double kTitle = 20.0;        // baseline
constexpr double kLegendTop = 40.0;    // baseline of its first line
constexpr double kBelow = 46.0;        // ticks and label
constexpr double kLeft = 62.0;         // ticks and label
constexpr double kColumnShare = 0.36;  // of a unit of x, on either side

struct Range {
  double least = 0.0;
  double most = 1.0;
};

// What an axis shows, and where it lies: `from` and `to` in the drawing.
class Scale {
 public:
  Scale(Range range, double from, double to) : range_(range), from_(from), to_(to) {}

  double operator()(double value) const {
    return from_ + (to_ - from_) * (value - range_.least) / (range_.most - range_.least);
  }
  const Range& range() const { return range_; }

 private:
  Range range_;
  double from_;
  double to_;
};

std::string shown(const PlotAxis& axis, double value) {
  return axis.percent ? shortly(100.0 * value) + " %" : shortly(value, 4);
}

bool is_spread(const PlotPoint& p) { return p.high > p.low; }

// Of the data on one axis; `of_x`: x, else y with whiskers.
Range data_range(const XyPlot& plot, bool of_x, bool on_right) {
  Range range{.least = std::numeric_limits<double>::infinity(),
              .most = -std::numeric_limits<double>::infinity()};
  for (const PlotSeries& series : plot.series) {
    if (series.look == SeriesLook::kReference || (!of_x && series.on_right != on_right)) continue;
    for (const PlotPoint& p : series.points) {
      const double value = of_x ? p.x : std::max(p.y, is_spread(p) ? p.high : p.y);
      range.least = std::min(range.least, value);
      range.most = std::max(range.most, value);
    }
  }
  if (!(range.least <= range.most)) return {};
  if (!of_x) range.least = 0.0;
  return range;
}

// The axis's range and ticks: round ones at both ends, unless something else was asked for.
Range settle(const PlotAxis& axis, Range data, std::vector<double>& ticks) {
  Range range{.least = axis.least.value_or(data.least), .most = axis.most.value_or(data.most)};
  if (!(range.most > range.least)) range.most = range.least + 1.0;
  ticks = axis.ticks.empty() ? round_ticks(range.least, range.most, 6) : axis.ticks;
  if (axis.ticks.empty() && !axis.most) range.most = std::max(range.most, ticks.back());
  if (axis.ticks.empty() && !axis.least) range.least = std::min(range.least, ticks.front());
  return range;
}

bool inside(const Range& range, double value) {
  const double slack = 1e-9 * (range.most - range.least);
  return value >= range.least - slack && value <= range.most + slack;
}

class XyDrawing {
 public:
  explicit XyDrawing(const XyPlot& plot) : plot_(plot) {
    for (const PlotSeries& series : plot.series) has_right_ |= series.on_right;
  }

  std::string draw() {
    canvas_.text(14, kTitle, Anchor::kStart, plot_.title, "strong");
    top_ = draw_legend() + 18.0;
    left_ = kLeft;
    right_ = plot_.width - (has_right_ ? kLeft : 24.0);
    bottom_ = plot_.height - kBelow;
    Range x_range = settle(plot_.x, data_range(plot_, true, false), x_ticks_);
    if (has_columns()) {  // they stand on both sides of their values
      x_range.least -= 0.5;
      x_range.most += 0.5;
    }
    const Scale x(x_range, left_, right_);
    const Scale y(settle(plot_.y, data_range(plot_, false, false), y_ticks_), bottom_, top_);
    const Scale right(settle(plot_.right, data_range(plot_, false, true), right_ticks_), bottom_,
                      top_);
    draw_axes(x, y, right);
    for (const SeriesLook look :
         {SeriesLook::kColumns, SeriesLook::kReference, SeriesLook::kLine, SeriesLook::kDots}) {
      for (const PlotSeries& series : plot_.series) {
        if (series.look == look) draw_series(series, x, series.on_right ? right : y);
      }
    }
    return canvas_.finish(plot_.title, plot_.width, plot_.height);
  }

 private:
  bool has_columns() const {
    return std::any_of(plot_.series.begin(), plot_.series.end(), [](const PlotSeries& s) {
      return s.look == SeriesLook::kColumns && !s.points.empty();
    });
  }

  double draw_legend() {
    std::vector<LegendEntry> entries;
    for (const PlotSeries& series : plot_.series) {
      if (series.name.empty()) continue;
      entries.push_back({.name = series.name,
                         .colour = series.colour,
                         .dashed = series.look == SeriesLook::kReference,
                         .faint = series.look == SeriesLook::kColumns});
    }
    if (entries.empty()) return kTitle;
    return canvas_.legend(14, kLegendTop, plot_.width - 14.0, entries);
  }

  void draw_axes(const Scale& x, const Scale& y, const Scale& right) {
    for (const double tick : y_ticks_) {
      if (!inside(y.range(), tick)) continue;
      canvas_.line(left_, y(tick), right_, y(tick), "grid");
      canvas_.text(left_ - 7, y(tick) + 4, Anchor::kEnd, shown(plot_.y, tick), "muted");
    }
    for (const double tick : right_ticks_) {
      if (!has_right_ || !inside(right.range(), tick)) continue;
      canvas_.text(right_ + 7, right(tick) + 4, Anchor::kStart, shown(plot_.right, tick), "muted");
    }
    double free_from = -std::numeric_limits<double>::infinity();  // labels must not touch
    for (const double tick : x_ticks_) {
      if (!inside(x.range(), tick)) continue;
      const std::string label = shown(plot_.x, tick);
      const double half = SvgCanvas::width_of(label) / 2.0;
      canvas_.line(x(tick), bottom_, x(tick), bottom_ + 4, "axis");
      if (x(tick) - half < free_from) continue;
      canvas_.text(x(tick), bottom_ + 17, Anchor::kMiddle, label, "muted");
      free_from = x(tick) + half + 5.0;
    }
    canvas_.line(left_, bottom_, right_, bottom_, "axis");
    canvas_.text((left_ + right_) / 2, bottom_ + 36, Anchor::kMiddle, plot_.x.label, "muted");
    canvas_.upright_text(16, (top_ + bottom_) / 2, plot_.y.label);
    if (has_right_)
      canvas_.upright_text(plot_.width - 8.0, (top_ + bottom_) / 2, plot_.right.label);
  }

  std::string says(const PlotSeries& series, const PlotPoint& p) const {
    const PlotAxis& axis = series.on_right ? plot_.right : plot_.y;
    std::string text = series.name.empty() ? "" : series.name + ": ";
    text += shown(plot_.x, p.x) + ", " + shown(axis, p.y);
    if (is_spread(p)) text += " (" + shown(axis, p.low) + " to " + shown(axis, p.high) + ")";
    return text;
  }

  void draw_series(const PlotSeries& series, const Scale& x, const Scale& y) {
    if (series.look == SeriesLook::kColumns) return draw_columns(series, x, y);
    if (series.look == SeriesLook::kReference) return draw_reference(series, x, y);
    std::string points;
    for (const PlotPoint& p : series.points) {
      points += (points.empty() ? "" : " ") + at(x(p.x)) + "," + at(y(p.y));
    }
    if (series.look == SeriesLook::kLine && series.points.size() > 1) {
      canvas_.path(points, series.colour);
    }
    for (const PlotPoint& p : series.points) {
      if (is_spread(p)) draw_whisker(x(p.x), y(p.low), y(p.high), series.colour);
      canvas_.dot(x(p.x), y(p.y), series.colour, says(series, p));
    }
  }

  void draw_whisker(double x, double low, double high, int colour) {
    canvas_.line(x, low, x, high, "whisker", colour);
    canvas_.line(x - 4, low, x + 4, low, "whisker", colour);
    canvas_.line(x - 4, high, x + 4, high, "whisker", colour);
  }

  void draw_columns(const PlotSeries& series, const Scale& x, const Scale& y) {
    for (const PlotPoint& p : series.points) {
      const double from = x(p.x - kColumnShare);
      const double height = y(0.0) - y(p.y);
      canvas_.bar(from, y(p.y), x(p.x + kColumnShare) - from, height, series.colour,
                  says(series, p), /*faint=*/true);
    }
  }

  // Each piece of the line, cut off where it leaves the plot's height.
  void draw_reference(const PlotSeries& series, const Scale& x, const Scale& y) {
    for (std::size_t i = 0; i + 1 < series.points.size(); ++i) {
      PlotPoint a = series.points[i];
      PlotPoint b = series.points[i + 1];
      const auto cut = [&y](PlotPoint& p, const PlotPoint& other) {
        const double edge = std::clamp(p.y, y.range().least, y.range().most);
        if (edge == p.y || other.y == p.y) return;
        p.x += (other.x - p.x) * (edge - p.y) / (other.y - p.y);
        p.y = edge;
      };
      const bool outside =
          std::min(a.y, b.y) > y.range().most || std::max(a.y, b.y) < y.range().least;
      if (outside) continue;
      cut(a, b);
      cut(b, a);
      canvas_.line(x(a.x), y(a.y), x(b.x), y(b.y), "reference", series.colour);
    }
  }

  const XyPlot& plot_;
  SvgCanvas canvas_;
  bool has_right_ = false;
  double top_ = 0.0;
  double bottom_ = 0.0;
  double left_ = 0.0;
  double right_ = 0.0;
  std::vector<double> x_ticks_;
  std::vector<double> y_ticks_;
  std::vector<double> right_ticks_;
};

}  // namespace

std::vector<double> round_ticks(double least, double most, int n) {
  const double raw = (most - least) / static_cast<double>(n);
  const double power = std::pow(10.0, std::floor(std::log10(raw)));
  double step = 10.0 * power;
  for (const double factor : {5.0, 2.0, 1.0}) {
    if (factor * power >= raw * (1.0 - 1e-9)) step = factor * power;
  }
  // A little slack, so that 0.6 / 0.2 is three steps.
  const double first = std::floor(least / step + 1e-9);
  const double last = std::ceil(most / step - 1e-9);
  std::vector<double> ticks;
  for (double i = first; i <= last + 0.5; i += 1.0) ticks.push_back(i * step);
  return ticks;
}

std::string svg_of(const XyPlot& plot) { return XyDrawing(plot).draw(); }

}  // namespace outrider::lab
