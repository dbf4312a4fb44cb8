#include "lab/bench_plots.h"

#include <algorithm>
#include <cmath>

#include "lab/floor_series.h"
#include "lab/markup.h"
#include "lab/svg_plot.h"

namespace outrider::lab {
namespace {

double share(std::int64_t part, std::int64_t whole) {
  return whole > 0 ? static_cast<double>(part) / static_cast<double>(whole) : 0.0;
}

// A share of n with its 95 % interval by Wilson (1927), which stays inside 0 to 1.
PlotPoint share_point(double x, std::int64_t part, std::int64_t n) {
  const double z = 1.96;
  const double count = static_cast<double>(n);
  const double p = share(part, n);
  const double middle = (p + z * z / (2.0 * count)) / (1.0 + z * z / count);
  const double half =
      z / (1.0 + z * z / count) * std::sqrt(p * (1.0 - p) / count + z * z / (4.0 * count * count));
  return {.x = x, .y = p, .low = std::min(p, middle - half), .high = std::max(p, middle + half)};
}

// Milliseconds a token, by part; what none of them covers is the rest.
BarRow time_row(const std::string& label, const TimeParts& t) {
  const double n = static_cast<double>(std::max<std::int64_t>(t.tokens, 1));
  const double rest = t.total_ms - t.draft_ms - t.verify_ms - t.sample_ms - t.plan_ms;
  return {.label = label,
          .parts = {t.draft_ms / n, t.verify_ms / n, t.sample_ms / n, t.plan_ms / n,
                    std::max(0.0, rest) / n}};
}

}  // namespace

std::string speedup_plot(const BenchResult& r) {
  BarChart chart{.title = "Speed-up over plain decoding",
                 .label = "times as fast (1: plain decoding)",
                 .parts = {},
                 .rows = {},
                 .origin = 1.0,
                 .mark = 1.0};
  const auto add = [&chart](const BenchGroup& g, int colour) {
    if (!g.speedup) return;
    BarRow row{.label = g.name, .parts = {*g.speedup}, .colour = colour, .value = speedup_text(g)};
    if (g.interval) {
      row.low = g.interval->low;
      row.high = g.interval->high;
    }
    chart.rows.push_back(std::move(row));
  };
  for (const BenchGroup& group : r.categories) add(group, 0);
  if (r.categories.size() > 1) add(r.overall, 2);
  return chart.rows.empty() ? "" : svg_of(chart);
}

std::string depth_plot(const BenchResult& r) {
  PlotSeries here{.name = "of those put to the test there", .colour = 0, .points = {}};
  PlotSeries reached{
      .name = "of all steps (steps that said so many more)", .colour = 1, .points = {}};
  XyPlot plot{.title = "Accepted guesses, by depth",
              .x = {.label = "depth of the guess in its step"},
              .y = {.label = "share accepted", .least = 0.0, .most = 1.0, .percent = true},
              .right = {},
              .series = {}};
  const std::vector<DepthStats>& depths = r.overall.by_depth;
  for (std::size_t i = 0; i < depths.size() && depths[i].tested > 0; ++i) {
    const double depth = static_cast<double>(i + 1);
    plot.x.ticks.push_back(depth);
    here.points.push_back(share_point(depth, depths[i].accepted, depths[i].tested));
    reached.points.push_back({.x = depth, .y = share(depths[i].accepted, r.overall.steps)});
  }
  if (here.points.empty()) return "";
  plot.x.least = 0.5;
  plot.x.most = plot.x.ticks.back() + 0.5;
  plot.series = {std::move(here), std::move(reached)};
  return svg_of(plot);
}

std::string cost_plot(const BenchResult& r) {
  if (r.costs.empty()) return "";
  XyPlot plot{.title = "What a step takes, and how wide the steps were",
              .x = {.label = "tokens of a step (b)"},
              .y = {.label = "milliseconds"},
              .right = {.label = "share of the steps", .least = 0.0, .percent = true},
              .series = {}};
  PlotSeries widths{.name = "steps of this width",
                    .look = SeriesLook::kColumns,
                    .colour = 4,
                    .on_right = true,
                    .points = {}};
  const std::vector<std::int64_t>& steps = r.overall.steps_by_width;
  double widest = r.costs.back().width;
  for (std::size_t width = 1; width < steps.size(); ++width) {
    if (steps[width] == 0) continue;
    widths.points.push_back(
        {.x = static_cast<double>(width), .y = share(steps[width], r.overall.steps)});
    widest = std::max(widest, static_cast<double>(width));
  }
  PlotSeries curve{.name = "T(b)", .colour = 0, .points = {}};
  for (const CostPoint& point : r.costs) {
    curve.points.push_back({.x = static_cast<double>(point.width), .y = point.ms});
    plot.x.ticks.push_back(point.width);
  }
  plot.x.least = 1.0;
  plot.x.most = widest;
  const double single = r.costs[0].ms;
  const double first = r.costs[0].width;
  plot.series = {std::move(widths),
                 {.name = "b times T(1)",
                  .look = SeriesLook::kReference,
                  .colour = 1,
                  .points = {{.x = first, .y = single}, {.x = widest, .y = widest * single}}},
                 {.name = "T(1)",
                  .look = SeriesLook::kReference,
                  .colour = 2,
                  .points = {{.x = first, .y = single}, {.x = widest, .y = single}}},
                 std::move(curve)};
  if (!r.floor.empty()) {
    plot.series.push_back(floor_series("the least it could take here", /*colour=*/3, r.floor));
  }
  return svg_of(plot);
}

std::string time_plot(const BenchResult& r) {
  if (r.overall.plain_time.tokens == 0) return "";
  BarChart chart{.title = "Where the time goes",
                 .label = "milliseconds a token, after the first one",
                 .parts = {"draft", "verify (the target's pass)", "sample", "plan", "rest"},
                 .rows = {}};
  chart.rows.push_back(time_row("overall, plain", r.overall.plain_time));
  chart.rows.push_back(time_row("overall, speculative", r.overall.speculative_time));
  for (const BenchGroup& group : r.categories) {
    if (r.categories.size() < 2 || group.speculative_time.tokens == 0) continue;
    chart.rows.push_back(time_row(group.name, group.speculative_time));
  }
  return svg_of(chart);
}

std::string reliability_plot(const BenchResult& r) {
  if (r.score.n() == 0) return "";
  XyPlot plot{.title = "Are the predictions right?",
              .x = {.label = "predicted chance of acceptance",
                    .ticks = {},
                    .least = 0.0,
                    .most = 1.0,
                    .percent = true},
              .y = {.label = "observed share", .least = 0.0, .most = 1.0, .percent = true},
              .right = {},
              .series = {},
              .width = 560,
              .height = 440};
  PlotSeries seen{.name = "guesses by tenths of their chance",
                  .look = SeriesLook::kLine,
                  .colour = 0,
                  .points = {}};
  for (const CalibrationScore::Bin& bin : r.score.bins()) {
    if (bin.n == 0) continue;
    seen.points.push_back(
        share_point(bin.predicted / static_cast<double>(bin.n), bin.right, bin.n));
  }
  plot.series = {{.name = "as predicted",
                  .look = SeriesLook::kReference,
                  .colour = 1,
                  .points = {{.x = 0.0, .y = 0.0}, {.x = 1.0, .y = 1.0}}},
                 std::move(seen)};
  return svg_of(plot);
}

}  // namespace outrider::lab
