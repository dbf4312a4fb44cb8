// What `outrider bench` prints: the object and the table (lab/bench_result.h).
#include <algorithm>
#include <string_view>
#include <utility>

#include "api/completion_json.h"
#include "api/status_json.h"
#include "base/numbers.h"
#include "base/one_line.h"
#include "base/wrap.h"
#include "lab/bench_result.h"
#include "run/stats_table.h"

namespace outrider::lab {
namespace {

using json::Json;

Json number(const std::optional<double>& value) { return value ? Json(*value) : Json(); }

Json time_json(const TimeParts& t) {
  return {{"draft_ms", t.draft_ms}, {"verify_ms", t.verify_ms}, {"sample_ms", t.sample_ms},
          {"plan_ms", t.plan_ms},   {"total_ms", t.total_ms},   {"tokens", t.tokens}};
}

// For each token.
Json processor_json(double ms, std::int64_t tokens) {
  return ms > 0.0 && tokens > 0 ? Json(ms / static_cast<double>(tokens)) : Json();
}

Json group_json(const BenchGroup& g) {
  Json widths = Json::array();
  for (std::size_t width = 1; width < g.steps_by_width.size(); ++width) {
    if (g.steps_by_width[width] == 0) continue;
    widths.push_back({{"width", width}, {"steps", g.steps_by_width[width]}});
  }
  Json depths = Json::array();
  for (std::size_t i = 0; i < g.by_depth.size(); ++i) {
    const DepthStats& d = g.by_depth[i];
    depths.push_back(
        {{"depth", i + 1}, {"drafted", d.drafted}, {"tested", d.tested}, {"accepted", d.accepted}});
  }
  return {{"plain_tps", number(g.plain_tps)},
          {"speculative_tps", number(g.speculative_tps)},
          {"speedup", number(g.speedup)},
          {"tokens_per_step", api::ratio(g.emitted, g.steps)},
          {"acceptance_rate", api::ratio(g.accepted, g.drafted)},
          {"identical", g.pairs > 0 ? Json(g.identical == g.pairs) : Json()},
          {"speedup_low", g.interval ? Json(g.interval->low) : Json()},
          {"speedup_high", g.interval ? Json(g.interval->high) : Json()},
          {"pairs", g.pairs},
          {"identical_pairs", g.identical},
          {"plain_first_token_ms", g.plain_first_token_ms},
          {"speculative_first_token_ms", g.speculative_first_token_ms},
          {"oracle_share", number(g.oracle_share())},
          {"plain_processor_ms", processor_json(g.processor.plain_ms, g.plain_tokens)},
          {"speculative_processor_ms",
           processor_json(g.processor.speculative_ms, g.speculative_tokens)},
          {"processor_speedup", number(g.processor_speedup())},
          {"steps", g.steps},
          {"drafted", g.drafted},
          {"accepted", g.accepted},
          {"steps_by_width", std::move(widths)},
          {"by_depth", std::move(depths)},
          {"plain_time", time_json(g.plain_time)},
          {"speculative_time", time_json(g.speculative_time)}};
}

Json score_json(const CalibrationScore& score) {
  if (score.n() == 0) return {};
  Json bins = Json::array();
  for (const CalibrationScore::Bin& bin : score.bins()) {
    if (bin.n == 0) continue;
    bins.push_back({{"n", bin.n},
                    {"predicted", bin.predicted / static_cast<double>(bin.n)},
                    {"observed", api::ratio(bin.right, bin.n)}});
  }
  return {{"guesses", score.n()},
          {"calibration_error", score.calibration_error()},
          {"brier", score.brier()},
          {"brier_of_means", score.brier_of_means()},
          {"bins", std::move(bins)}};
}

Json ceiling_json(const std::vector<CostPoint>& costs) {
  const std::optional<Ceiling> ceiling = ceiling_of(costs);
  if (!ceiling) return {};
  return {{"width", ceiling->width}, {"speedup", ceiling->speedup}};
}

bool begins_character(char byte) { return (static_cast<unsigned char>(byte) & 0xC0) != 0x80; }

// Columns are of characters, not of bytes.
std::size_t characters_of(std::string_view text) {
  return static_cast<std::size_t>(std::count_if(text.begin(), text.end(), begins_character));
}

std::string padded(const std::string& text, std::size_t width, bool to_right) {
  const std::size_t used = characters_of(text);
  if (used >= width) return text;
  const std::string space(width - used, ' ');
  return to_right ? space + text : text + space;
}

std::string shortened(const std::string& name, std::size_t width) {
  if (characters_of(name) <= width) return name;
  std::size_t end = 0;
  for (std::size_t n = 0; end < name.size(); ++end) {
    if (begins_character(name[end]) && n++ == width - 3) break;
  }
  return name.substr(0, end) + "...";
}

std::string identical_text(const BenchGroup& g) {
  if (g.pairs == 0) return "-";
  if (g.identical == g.pairs) return "yes";
  return std::to_string(g.identical) + " of " + std::to_string(g.pairs);
}

std::string group_row(const BenchGroup& g) {
  const double steps = static_cast<double>(g.steps);
  return padded(shortened(g.name, 22), 24, false) +
         padded(g.plain_tps ? fixed(*g.plain_tps, 1) : "-", 9, true) +
         padded(g.speculative_tps ? fixed(*g.speculative_tps, 1) : "-", 12, true) +
         padded(speedup_text(g), 22, true) +
         padded(g.steps > 0 ? fixed(static_cast<double>(g.emitted) / steps, 2) : "-", 10, true) +
         padded(percent(static_cast<double>(g.accepted), static_cast<double>(g.drafted)), 10,
                true) +
         padded(identical_text(g), 12, true) + "\n";
}

std::string sureness_line(const BenchResult& r) {
  const std::optional<double> width = r.overall.interval_width();
  if (!width || r.is_sure()) return "";
  return "the overall interval is " + fixed(100.0 * *width, 1) + " % wide each way, and not " +
         shortly(100.0 * r.setting.until) + " %: other programs? (--repeat, --until)\n";
}

std::string processor_line(const BenchGroup& g) {
  if (!g.processor_speedup()) return "";
  return "processor time of a token, prompts included: " +
         fixed(g.processor.plain_ms / static_cast<double>(g.plain_tokens), 1) + " ms plain, " +
         fixed(g.processor.speculative_ms / static_cast<double>(g.speculative_tokens), 1) +
         " ms with speculation (" + fixed(*g.processor_speedup(), 2) + " times)\n";
}

// Which share of the time an oracle would have taken, overall and by category.
std::string oracle_lines(const BenchResult& r) {
  if (!r.overall.oracle_share()) return "";
  std::string text = "an oracle, which knows what will hold, would take " +
                     fixed(100.0 * *r.overall.oracle_share(), 0) + " % of the time";
  if (r.categories.size() < 2) return text + "\n";
  text += ":";
  for (const BenchGroup& group : r.categories) {
    if (!group.oracle_share()) continue;
    const std::string part = " " + group.name + " " + fixed(100.0 * *group.oracle_share(), 0) + ",";
    const std::size_t line = text.size() - text.rfind('\n') - 1;
    text += (line + part.size() > 98 ? "\n " : "") + part;
  }
  text.back() = '\n';
  return text;
}

// "label 1: 1.00, 2: 1.04, ...", of the value that `of` makes of each point, in lines of at most
// 100 columns.
template <class Function>
std::string curve_line(const std::string& label, const std::vector<CostPoint>& costs,
                       const Function& of) {
  std::string text = label;
  std::size_t begin = 0;  // of the last line
  for (const CostPoint& point : costs) {
    const std::string part =
        " " + std::to_string(point.width) + ": " + fixed(of(point.ms, point.width), 2);
    if (text.size() - begin + part.size() > 98) {
      begin = text.size() + 1;
      text += "\n ";
    }
    text += part + ",";
  }
  text.back() = '\n';
  return text;
}

}  // namespace

Json bench_json(const BenchResult& r) {
  const BenchSetting& s = r.setting;
  Json categories = Json::object();
  for (const BenchGroup& group : r.categories) categories[group.name] = group_json(group);
  Json object = {{"overall", group_json(r.overall)},
                 {"categories", std::move(categories)},
                 {"cost_curve", api::costs_json(r.costs)},
                 {"floor", floor_json(r.floor)},
                 {"floor_reason", r.floor_reason.empty() ? Json() : Json(r.floor_reason)},
                 {"ceiling", ceiling_json(r.costs)},
                 {"calibration", score_json(r.score)},
                 {"prompts", s.prompts},
                 {"repetitions", r.repetitions},
                 {"until", s.until},
                 {"sure", r.is_sure()},
                 {"interrupted", r.interrupted},
                 {"model", s.target},
                 {"model_description", s.target_description},
                 {"draft_model", s.draft ? Json(*s.draft) : Json()},
                 {"drafter", s.drafter},
                 {"width", s.width},
                 {"rule", s.rule},
                 {"exactness", s.exactness},
                 {"exactness_coverage", s.exactness_coverage},
                 {"temperature", s.temperature},
                 {"seed", s.seed},
                 {"max_tokens", s.max_tokens},
                 {"threads", s.threads},
                 {"machine", machine_json(s.machine)},
                 {"date", s.machine.date},
                 {"command", s.command}};
  api::add_kernels(s.kernels, &object);
  return object;
}

std::string speedup_text(const BenchGroup& g) {
  if (!g.speedup) return "-";
  std::string text = fixed(*g.speedup, 2);
  if (g.interval)
    text += " (" + fixed(g.interval->low, 2) + " to " + fixed(g.interval->high, 2) + ")";
  return text;
}

std::string bench_table(const BenchResult& r) {
  const BenchSetting& s = r.setting;
  std::string table = "measured " + std::to_string(s.prompts) +
                      (s.prompts == 1 ? " prompt, " : " prompts, ") +
                      std::to_string(r.repetitions) + " of " + std::to_string(s.repetitions) +
                      " repetitions, plain and with " + s.drafter + ", width " + s.width +
                      "; temperature " + shortly(static_cast<double>(s.temperature)) + ", seed " +
                      std::to_string(s.seed) + "\nmachine  " + machine_text(s.machine) + ", " +
                      std::to_string(s.threads) + (s.threads == 1 ? " thread" : " threads") +
                      "\nkernels  " + wrap(kernels_text(s.kernels), 9, 100) + "\n\n";
  table += padded("category", 24, false) + padded("plain t/s", 9, true) +
           padded("speculative", 12, true) + padded("speed-up (95 %)", 22, true) +
           padded("per step", 10, true) + padded("accepted", 10, true) +
           padded("identical", 12, true) + "\n";
  for (const BenchGroup& group : r.categories) table += group_row(group);
  if (r.categories.size() != 1) table += group_row(r.overall);
  if (r.categories.size() > 1) table += "(overall: geometric mean over the categories)\n";
  table += sureness_line(r) + processor_line(r.overall);
  if (!r.costs.empty()) {
    table += "\n" + curve_line("a step of b tokens, in single ones:", r.costs,
                               [&r](double ms, int) { return ms / r.costs[0].ms; });
  }
  if (!r.floor.empty()) {
    table += curve_line("of the least it could take here:", r.costs, [&r](double ms, int width) {
      const auto at = std::find_if(r.floor.begin(), r.floor.end(),
                                   [width](const Floor& floor) { return floor.width == width; });
      return at == r.floor.end() ? 0.0 : ms / at->ms();
    });
  }
  if (!r.floor_reason.empty()) {
    table += "the least it could take was not measured: " + one_line(r.floor_reason) + "\n";
  }
  if (const std::optional<Ceiling> ceiling = ceiling_of(r.costs)) {
    table += "ceiling: " + fixed(ceiling->speedup, 2) + " times plain decoding (steps of " +
             std::to_string(ceiling->width) + ", every guess right, guessed in no time)\n";
  }
  table += oracle_lines(r);
  if (r.score.n() > 0) {
    table += "predictions of acceptance: calibration error " +
             fixed(r.score.calibration_error(), 3) + ", Brier score " + fixed(r.score.brier(), 3) +
             " (mean of each depth: " + fixed(r.score.brier_of_means(), 3) + ")\n";
  }
  return table;
}

}  // namespace outrider::lab
