#include "llama/probe/probe_verdict.h"

#include <cstdio>

namespace outrider::llama {
namespace {

Exactness verdict_of(const ProbeFindings& found, const ProbeCoverage& coverage) {
  Exactness exactness;
  const bool others_open = found.has_others && !coverage.others_everywhere();
  exactness.width = found.others_differ ? 1 : coverage.widest_everywhere(found.limit);
  if (exactness.width < 2 || others_open) {
    exactness.kind = Exactness::Kind::kDistributional;
  } else if (exactness.width < found.widest) {
    exactness.kind = Exactness::Kind::kUpToWidth;
  } else {
    exactness.kind = Exactness::Kind::kExact;
  }
  exactness.reason = found.reason;
  if (exactness.kind != Exactness::Kind::kExact && found.reason.empty()) {
    exactness.reason = others_open ? "batches with other requests" : "wider batches";
    exactness.reason += " were not compared everywhere in the probe's time";
  }
  return exactness;
}

std::string coverage_text(const ProbeFindings& found, const ProbeCoverage& coverage) {
  std::string text = coverage.text(found.limit);
  if (found.pieces_differ) {
    text += coverage.longest_piece() > 0 ? ", longer ones differ" : "; prompt pieces differ";
  }
  char seconds[32];
  std::snprintf(seconds, sizeof seconds, "; %.1f s", found.elapsed_ms / 1000.0);
  text += seconds;
  if (!found.complete) text += ", cut off by the budget";
  return text;
}

}  // namespace

ProbeReport report_of(const ProbeFindings& found, const ProbeCoverage& coverage) {
  ProbeReport report;
  report.complete = found.complete;
  report.everywhere = coverage.widest_everywhere(found.limit);
  report.longest_piece = coverage.longest_piece();
  report.pieces_differ = found.pieces_differ || found.limit < found.widest;
  report.rows = coverage.rows();
  report.elapsed_ms = found.elapsed_ms;
  const bool differs = found.suspicious || found.others_differ || found.pieces_differ;
  if (!differs) report.passed = coverage.units();
  report.exactness = verdict_of(found, coverage);
  report.exactness.coverage = coverage_text(found, coverage);
  return report;
}

}  // namespace outrider::llama
