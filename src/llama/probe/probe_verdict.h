// What a probe says of what it found.
#pragma once

#include <cstdint>
#include <string>

#include "llama/probe/probe.h"
#include "llama/probe/probe_coverage.h"

namespace outrider::llama {

struct ProbeFindings {
  std::int32_t widest = 0;  // width that was asked for
  std::int32_t limit = 0;   // no difference was seen up to this width
  std::string reason = {};  // the difference that set it
  bool complete = true;     // everything that was planned was compared
  bool suspicious = false;  // a difference was seen
  bool others_differ = false;
  bool pieces_differ = false;
  bool has_others = false;  // the model takes several sequences
  double elapsed_ms = 0.0;  // in earlier probes too
};

// Only what was compared at every place counts.
ProbeReport report_of(const ProbeFindings& found, const ProbeCoverage& coverage);

}  // namespace outrider::llama
