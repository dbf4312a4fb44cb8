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

std::size_t attention_stride(const Attention& call) {
  int most = 0;
  for (int r = 0; r < call.n_rows; ++r) {
    most = std::max(most, call.rows[r].end - call.rows[r].begin);
  }
  return attention_padded(most + 64);  // whole tiles, of at most 32
}

}  // namespace outrider::kernels
