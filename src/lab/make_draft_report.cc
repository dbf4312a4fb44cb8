#include <cstdio>

#include "api/completion_json.h"
#include "base/numbers.h"
#include "base/wrap.h"
#include "lab/draft_verdict.h"
#include "lab/make_draft_run.h"
#include "run/stats_table.h"

namespace outrider::lab {
namespace {

using json::Json;

Json candidate_json(const DraftCandidate& c) {
  Json object = {{"made", make_text(c.make)},
                 {"type", c.make.type.empty() ? Json() : Json(c.make.type)},
                 {"tokens", c.make.n_tokens > 0 ? Json(c.make.n_tokens) : Json()},
                 {"layers_left_out", c.make.n_left_out},
                 {"first_left_out", c.make.n_left_out > 0 ? Json(c.make.first_left_out) : Json()}};
  if (!c.status.ok()) {
    object["error"] = c.status.message();
    return object;
  }
  object["bytes"] = c.bytes;
  object["acceptance_rate"] = c.first_chance;
  object["first_ms"] = c.first_ms;
  object["further_ms"] = c.further_ms;
  object["processor_ms"] = c.processor_ms;
  object["predicted"] = {{"speedup", c.prediction.speedup},
                         {"guesses", c.prediction.guesses},
                         {"tokens_per_step", c.prediction.tokens}};
  object["measured"] = Json();
  if (c.measured) {
    object["measured"] = {
        {"speedup", c.measured->speedup},
        {"speedup_low", c.measured->interval ? Json(c.measured->interval->low) : Json()},
        {"speedup_high", c.measured->interval ? Json(c.measured->interval->high) : Json()},
        {"processor_speedup",
         c.measured->processor_speedup > 0.0 ? Json(c.measured->processor_speedup) : Json()},
        {"identical", c.measured->identical}};
  }
  return object;
}

std::string candidate_row(const DraftCandidate& c, bool chosen) {
  char line[160];
  if (!c.status.ok()) {
    std::snprintf(line, sizeof(line), "  %-44.44s ", make_text(c.make).c_str());
    return line + std::string("not usable: ") + c.status.message() + "\n";
  }
  std::snprintf(line, sizeof(line), "%c %-44.44s %7.1f %6.1f %% %7.2f %7.2f %8.2f %8s\n",
                chosen ? '*' : ' ', make_text(c.make).c_str(), static_cast<double>(c.bytes) / 1e6,
                100.0 * c.first_chance, c.further_ms, c.processor_ms, c.prediction.speedup,
                c.measured ? fixed(c.measured->speedup, 2).c_str() : "-");
  return line;
}

}  // namespace

Json make_draft_json(const MakeDraftResult& result) {
  Json candidates = Json::array();
  for (const DraftCandidate& c : result.candidates) candidates.push_back(candidate_json(c));
  Json object = {{"target", result.target},
                 {"source", result.source},
                 {"output", result.chosen ? Json(result.output) : Json()},
                 {"verdict", result.verdict},
                 {"chosen", result.chosen ? Json(*result.chosen) : Json()},
                 {"candidates", candidates},
                 {"sample_tokens", result.walked_tokens},
                 {"notes", result.notes},
                 {"machine", machine_json(result.machine)},
                 {"command", result.command}};
  api::add_kernels(result.kernels, &object);
  return object;
}

std::string make_draft_table(const MakeDraftResult& result) {
  std::string table = "drafts for " + result.target + "\nmade of " + result.source + ", on " +
                      std::to_string(result.walked_tokens) + " tokens that the target said, " +
                      machine_text(result.machine) + "\nkernels  " +
                      wrap(kernels_text(result.kernels), 9, 100) + "\n\n";
  char line[160];
  std::snprintf(line, sizeof(line), "  %-44s %7s %8s %7s %7s %8s %8s\n", "", "MB", "accepted", "ms",
                "cpu ms", "expected", "measured");
  table += line;
  for (std::size_t i = 0; i < result.candidates.size(); ++i) {
    table += candidate_row(result.candidates[i], result.chosen == i);
  }
  table += "\n";
  for (const DraftCandidate& c : result.candidates) {
    if (!c.measured) continue;
    table += "measured: " + make_text(c.make) + ": " + speed_text(*c.measured) + "\n";
    if (!c.measured->identical) table += "  not all of its texts are those of plain decoding\n";
  }
  for (const std::string& note : result.notes) table += "note: " + note + "\n";
  table += result.verdict + "\n";
  if (result.chosen) table += "written: " + result.output + "\n";
  return table;
}

}  // namespace outrider::lab
