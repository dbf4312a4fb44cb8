#include "kernels/attention.h"

#include <algorithm>

namespace outrider::kernels {

SeenRange seen_range(const Attention& call) {
  SeenRange seen;
  for (int r = 0; r < call.n_rows; ++r) {
    const QueryRow& row = call.rows[r];
    if (row.begin >= row.end) continue;
    seen.first = seen.end == 0 ? row.begin : std::min(seen.first, row.begin);
    seen.end = std::max(seen.end, row.end);
  }
  return seen;
}

}  // namespace outrider::kernels
