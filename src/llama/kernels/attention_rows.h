// The rows of queries of an attention in ggml's graph, and the cells that they see, as
// kernels/attention.h takes them. `op` is one that kernel_attention_takes().
#pragma once

#include <cstdint>
#include <optional>

#include "ggml.h"
#include "kernels/attention.h"
#include "kernels/weight_type.h"

namespace outrider::llama {

// That of a cache of keys or values; none that attention does not take.
std::optional<kernels::WeightType> cache_type(const ggml_tensor* cells);

// Parameter i of the operation: the scale, the bias that grows with the distance, the soft cap.
float attention_parameter(const ggml_tensor* op, int i);

// The heads of stream `stream` from that on which head `head` of the queries looks at. `cells`: the
// keys or the values of `op`.
kernels::CacheHeads cache_heads(const ggml_tensor* op, const ggml_tensor* cells, std::int64_t head,
                                std::int64_t stream);

// The query of a token and head. Its range has all cells that are not masked. `before`: a row whose
// range is taken where the mask is the same; or null.
kernels::QueryRow query_row(const ggml_tensor* op, std::int64_t token, std::int64_t head,
                            std::int64_t stream, const kernels::QueryRow* before);

// Whether two rows are of one text, or of texts that have cells in common: one sees the first cell
// that the other sees.
bool shares_cells(const kernels::QueryRow& a, const kernels::QueryRow& b);

// The cells that some of the rows see, in `cells`, and the rows' ranges as places among them.
// False, and nothing changed, where that is a range without gaps. `seen` and `cells`: [cells of the
// cache]
bool list_cells(kernels::QueryRow* rows, int n_rows, std::uint16_t* seen, std::int32_t* cells);

}  // namespace outrider::llama
