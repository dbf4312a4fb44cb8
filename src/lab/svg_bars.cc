// BarChart's half of lab/svg_plot.h.
#include <algorithm>
#include <numeric>

#include "base/numbers.h"
#include "lab/svg_canvas.h"
#include "lab/svg_plot.h"

namespace outrider::lab {
namespace {

constexpr double kRow = 22.0;
constexpr double kBar = 13.0;
constexpr double kMostLabel = 200.0;
// Whiskers make the axis so many times as long as the bars do, at most; what is longer has no end.
constexpr double kMostWhisker = 1.5;

double total(const BarRow& row) { return std::accumulate(row.parts.begin(), row.parts.end(), 0.0); }

bool is_spread(const BarRow& row) { return row.high > row.low; }

// `text` in at most `width`, an ellipsis for what is left out.
std::string shortened(const std::string& text, double width) {
  if (SvgCanvas::width_of(text) <= width) return text;
  std::string result = text;
  while (!result.empty() && SvgCanvas::width_of(result) + 6.0 > width) {
    while (!result.empty() && (static_cast<unsigned char>(result.back()) & 0xC0) == 0x80) {
      result.pop_back();
    }
    if (!result.empty()) result.pop_back();
  }
  return result + "\xE2\x80\xA6";
}

class BarDrawing {
 public:
  explicit BarDrawing(const BarChart& chart) : chart_(chart) {}

  std::string draw() {
    canvas_.text(14, 20, Anchor::kStart, chart_.title, "strong");
    double top = 34.0;
    if (chart_.parts.size() > 1) {
      std::vector<LegendEntry> entries;
      for (std::size_t i = 0; i < chart_.parts.size(); ++i) {
        entries.push_back({.name = chart_.parts[i], .colour = static_cast<int>(i)});
      }
      top = canvas_.legend(14, 40, chart_.width - 14.0, entries) + 12.0;
    }
    measure();
    const double bottom = top + kRow * static_cast<double>(chart_.rows.size());
    for (const double tick : ticks_) {
      canvas_.line(x(tick), top, x(tick), bottom, "grid");
      canvas_.text(x(tick), bottom + 15, Anchor::kMiddle, shortly(tick), "muted");
    }
    canvas_.text((left_ + right_) / 2, bottom + 33, Anchor::kMiddle, chart_.label, "muted");
    if (chart_.mark) canvas_.line(x(*chart_.mark), top, x(*chart_.mark), bottom, "reference", 4);
    for (std::size_t i = 0; i < chart_.rows.size(); ++i) {
      draw_row(chart_.rows[i], top + kRow * static_cast<double>(i));
    }
    return canvas_.finish(chart_.title, chart_.width, bottom + 42.0);
  }

 private:
  double x(double value) const {
    const double least = ticks_.front();
    return left_ + (right_ - left_) * (value - least) / (ticks_.back() - least);
  }

  std::string value_of(const BarRow& row) const {
    return row.value.empty() ? fixed(total(row), chart_.digits) : row.value;
  }

  void measure() {
    double most = std::max(chart_.origin, chart_.mark.value_or(chart_.origin));
    double least = std::min(chart_.origin, chart_.mark.value_or(chart_.origin));
    double whiskers = most;
    double label = 0.0;
    double value = 0.0;
    for (const BarRow& row : chart_.rows) {
      if (row.heading) continue;
      most = std::max(most, total(row));
      whiskers = std::max(whiskers, row.high);
      least = std::min({least, total(row), is_spread(row) ? row.low : least});
      label = std::max(label, SvgCanvas::width_of(row.label));
      value = std::max(value, SvgCanvas::width_of(value_of(row)));
    }
    most = std::max(most, std::min(whiskers, kMostWhisker * most));
    if (!(most > least)) most = least + 1.0;
    ticks_ = round_ticks(least, most, 6);
    if (ticks_.size() < 2) ticks_.push_back(ticks_.front() + 1.0);
    left_ = 26.0 + std::min(label, kMostLabel);
    right_ = chart_.width - 24.0 - value;
  }

  void draw_row(const BarRow& row, double y) {
    if (row.heading) {
      canvas_.text(14, y + 15, Anchor::kStart, row.label, "muted");
      return;
    }
    canvas_.text(left_ - 10, y + 15, Anchor::kEnd, shortened(row.label, kMostLabel));
    const bool several = chart_.parts.size() > 1;
    double from = chart_.origin;
    const double bar_top = y + (kRow - kBar) / 2.0;
    for (std::size_t i = 0; i < row.parts.size(); ++i) {
      const double to = several ? from + row.parts[i] : row.parts[i];
      const std::string part = several && i < chart_.parts.size() ? chart_.parts[i] + " " : "";
      const double start = std::min(x(from), x(to));
      canvas_.bar(start, bar_top, std::max(x(from), x(to)) - start, kBar,
                  several ? static_cast<int>(i) : row.colour,
                  row.label + ": " + part + fixed(row.parts[i], chart_.digits));
      from = to;
    }
    double end = std::max(x(from), x(chart_.origin));
    if (is_spread(row)) {
      const double middle = y + kRow / 2.0;
      const double high = std::min(row.high, ticks_.back());
      canvas_.line(x(row.low), middle, x(high), middle, "axis");
      for (const double edge : {row.low, row.high}) {
        if (edge <= ticks_.back()) canvas_.line(x(edge), middle - 4, x(edge), middle + 4, "axis");
      }
      end = std::max(end, x(high));
    }
    canvas_.text(end + 7, y + 15, Anchor::kStart, value_of(row));
  }

  const BarChart& chart_;
  SvgCanvas canvas_;
  std::vector<double> ticks_;
  double left_ = 0.0;
  double right_ = 0.0;
};

}  // namespace

std::string svg_of(const BarChart& chart) { return BarDrawing(chart).draw(); }

}  // namespace outrider::lab
