#include "lab/bench_result.h"

#include <algorithm>
#include <utility>

namespace outrider::lab {
namespace {

// Tokens and time of one category in one repetition.
struct Speed {
  double tokens[2] = {0.0, 0.0};  // plain, speculative
  double ms[2] = {0.0, 0.0};

  bool known() const { return tokens[0] > 0 && tokens[1] > 0 && ms[0] > 0 && ms[1] > 0; }
  double tps(std::size_t which) const { return 1000.0 * tokens[which] / ms[which]; }
};

struct Rates {
  std::vector<double> plain;  // [repetitions]
  std::vector<double> speculative;
};

template <class T>
void add_each(std::vector<T>& sums, const std::vector<T>& more, void (*add)(T&, const T&)) {
  if (sums.size() < more.size()) sums.resize(more.size());
  for (std::size_t i = 0; i < more.size(); ++i) add(sums[i], more[i]);
}

void add_pair(BenchGroup& group, const BenchPair& pair) {
  const SpeculationStats& s = pair.speculative_steps;
  ++group.pairs;
  group.identical += pair.identical ? 1 : 0;
  group.steps += s.steps;
  group.emitted += s.emitted;
  group.drafted += s.drafted;
  group.accepted += s.accepted;
  group.plain_time.add(pair.plain, pair.plain_steps);
  group.speculative_time.add(pair.speculative, s);
  group.processor.plain_ms += pair.processor.plain_ms;
  group.processor.speculative_ms += pair.processor.speculative_ms;
  group.plain_tokens += pair.plain.predicted_after_first + 1;
  group.speculative_tokens += pair.speculative.predicted_after_first + 1;
  if (pair.oracle) {
    group.oracle.taken_ms += pair.oracle->taken_ms;
    group.oracle.oracle_ms += pair.oracle->oracle_ms;
  }
  add_each<std::int64_t>(group.steps_by_width, s.steps_by_width,
                         [](std::int64_t& sum, const std::int64_t& n) { sum += n; });
  add_each<DepthStats>(group.by_depth, s.by_depth,
                       [](DepthStats& sum, const DepthStats& d) { sum.add(d); });
}

// Short texts say nothing of the speed: the first token's time is not part of it.
Speed speed_of(const std::vector<BenchPair>& pairs, std::size_t category, std::int32_t repetition) {
  Speed speed;
  for (const BenchPair& pair : pairs) {
    if (pair.category != category || pair.repetition != repetition) continue;
    const Timings* const timings[2] = {&pair.plain, &pair.speculative};
    if (timings[0]->predicted_after_first == 0 || timings[1]->predicted_after_first == 0) continue;
    for (std::size_t i = 0; i < 2; ++i) {
      speed.tokens[i] += static_cast<double>(timings[i]->predicted_after_first);
      speed.ms[i] += timings[i]->predicted_ms;
    }
  }
  return speed;
}

void set_speeds(BenchGroup& group, const Rates& rates) {
  group.plain_tps = geometric_mean(rates.plain);
  group.speculative_tps = geometric_mean(rates.speculative);
  for (std::size_t i = 0; i < rates.plain.size(); ++i) {
    group.ratios.push_back(rates.speculative[i] / rates.plain[i]);
  }
  group.speedup = geometric_mean(group.ratios);
  group.interval = ratio_interval(group.ratios);
}

void set_first_tokens(BenchGroup& group, const std::vector<BenchPair>& pairs,
                      std::optional<std::size_t> category) {
  std::vector<double> plain;
  std::vector<double> speculative;
  for (const BenchPair& pair : pairs) {
    if (category && pair.category != *category) continue;
    plain.push_back(pair.plain.first_token_ms);
    speculative.push_back(pair.speculative.first_token_ms);
  }
  if (plain.empty()) return;
  group.plain_first_token_ms = interpolated_quantile(std::move(plain), 0.5);
  group.speculative_first_token_ms = interpolated_quantile(std::move(speculative), 0.5);
}

// Those of whole repetitions, where there is one.
std::vector<BenchPair> counting(const BenchSetting& setting, const std::vector<BenchPair>& pairs,
                                std::int32_t& repetitions) {
  const std::size_t whole = static_cast<std::size_t>(setting.prompts);
  const std::size_t n_whole = whole == 0 ? 0 : pairs.size() / whole;
  if (n_whole == 0) {
    repetitions = pairs.empty() ? 0 : 1;
    return pairs;
  }
  repetitions = static_cast<std::int32_t>(n_whole);
  return {pairs.begin(), pairs.begin() + static_cast<std::ptrdiff_t>(n_whole * whole)};
}

}  // namespace

void TimeParts::add(const Timings& timings, const SpeculationStats& stats) {
  draft_ms += stats.draft_ms;
  verify_ms += stats.verify_ms;
  sample_ms += stats.sample_ms;
  plan_ms += stats.plan_ms;
  total_ms += timings.predicted_ms;
  tokens += timings.predicted_after_first;
}

std::optional<double> BenchGroup::processor_speedup() const {
  const bool known = processor.plain_ms > 0.0 && processor.speculative_ms > 0.0 &&
                     plain_tokens > 0 && speculative_tokens > 0;
  if (!known) return std::nullopt;
  return processor.plain_ms / static_cast<double>(plain_tokens) /
         (processor.speculative_ms / static_cast<double>(speculative_tokens));
}

std::optional<double> BenchGroup::interval_width() const {
  if (!speedup || !interval) return std::nullopt;
  return std::max(interval->high / *speedup, *speedup / interval->low) - 1.0;
}

bool BenchResult::is_sure() const {
  const std::optional<double> width = overall.interval_width();
  return width && *width <= setting.until;
}

BenchResult sum_up(BenchSetting setting, const std::vector<BenchPair>& pairs, bool interrupted) {
  BenchResult result;
  result.interrupted = interrupted;
  const std::vector<BenchPair> used = counting(setting, pairs, result.repetitions);
  BenchGroup& overall = result.overall;
  overall.name = "overall";
  // [repetitions][categories]
  std::vector<std::vector<double>> plain(static_cast<std::size_t>(result.repetitions));
  std::vector<std::vector<double>> speculative(plain.size());
  for (std::size_t c = 0; c < setting.categories.size(); ++c) {
    BenchGroup group{.name = setting.categories[c]};
    Rates rates;
    for (const BenchPair& pair : used) {
      if (pair.category == c) add_pair(group, pair);
    }
    if (group.pairs == 0) continue;
    for (std::size_t r = 0; r < plain.size(); ++r) {
      const Speed speed = speed_of(used, c, static_cast<std::int32_t>(r));
      if (!speed.known()) continue;
      rates.plain.push_back(speed.tps(0));
      rates.speculative.push_back(speed.tps(1));
      plain[r].push_back(speed.tps(0));
      speculative[r].push_back(speed.tps(1));
    }
    set_speeds(group, rates);
    set_first_tokens(group, used, c);
    result.categories.push_back(std::move(group));
  }
  Rates all;
  for (std::size_t r = 0; r < plain.size(); ++r) {
    if (plain[r].empty()) continue;
    all.plain.push_back(*geometric_mean(plain[r]));
    all.speculative.push_back(*geometric_mean(speculative[r]));
  }
  for (const BenchPair& pair : used) add_pair(overall, pair);
  set_speeds(overall, all);
  set_first_tokens(overall, used, std::nullopt);
  result.setting = std::move(setting);
  return result;
}

std::optional<Ceiling> ceiling_of(const std::vector<CostPoint>& costs) {
  if (costs.empty() || costs[0].width != 1) return std::nullopt;
  Ceiling best;
  for (const CostPoint& point : costs) {
    const double speedup = point.width * costs[0].ms / point.ms;
    if (speedup > best.speedup) best = {.width = point.width, .speedup = speedup};
  }
  return best;
}

}  // namespace outrider::lab
