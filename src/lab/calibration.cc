#include "lab/calibration.h"

#include <algorithm>

#include "base/numbers.h"
#include "base/wrap.h"
#include "lab/bench_statistics.h"
#include "lab/floor_series.h"
#include "lab/svg_plot.h"
#include "run/stats_table.h"

namespace outrider::lab {
namespace {

using json::Json;

// Where the middle half of the times is wider than this share of the median, the table warns.
constexpr double kUnsteady = 0.15;

Json time_json(const MeasuredTime& time) {
  return {{"ms", time.ms}, {"low_ms", time.low_ms}, {"high_ms", time.high_ms}, {"n", time.n}};
}

Json curve_json(const MeasuredCurve& curve) {
  Json points = Json::array();
  for (const MeasuredWidth& point : curve.points) {
    Json object = {{"width", point.width}};
    object.update(time_json(point.time));
    object["ms_per_token"] = point.time.ms / point.width;
    object["must_yield"] = curve.ratio(point);
    points.push_back(std::move(object));
  }
  return points;
}

Json model_json(const ModelInfo& info, std::int32_t threads) {
  return {{"path", info.path},
          {"description", info.description},
          {"size_bytes", info.size_bytes},
          {"threads", threads}};
}

std::string left(const std::string& text, std::size_t width) {
  return text.size() >= width ? text : text + std::string(width - text.size(), ' ');
}

std::string right(const std::string& text, std::size_t width) {
  return text.size() >= width ? text : std::string(width - text.size(), ' ') + text;
}

// "-": one measurement says nothing of it.
std::string spread(const MeasuredTime& time) {
  if (time.n < 2) return "-";
  return fixed(time.low_ms, 2) + " to " + fixed(time.high_ms, 2);
}

// As the plot draws them: the median, and between which times half of the passes lie.
auto points_of(const MeasuredCurve& curve) {
  decltype(PlotSeries::points) points;
  for (const MeasuredWidth& point : curve.points) {
    points.push_back({.x = static_cast<double>(point.width),
                      .y = point.time.ms,
                      .low = point.time.low_ms,
                      .high = point.time.high_ms});
  }
  return points;
}

// The floor, what a step takes, and what it takes with llama.cpp's kernels.
std::string floor_table(const Calibration& c) {
  if (c.floor.empty()) return "";
  std::string table = "\nThe least a step can take: reading the weights at " +
                      fixed(c.limits.read_gb_per_s, 1) + " GB/s, or its products at " +
                      fixed(c.limits.multiply_gmac_per_s, 0) + " billion a second (" +
                      c.limits.instruction_set + ")\n";
  table += right("width", 7) + right("read ms", 10) + right("multiply ms", 13) +
           right("step ms", 10) + right("x floor", 9);
  if (c.stock) table += right("llama.cpp ms", 14) + right("its / ours", 12);
  table += "\n";
  for (std::size_t i = 0; i < c.floor.size(); ++i) {
    const Floor& floor = c.floor[i];
    const double ms = c.curves[0].points[i].time.ms;
    table += right(std::to_string(floor.width), 7) + right(fixed(floor.read_ms, 2), 10) +
             right(fixed(floor.multiply_ms, 2), 13) + right(fixed(ms, 2), 10) +
             right(fixed(ms / floor.ms(), 2), 9);
    if (c.stock) {
      const double stock = c.stock->points[i].time.ms;
      table += right(fixed(stock, 2), 14) + right(fixed(stock / ms, 2), 12);
    }
    table += "\n";
  }
  return table;
}

std::string curve_table(const MeasuredCurve& curve) {
  std::string table = "\nT(b) behind " + std::to_string(curve.depth) + " tokens, median of " +
                      std::to_string(curve.points[0].time.n) + " passes each\n";
  table += right("width", 7) + right("ms", 10) + right("half of them", 20) + right("ms/token", 11) +
           right("x T(1)", 9) + "   a step of so many pays when it yields\n";
  for (const MeasuredWidth& point : curve.points) {
    const double ratio = curve.ratio(point);
    table += right(std::to_string(point.width), 7) + right(fixed(point.time.ms, 2), 10) +
             right(spread(point.time), 20) + right(fixed(point.time.ms / point.width, 2), 11) +
             right(fixed(ratio, 2), 9) + "   ";
    if (point.width == 1) {
      table += "(plain decoding: one token)\n";
    } else if (ratio < point.width) {
      table += "more than " + fixed(std::max(ratio, 1.0), 2) + " tokens\n";
    } else {
      table += "never: " + std::to_string(point.width) + " single steps take less\n";
    }
  }
  if (curve.rebuild_ms > 0.0) {
    table += "  and " + fixed(curve.rebuild_ms, 2) +
             " ms more where the step before was of another width: llama.cpp's graph\n";
  }
  return table;
}

// What a token of the draft costs in other types: a cheaper one may pay, if it guesses as well.
std::string types_table(const TypeCosts& costs) {
  if (costs.types.empty()) return "";
  std::string table = "  its weights' products, one token, all in one type:\n";
  for (const TypeCost& cost : costs.types) {
    table += left("    " + cost.type, 16) + right(fixed(cost.ms, 2), 8) + " ms" +
             right(fixed(static_cast<double>(cost.bytes) / 1e6, 0), 8) + " MB\n";
  }
  const std::string cheapest = "the cheapest here: " + cheapest_text(costs);
  return table + "  " + wrap(cheapest, 2, 100) + "\n";
}

// The widths whose times say more of the machine's other work than of the model.
std::string unsteady(const Calibration& c) {
  std::string widths;
  for (const MeasuredCurve& curve : c.curves) {
    for (const MeasuredWidth& point : curve.points) {
      if (point.time.high_ms - point.time.low_ms <= kUnsteady * point.time.ms) continue;
      widths += (widths.empty() ? "" : ", ") + std::to_string(point.width);
      if (c.curves.size() > 1) widths += " at depth " + std::to_string(curve.depth);
    }
  }
  return widths;
}

}  // namespace

MeasuredTime summarise(const std::vector<double>& ms) {
  return {.ms = interpolated_quantile(ms, 0.5),
          .low_ms = interpolated_quantile(ms, 0.25),
          .high_ms = interpolated_quantile(ms, 0.75),
          .n = static_cast<std::int64_t>(ms.size())};
}

MeasuredCurve curve_of(std::int32_t depth, const std::vector<CostSamples>& samples) {
  MeasuredCurve curve{.depth = depth, .rebuild_ms = rebuild_ms(samples[0]), .points = {}};
  for (const CostSamples& width : samples) {
    MeasuredTime time = summarise(width.ms);
    if (width.width != samples[0].width) {
      for (double* ms : {&time.ms, &time.low_ms, &time.high_ms}) {
        *ms = std::max(*ms - curve.rebuild_ms, 0.0);
      }
    }
    curve.points.push_back({.width = width.width, .time = time});
  }
  return curve;
}

Json calibration_json(const Calibration& c) {
  Json depths = Json::array();
  for (const MeasuredCurve& curve : c.curves) {
    depths.push_back(
        {{"depth", curve.depth}, {"curve", curve_json(curve)}, {"rebuild_ms", curve.rebuild_ms}});
  }
  Json object = {{"curve", curve_json(c.curves[0])},
                 {"depth", c.curves[0].depth},
                 {"depths", std::move(depths)},
                 {"model", model_json(c.target, c.threads)},
                 {"kernels", c.target.kernels.name()},
                 {"kernels_reason", c.target.kernels.own ? Json() : Json(c.target.kernels.reason)},
                 {"floor", floor_json(c.floor)},
                 {"read_gb_per_s", c.limits.read_gb_per_s},
                 {"multiply_gmac_per_s", c.limits.multiply_gmac_per_s},
                 {"stock_curve", c.stock ? curve_json(*c.stock) : Json()},
                 {"exactness", c.exactness},
                 {"exactness_coverage", c.exactness_coverage},
                 {"draft", Json()},
                 {"machine", machine_json(c.machine)},
                 {"date", c.machine.date},
                 {"command", c.command}};
  if (c.draft) {
    Json draft = model_json(*c.draft, c.draft_threads);
    draft["first_pass"] = time_json(c.first_pass);
    draft["further_pass"] = c.further_pass.n > 0 ? time_json(c.further_pass) : Json();
    draft["weight_types"] = type_costs_json(c.draft_types);
    object["draft"] = std::move(draft);
  }
  return object;
}

std::string calibration_table(const Calibration& c) {
  const auto threads = [](std::int32_t n) {
    return std::to_string(n) + (n == 1 ? " thread" : " threads");
  };
  std::string table = left("model", 9) + c.target.path +
                      (c.target.description.empty() ? "" : " (" + c.target.description + ")") +
                      ", " + threads(c.threads) + "\n" + left("machine", 9) +
                      machine_text(c.machine) + "\n" + left("steps", 9) + c.exactness + "\n";
  table += left("kernels", 9) + kernels_text(c.target.kernels) + "\n";
  for (const MeasuredCurve& curve : c.curves) table += curve_table(curve);
  table += floor_table(c);
  if (c.draft) {
    const double single = c.curves[0].points[0].time.ms;
    table += "\nThe draft model " + c.draft->path + ", " + threads(c.draft_threads) + "\n";
    const auto row = [&](const std::string& label, const MeasuredTime& time) {
      return time.n == 0
                 ? ""
                 : left("  " + label, 46) + right(fixed(time.ms, 2), 8) + " ms, half of " +
                       "them " + spread(time) + " = " + fixed(time.ms / single, 2) + " T(1)\n";
    };
    table += row("first pass of a draft (reads two tokens)", c.first_pass);
    table += row("each further pass (reads one)", c.further_pass);
    table += types_table(c.draft_types);
  }
  const std::string busy = unsteady(c);
  if (!busy.empty()) {
    table += "\nThe times vary much (width " + busy + "): is the machine doing something else?\n";
  }
  return table;
}

std::string calibration_plot(const Calibration& c) {
  XyPlot plot;
  plot.title =
      "What a pass takes, by its tokens: " + c.target.path.substr(c.target.path.rfind('/') + 1);
  plot.x.label = "tokens of one pass (b)";
  plot.y.label = "milliseconds";
  const MeasuredCurve& first = c.curves[0];
  const double single = first.points[0].time.ms;
  const double widest = first.points.back().width;
  plot.series.push_back({.name = "b times T(1): as dear as single steps",
                         .look = SeriesLook::kReference,
                         .colour = 1,
                         .points = {{.x = 1, .y = single}, {.x = widest, .y = widest * single}}});
  plot.series.push_back({.name = "T(1): as cheap as one",
                         .look = SeriesLook::kReference,
                         .colour = 2,
                         .points = {{.x = 1, .y = single}, {.x = widest, .y = single}}});
  int colour = 0;
  for (const MeasuredCurve& curve : c.curves) {
    PlotSeries series{.name = "T(b) behind " + std::to_string(curve.depth) +
                              " tokens: median, half of the passes",
                      .colour = colour,
                      .points = points_of(curve)};
    for (const MeasuredWidth& point : curve.points) {
      plot.x.ticks.push_back(point.width);
    }
    plot.series.push_back(std::move(series));
    colour = colour == 0 ? 3 : colour + 1;
  }
  if (c.stock) {
    plot.series.push_back(
        {.name = "with llama.cpp's kernels", .colour = colour, .points = points_of(*c.stock)});
  }
  if (!c.floor.empty()) {
    plot.series.push_back(floor_series("the floor: reading or multiplying, whichever takes longer",
                                       /*colour=*/4, c.floor));
  }
  std::sort(plot.x.ticks.begin(), plot.x.ticks.end());
  plot.x.ticks.erase(std::unique(plot.x.ticks.begin(), plot.x.ticks.end()), plot.x.ticks.end());
  return svg_of(plot);
}

}  // namespace outrider::lab
