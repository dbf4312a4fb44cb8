#include "tools/chat/chat_stats.h"

#include <algorithm>

#include "base/numbers.h"
#include "run/stats_table.h"

namespace outrider::tools {
namespace {

double as_double(std::int64_t count) { return static_cast<double>(count); }

std::string accepted_text(std::int64_t accepted, std::int64_t drafted) {
  return std::to_string(accepted) + "/" + std::to_string(drafted) + " = " +
         percent(as_double(accepted), as_double(drafted)) + " of the drafted tokens";
}

std::string drafter_text(const DrafterStats& drafter) {
  if (drafter.drafted > 0) return accepted_text(drafter.accepted, drafter.drafted);
  return drafter.calls > 0 ? "none of its guesses were sent to the target"
                           : "not used: the planner chose to go without it";
}

}  // namespace

void ChatStats::add(const Completion& completion) {
  const SpeculationStats& s = completion.speculation;
  ++answers_;
  tokens_ += static_cast<std::int64_t>(completion.tokens.size());
  prompt_ += completion.prompt_tokens;
  cached_ += completion.cached_tokens;
  timed_tokens_ += completion.timings.predicted_after_first;
  predicted_ms_ += completion.timings.predicted_ms;
  if (const double plain_ms = plain_decoding_ms(s); plain_ms > 0.0) {
    plain_ms_ += plain_ms;
    against_ms_ += completion.timings.predicted_ms;
  }
  steps_ += s.steps;
  emitted_ += s.emitted;
  drafted_ += s.drafted;
  accepted_ += s.accepted;
  for (const DrafterStats& more : s.drafters) {
    const auto same = std::find_if(drafters_.begin(), drafters_.end(),
                                   [&](const DrafterStats& d) { return d.name == more.name; });
    if (same == drafters_.end()) {
      drafters_.push_back(more);
      continue;
    }
    same->calls += more.calls;
    same->drafted += more.drafted;
    same->accepted += more.accepted;
  }
}

std::string ChatStats::table() const {
  std::string table = table_row("answers", std::to_string(answers_));
  std::string generated = std::to_string(tokens_) + " tokens";
  if (timed_tokens_ > 0 && predicted_ms_ > 0.0) {
    generated += " (" + fixed(1000.0 * as_double(timed_tokens_) / predicted_ms_, 1) + " tokens/s)";
  }
  table += table_row("prompts", std::to_string(prompt_) + " tokens, " +
                                    percent(as_double(cached_), as_double(prompt_)) +
                                    " of them read before");
  table += table_row("generated", generated);
  if (steps_ > 0) {
    table +=
        table_row("steps", std::to_string(steps_) + ", " +
                               fixed(as_double(emitted_) / as_double(steps_), 2) + " tokens each");
  }
  if (drafted_ > 0) table += table_row("accepted", accepted_text(accepted_, drafted_));
  const std::string speed_up = speed_up_text(plain_ms_, against_ms_);
  if (!speed_up.empty()) table += table_row("speed-up", speed_up);
  return table + drafter_rows(drafters_);
}

std::string drafter_rows(const std::vector<DrafterStats>& drafters) {
  std::string rows;
  for (const DrafterStats& drafter : drafters) {
    rows += table_row("  " + drafter.name, drafter_text(drafter));
  }
  return rows;
}

}  // namespace outrider::tools
