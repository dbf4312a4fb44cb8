#include "kernels/attention.h"

#include <algorithm>

namespace outrider::kernels {

AttentionExtent extent_of(const Attention& call) {
  AttentionExtent extent;
  int widest = 0;
  for (int r = 0; r < call.n_rows; ++r) {
    const QueryRow& row = call.rows[r];
    if (row.begin >= row.end) continue;
    extent.first = extent.end == 0 ? row.begin : std::min(extent.first, row.begin);
    extent.end = std::max(extent.end, row.end);
    widest = std::max(widest, row.end - row.begin);
  }
  extent.stride = attention_padded(widest + 64);  // whole tiles, of at most 32
  return extent;
}

}  // namespace outrider::kernels
