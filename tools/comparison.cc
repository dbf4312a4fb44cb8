#include "tools/comparison.h"

#include <algorithm>
#include <cstdio>

#include "tools/logit_gap.h"
#include "tools/stats_table.h"

namespace outrider::tools {
namespace {

using json::Json;

constexpr std::size_t kShownDivergences = 20;

// Whether the probe's verdict promises equality at the width that was run.
bool promises_equality(const Comparison& c) {
  if (c.exactness.kind == Exactness::Kind::kExact) return true;
  return c.exactness.kind == Exactness::Kind::kUpToWidth && c.width <= c.exactness.width;
}

Json ratio(std::int64_t part, std::int64_t whole) {
  return whole > 0 ? Json(static_cast<double>(part) / static_cast<double>(whole)) : Json();
}

std::int64_t count_suspicious(const Comparison& c) {
  return std::count_if(c.divergences.begin(), c.divergences.end(),
                       [](const Divergence& d) { return d.suspicious(); });
}

Json divergence_json(const Divergence& d) {
  return {{"prompt", d.prompt},
          {"position", d.position},
          {"logit_gap", d.repeatable ? Json(d.logit_gap) : Json()},
          {"id", d.id},
          {"plain", {{"id", d.plain}, {"text", d.plain_text}}},
          {"speculative", {{"id", d.speculative}, {"text", d.speculative_text}}},
          {"suspicious", d.suspicious()}};
}

std::string divergence_line(const Divergence& d) {
  char gap[64];
  std::snprintf(gap, sizeof(gap), "logit gap %.6f", d.logit_gap);
  std::string line = "  prompt " + std::to_string(d.prompt) + " (id " + d.id + "), token " +
                     std::to_string(d.position) + ": " + json::encode(Json(d.speculative_text)) +
                     " for " + json::encode(Json(d.plain_text)) + ", ";
  line += d.repeatable ? gap : "and plain decoding does not repeat itself";
  return line + (d.suspicious() ? "  <- more than rounding can explain: suspect a bug\n" : "\n");
}

}  // namespace

// Written as !(inside) so that NaN is suspicious.
bool Divergence::suspicious() const { return !repeatable || !(logit_gap <= kSuspiciousGap); }

std::string observed_verdict(const Comparison& c) {
  const bool broken = c.identical < c.prompts && promises_equality(c);
  return broken ? "distributional" : c.exactness.verdict();
}

std::string verdict_reason(const Comparison& c) {
  if (c.identical < c.prompts && promises_equality(c)) {
    return "the probe said '" + c.exactness.verdict() + "' (" + c.exactness.coverage +
           "), but texts differ";
  }
  return c.exactness.reason;
}

Json comparison_json(const Comparison& c) {
  Json divergences = Json::array();
  for (const Divergence& d : c.divergences) divergences.push_back(divergence_json(d));
  const std::string reason = verdict_reason(c);
  return {
      {"prompts", c.prompts},
      {"tokens", c.tokens},
      {"identical", c.identical},
      {"first_divergences", std::move(divergences)},
      {"verdict", c.tokens > 0 ? Json(observed_verdict(c)) : Json()},
      {"verdict_reason", reason.empty() ? Json() : Json(reason)},
      {"exactness_coverage", c.exactness.coverage.empty() ? Json() : Json(c.exactness.coverage)},
      {"suspicious", count_suspicious(c)},
      {"drafter", c.drafter},
      {"width", c.width},
      {"temperature", c.temperature},
      {"seed", c.seed},
      {"tokens_per_step", ratio(c.emitted, c.steps)},
      {"acceptance_rate", ratio(c.accepted, c.drafted)}};
}

std::string comparison_table(const Comparison& c) {
  const auto row = [](const std::string& label, const std::string& value) {
    std::string line = label;
    line.resize(14, ' ');
    return line + value + "\n";
  };
  char numbers[128];
  std::snprintf(numbers, sizeof(numbers), "width %d, temperature %g, seed %llu", c.width,
                static_cast<double>(c.temperature), static_cast<unsigned long long>(c.seed));
  std::string table =
      row("compared", std::to_string(c.prompts) + " prompts, " + std::to_string(c.tokens) +
                          " tokens, plain and with " + c.drafter + "; " + numbers);
  table += row("identical", std::to_string(c.identical) + " of " + std::to_string(c.prompts));
  const double steps = static_cast<double>(std::max<std::int64_t>(c.steps, 1));
  std::snprintf(numbers, sizeof(numbers),
                "%.2f tokens a step, %lld/%lld = ", static_cast<double>(c.emitted) / steps,
                static_cast<long long>(c.accepted), static_cast<long long>(c.drafted));
  table += row("speculation",
               numbers + percent(static_cast<double>(c.accepted), static_cast<double>(c.drafted)) +
                   " of the drafted tokens accepted");
  std::string verdict = c.tokens > 0 ? observed_verdict(c) : "none, nothing was compared";
  const std::string reason = verdict_reason(c);
  if (!reason.empty()) verdict += ": " + reason;
  table += row("verdict", verdict);
  if (!c.exactness.coverage.empty()) table += row("probed", c.exactness.coverage);
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

}  // namespace outrider::tools
