#include "run/stats_table.h"

#include "base/numbers.h"
#include "base/wrap.h"
#include "request/completion_request.h"
#include "verify/acceptance_rule.h"

namespace outrider {
namespace {

constexpr std::size_t kValues = 14;  // the column where they begin
constexpr std::size_t kWidth = 80;   // of a terminal

std::string rate(std::int64_t count, double ms) {
  return count > 0 && ms > 0.0 ? fixed(1000.0 * static_cast<double>(count) / ms, 1) + " tokens/s"
                               : "no rate";
}

std::string finish_text(const Completion& c) {
  std::string text(finish_reason_name(c.finish));
  if (!c.stop.empty()) text += " (at a --stop text)";
  return text;
}

// Two parts a line: four do not fit.
std::string time_row(const Completion& c) {
  const SpeculationStats& s = c.speculation;
  const double total = c.timings.predicted_ms;
  const auto part = [total](const char* label, double ms) {
    return std::string(label) + " " + fixed(ms, 1) + " ms (" + percent(ms, total) + ")";
  };
  return duration(total) + " after the first token:\n" + part("draft", s.draft_ms) + ", " +
         part("verify", s.verify_ms) + ",\n" + part("sample", s.sample_ms) + ", " +
         part("plan", s.plan_ms);
}

std::string speculation_row(const SpeculationStats& s, std::int32_t width) {
  std::string text;
  if (s.enabled) {
    for (const DrafterStats& drafter : s.drafters)
      text += (text.empty() ? "" : ", ") + drafter.name;
    text += ", rule " + std::string(traits_of(s.rule).name) + ", width " +
            (width == kAutoWidth ? "auto" : std::to_string(width));
  } else {
    text = "off";
  }
  if (!s.reason.empty()) text += ": " + s.reason;
  return text;
}

std::string packed_text(const KernelUse& kernels) {
  const auto mega = [](std::uint64_t bytes) {
    return fixed(static_cast<double>(bytes) / 1e6, 0) + " MB";
  };
  return mega(kernels.packed_bytes) + " packed, in the file " + mega(kernels.packed_in_file_bytes);
}

// A row of as many lines as it takes.
std::string wrapped_row(const std::string& label, const std::string& value) {
  return table_row(label, wrap(value, kValues, kWidth));
}

}  // namespace

double plain_decoding_ms(const SpeculationStats& stats) {
  const double passes = stats.enabled ? stats.plain_ms.value_or(0.0) : 0.0;
  return passes > 0.0 ? passes + stats.sample_ms : 0.0;
}

std::string speed_up_text(double plain_ms, double ms) {
  if (plain_ms <= 0.0 || ms <= 0.0) return "";
  return "about " + fixed(plain_ms / ms, 2) + " times plain decoding";
}

std::string table_row(const std::string& label, const std::string& value) {
  std::string line = label;
  line.resize(kValues, ' ');
  return line + value + "\n";
}

std::string kernels_text(const KernelUse& kernels) {
  return kernels.own ? "Outrider's, " + kernels.instruction_set : "llama.cpp's: " + kernels.reason;
}

std::string percent(double part, double whole) {
  return whole > 0.0 ? fixed(100.0 * part / whole, 1) + " %" : "-";
}

std::string duration(double ms) {
  return ms < 10000.0 ? fixed(ms, 1) + " ms" : fixed(ms / 1000.0, 1) + " s";
}

std::string stats_table(const Completion& c, const Exactness& exactness, const KernelUse& kernels,
                        std::int32_t width) {
  const SpeculationStats& s = c.speculation;
  const Timings& t = c.timings;
  std::string table;
  table += wrapped_row("prompt", std::to_string(c.prompt_tokens) + " tokens in " +
                                     duration(t.prompt_ms) + " (" +
                                     rate(t.prompt_tokens_evaluated, t.prompt_ms) + ")");
  table += wrapped_row(
      "generated", std::to_string(c.tokens.size()) + " tokens in " + duration(t.predicted_ms) +
                       " (" + rate(t.predicted_after_first, t.predicted_ms) + "),\nfirst after " +
                       duration(t.first_token_ms) + ", finished: " + finish_text(c));
  table += wrapped_row("speculation", speculation_row(s, width));
  if (s.steps > 0) {
    table += wrapped_row(
        "steps", std::to_string(s.steps) + ", " +
                     fixed(static_cast<double>(s.emitted) / static_cast<double>(s.steps), 2) +
                     " tokens each");
  }
  if (s.drafted > 0) {
    table += wrapped_row(
        "accepted", std::to_string(s.accepted) + "/" + std::to_string(s.drafted) + " = " +
                        percent(static_cast<double>(s.accepted), static_cast<double>(s.drafted)) +
                        " of the drafted tokens");
  }
  const std::string speed_up = speed_up_text(plain_decoding_ms(s), t.predicted_ms);
  if (!speed_up.empty()) table += wrapped_row("speed-up", speed_up);
  table += wrapped_row("time", time_row(c));
  const Exactness held = exactness_of(s, exactness);
  table +=
      wrapped_row("exactness", held.verdict() + (held.reason.empty() ? "" : ": " + held.reason));
  if (!held.coverage.empty()) table += wrapped_row("probed", held.coverage);
  table += wrapped_row("kernels",
                       kernels_text(kernels) + (kernels.own ? ", " + packed_text(kernels) : ""));
  table += wrapped_row("seed", std::to_string(c.seed));
  return table;
}

}  // namespace outrider
