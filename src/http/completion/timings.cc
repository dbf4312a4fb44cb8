#include "http/completion/timings.h"

#include <algorithm>

namespace outrider::http {

using json::Json;

namespace {

double per(double numerator, double denominator) {
  return denominator > 0.0 ? numerator / denominator : 0.0;
}

}  // namespace

Json timings_json(const TimedCounts& c) {
  const Timings& t = c.timings;
  const double read = static_cast<double>(t.prompt_tokens_evaluated);
  const double after_first = static_cast<double>(t.predicted_after_first);
  Json timings = {{"cache_n", c.cached_tokens},
                  {"prompt_n", t.prompt_tokens_evaluated},
                  {"prompt_ms", t.prompt_ms},
                  {"prompt_per_token_ms", per(t.prompt_ms, read)},
                  {"prompt_per_second", per(1000.0 * read, t.prompt_ms)},
                  {"predicted_n", c.predicted_tokens},
                  {"predicted_ms", t.predicted_ms},
                  {"predicted_per_token_ms", per(t.predicted_ms, after_first)},
                  {"predicted_per_second", per(1000.0 * after_first, t.predicted_ms)},
                  {"first_token_ms", t.first_token_ms}};
  if (c.drafted > 0) {
    timings["draft_n"] = c.drafted;
    timings["draft_n_accepted"] = c.accepted;
  }
  return timings;
}

Json timings_json(const Completion& c) {
  return timings_json(TimedCounts{.timings = c.timings,
                                  .cached_tokens = c.cached_tokens,
                                  .predicted_tokens = static_cast<std::int64_t>(c.tokens.size()),
                                  .drafted = c.speculation.drafted,
                                  .accepted = c.speculation.accepted});
}

Json timings_so_far(const SaidSoFar& said, const PromptStats& prompt, double ms) {
  const double first_ms = said.first_ms.value_or(ms);
  const Timings timings{.prompt_ms = first_ms,
                        .predicted_ms = ms - first_ms,
                        .first_token_ms = first_ms,
                        .prompt_tokens_evaluated = prompt.n_tokens - prompt.n_cached,
                        .predicted_after_first = std::max<std::int64_t>(said.n_tokens - 1, 0)};
  return timings_json(TimedCounts{
      .timings = timings, .cached_tokens = prompt.n_cached, .predicted_tokens = said.n_tokens});
}

Json prompt_progress_json(const PromptStats& prompt, double fraction, double ms) {
  const double read = static_cast<double>(prompt.n_tokens - prompt.n_cached) * fraction;
  return {{"total", prompt.n_tokens},
          {"cache", prompt.n_cached},
          {"processed", prompt.n_cached + static_cast<std::int64_t>(read)},
          {"time_ms", ms}};
}

}  // namespace outrider::http
