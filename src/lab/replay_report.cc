// What `outrider replay` prints: the object and the table (lab/replay_run.h).
#include <cstdio>

#include "api/completion_json.h"
#include "lab/replay_run.h"
#include "run/stats_table.h"

namespace outrider::lab {
namespace {

using json::Json;

double quotient(double a, double b) { return b > 0.0 ? a / b : 0.0; }

Json or_null(double a, double b) { return b > 0.0 ? Json(a / b) : Json(); }

double load_ms(const ReplayPlan& plan, std::string_view tier) {
  double ms = 0.0;
  for (const ReplayFile& file : plan.files) {
    if (file.opened.file.tier == tier) ms += file.load_ms;
  }
  return ms;
}

std::uint64_t memory_bytes(const ReplayPlan& plan, std::string_view tier) {
  std::uint64_t bytes = 0;
  for (const ReplayFile& file : plan.files) {
    if (file.opened.file.tier == tier) bytes += file.opened.contents->memory_bytes();
  }
  return bytes;
}

// Of the files that are not read as a whole.
std::uint64_t mapped_bytes(const ReplayPlan& plan) {
  std::uint64_t bytes = 0;
  for (const ReplayFile& file : plan.files) {
    if (file.opened.file.tier.empty()) bytes += file.opened.contents->file_bytes();
  }
  return bytes;
}

Json by_drafter(const ReplayStats& stats) {
  Json result = Json::object();
  for (const ReplayDrafterStats& d : stats.drafters) {
    result[d.name] = {{"calls", d.calls},
                      {"drafts", d.drafts},
                      {"accepted_drafts", d.accepted_drafts},
                      {"drafted", d.drafted},
                      {"accepted", d.accepted},
                      {"acceptance_rate", api::ratio(d.accepted, d.drafted)},
                      {"foregone", d.foregone}};
  }
  return result;
}

}  // namespace

Json replay_json(const ReplayPlan& plan, const ReplayResult& result) {
  const ReplayStats& s = result.stats;
  const double draft_ms = s.draft_ms + s.accept_ms;
  const std::uint64_t dynamic =
      result.learned_bytes > 0 ? result.learned_bytes : memory_bytes(plan, "dynamic");
  return {{"drafter", plan.drafter},
          {"width", plan.width},
          {"branches", plan.shape.branches},
          {"texts", s.texts},
          {"tokens", s.tokens},
          {"skipped", result.skipped},
          {"steps", s.steps},
          {"drafted", s.drafted},
          {"accepted", s.accepted},
          {"acceptance_rate", api::ratio(s.accepted, s.drafted)},
          {"tokens_per_step", api::ratio(s.tokens, s.steps)},
          {"draft_us_per_step", or_null(1000.0 * draft_ms, static_cast<double>(s.steps))},
          {"draft_us_per_token", or_null(1000.0 * draft_ms, static_cast<double>(s.drafted))},
          {"draft_ms", draft_ms},
          {"prompt_ms", s.begin_ms},
          {"load_ms", {{"static", load_ms(plan, "static")}, {"dynamic", load_ms(plan, "dynamic")}}},
          {"memory_bytes",
           {{"context", result.context_bytes},
            {"static", memory_bytes(plan, "static")},
            {"dynamic", dynamic},
            {"stores_mapped", mapped_bytes(plan)}}},
          {"drafters", by_drafter(s)},
          {"predicted_speedup", result.speedup ? Json(*result.speedup) : Json()}};
}

std::string replay_table(const ReplayPlan& plan, const ReplayResult& result) {
  const ReplayStats& s = result.stats;
  const double steps = static_cast<double>(s.steps);
  const double drafted = static_cast<double>(s.drafted);
  const double draft_ms = s.draft_ms + s.accept_ms;
  std::string text;
  const auto add = [&text](const std::string& label, const char* format, auto... values) {
    char line[160];
    std::snprintf(line, sizeof(line), format, values...);
    text += table_row(label, line);
  };
  text += table_row("drafter", plan.drafter + ", width " + std::to_string(plan.width));
  add("texts", "%lld, %lld tokens drafted through, %zu skipped", static_cast<long long>(s.texts),
      static_cast<long long>(s.tokens), result.skipped);
  add("loading", "%.2f ms static, %.2f ms dynamic", load_ms(plan, "static"),
      load_ms(plan, "dynamic"));
  add("drafted", "%lld", static_cast<long long>(s.drafted));
  add("accepted", "%lld (%.3f %%)", static_cast<long long>(s.accepted),
      100.0 * quotient(static_cast<double>(s.accepted), drafted));
  add("steps", "%lld, %.3f tokens a step", static_cast<long long>(s.steps), s.tokens_per_step());
  add("drafting", "%.2f ms, %.2f us a step, %.2f us per drafted token; prompts %.2f ms", draft_ms,
      1000.0 * quotient(draft_ms, steps), 1000.0 * quotient(draft_ms, drafted), s.begin_ms);
  for (const ReplayDrafterStats& d : s.drafters) {
    if (s.drafters.size() == 1) break;
    add("  " + d.name, "%lld drafted, %lld accepted, %lld foregone; %lld calls",
        static_cast<long long>(d.drafted), static_cast<long long>(d.accepted),
        static_cast<long long>(d.foregone), static_cast<long long>(d.calls));
  }
  if (result.speedup) add("speed-up", "%.2fx predicted", *result.speedup);
  return text;
}

}  // namespace outrider::lab
