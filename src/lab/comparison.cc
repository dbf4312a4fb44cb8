#include "lab/comparison.h"

#include <algorithm>
#include <cstdio>

#include "api/completion_json.h"
#include "lab/logit_gap.h"
#include "run/stats_table.h"

namespace outrider::lab {
namespace {

using json::Json;

constexpr std::size_t kShownDivergences = 20;

// The narrowest width at which texts differ though the probe's verdict claims equality; 0: none.
std::int32_t broken_width(const Comparison& c) {
  for (const WidthComparison& w : c.widths) {
    const bool claimed =
        c.exactness.kind == Exactness::Kind::kExact ||
        (c.exactness.kind == Exactness::Kind::kUpToWidth && w.width <= c.exactness.width);
    if (claimed && w.identical < c.prompts) return w.width;
  }
  return 0;
}

WidthComparison total(const Comparison& c) {
  WidthComparison sum;
  for (const WidthComparison& w : c.widths) {
    sum.width = std::max(sum.width, w.width);
    sum.steps += w.steps;
    sum.drafted += w.drafted;
    sum.accepted += w.accepted;
    sum.emitted += w.emitted;
  }
  return sum;
}

Json drafters_json(const std::vector<DrafterComparison>& drafters) {
  Json object = Json::object();
  for (const DrafterComparison& d : drafters) {
    object[d.name] = {{"drafted", d.drafted},
                      {"accepted", d.accepted},
                      {"acceptance_rate", api::ratio(d.accepted, d.drafted)}};
  }
  return object;
}

std::int64_t count_suspicious(const Comparison& c) {
  return std::count_if(c.divergences.begin(), c.divergences.end(),
                       [](const Divergence& d) { return d.suspicious(); });
}

Json divergence_json(const Divergence& d) {
  return {{"prompt", d.prompt},
          {"position", d.position},
          {"width", d.width},
          {"logit_gap", d.repeatable ? Json(d.logit_gap) : Json()},
          {"id", d.id},
          {"plain", {{"id", d.plain}, {"text", d.plain_text}}},
          {"speculative", {{"id", d.speculative}, {"text", d.speculative_text}}},
          {"suspicious", d.suspicious()}};
}

std::string divergence_line(const Divergence& d) {
  char gap[64];
  std::snprintf(gap, sizeof(gap), "logit gap %.6f", d.logit_gap);
  std::string line = "  width " + std::to_string(d.width) + ", prompt " + std::to_string(d.prompt) +
                     " (id " + d.id + "), token " + std::to_string(d.position) + ": " +
                     json::encode(Json(d.speculative_text)) + " for " +
                     json::encode(Json(d.plain_text)) + ", ";
  line += d.repeatable ? gap : "and plain decoding does not repeat itself";
  return line + (d.suspicious() ? "  <- more than rounding can explain: suspect a bug\n" : "\n");
}

}  // namespace

void add_drafters(WidthComparison& width, const SpeculationStats& stats) {
  for (const DrafterStats& d : stats.drafters) {
    if (d.name.empty()) continue;
    std::vector<DrafterComparison>::iterator known =
        std::find_if(width.drafters.begin(), width.drafters.end(),
                     [&d](const DrafterComparison& other) { return other.name == d.name; });
    if (known == width.drafters.end()) {
      known = width.drafters.insert(known, {.name = d.name});
    }
    known->drafted += d.drafted;
    known->accepted += d.accepted;
  }
}

// Written as !(inside) so that NaN is suspicious.
bool Divergence::suspicious() const { return !repeatable || !(logit_gap <= kSuspiciousGap); }

std::string observed_verdict(const Comparison& c) {
  const std::int32_t broken = broken_width(c);
  if (broken == 0) return c.exactness.verdict();
  // The next narrower width that was compared is the most that can still be claimed.
  Exactness seen{
      .kind = Exactness::Kind::kDistributional, .width = 1, .coverage = "", .reason = ""};
  for (const WidthComparison& w : c.widths) {
    if (w.width < broken && w.identical == c.prompts) seen.width = w.width;
  }
  if (seen.width > 1) seen.kind = Exactness::Kind::kUpToWidth;
  return seen.verdict();
}

std::string verdict_reason(const Comparison& c) {
  if (broken_width(c) != 0) {
    return "the probe said '" + c.exactness.verdict() + "' (" + c.exactness.coverage +
           "), but texts differ";
  }
  return c.exactness.reason;
}

Json comparison_json(const Comparison& c) {
  Json divergences = Json::array();
  for (const Divergence& d : c.divergences) divergences.push_back(divergence_json(d));
  const std::string reason = verdict_reason(c);
  const WidthComparison all = total(c);
  Json widths = Json::array();
  for (const WidthComparison& w : c.widths) {
    widths.push_back({{"width", w.width},
                      {"identical", w.identical},
                      {"verdict", w.identical == c.prompts ? "identical" : "different"},
                      {"tokens_per_step", api::ratio(w.emitted, w.steps)},
                      {"acceptance_rate", api::ratio(w.accepted, w.drafted)},
                      {"drafters", drafters_json(w.drafters)}});
  }
  Json object = {
      {"prompts", c.prompts},
      {"tokens", c.tokens},
      {"identical", c.identical},
      {"first_divergences", std::move(divergences)},
      {"verdict", c.tokens > 0 ? Json(observed_verdict(c)) : Json()},
      {"verdict_reason", reason.empty() ? Json() : Json(reason)},
      {"exactness_coverage", c.exactness.coverage.empty() ? Json() : Json(c.exactness.coverage)},
      {"suspicious", count_suspicious(c)},
      {"logprob_difference", c.logprob_difference},
      {"drafter", c.drafter},
      {"width", all.width},
      {"temperature", c.temperature},
      {"seed", c.seed},
      {"tokens_per_step", api::ratio(all.emitted, all.steps)},
      {"acceptance_rate", api::ratio(all.accepted, all.drafted)},
      {"widths", std::move(widths)}};
  api::add_kernels(c.kernels, &object);
  return object;
}

std::string comparison_table(const Comparison& c) {
  char numbers[128];
  std::snprintf(numbers, sizeof(numbers), "temperature %g, seed %llu",
                static_cast<double>(c.temperature), static_cast<unsigned long long>(c.seed));
  std::string table =
      table_row("compared", std::to_string(c.prompts) + " prompts, " + std::to_string(c.tokens) +
                                " tokens, plain and with " + c.drafter + "; " + numbers);
  for (const WidthComparison& w : c.widths) {
    const double steps = static_cast<double>(std::max<std::int64_t>(w.steps, 1));
    std::snprintf(numbers, sizeof(numbers),
                  "%lld of %lld identical; %.2f tokens a step, %lld/%lld = ",
                  static_cast<long long>(w.identical), static_cast<long long>(c.prompts),
                  static_cast<double>(w.emitted) / steps, static_cast<long long>(w.accepted),
                  static_cast<long long>(w.drafted));
    table += table_row(
        "width " + std::to_string(w.width),
        numbers + percent(static_cast<double>(w.accepted), static_cast<double>(w.drafted)) +
            " of the drafted tokens accepted");
    for (const DrafterComparison& d : w.drafters) {
      if (w.drafters.size() < 2) break;
      std::snprintf(numbers, sizeof(numbers), "  %s: %lld/%lld = ", d.name.c_str(),
                    static_cast<long long>(d.accepted), static_cast<long long>(d.drafted));
      table += table_row(
          "", numbers + percent(static_cast<double>(d.accepted), static_cast<double>(d.drafted)));
    }
  }
  std::snprintf(numbers, sizeof(numbers), "%.2g at most, between tokens that agree",
                c.logprob_difference);
  table += table_row("log-probs", numbers);
  std::string verdict = c.tokens > 0 ? observed_verdict(c) : "none, nothing was compared";
  const std::string reason = verdict_reason(c);
  if (!reason.empty()) verdict += ": " + reason;
  table += table_row("verdict", verdict);
  if (!c.exactness.coverage.empty()) table += table_row("probed", c.exactness.coverage);
  table += table_row("kernels", kernels_text(c.kernels));
  if (c.divergences.empty()) return table;
  table +=
      "first differences (logit gap: how much logits must change to turn one into the other)\n";
  for (std::size_t i = 0; i < std::min(c.divergences.size(), kShownDivergences); ++i) {
    table += divergence_line(c.divergences[i]);
  }
  if (c.divergences.size() > kShownDivergences) {
    table += "  and " + std::to_string(c.divergences.size() - kShownDivergences) +
             " more; --json lists all\n";
  }
  return table;
}

}  // namespace outrider::lab
