// The report of `outrider bench`: one HTML file that needs nothing else.
#pragma once

#include <string>

#include "lab/bench_result.h"

namespace outrider::lab {

// A whole page: what was measured and on what, a table, and plots as inline SVG. No scripts, no
// links to elsewhere; whatever comes from outside (names of files and categories) is escaped.
std::string bench_report(const BenchResult& result);

}  // namespace outrider::lab
