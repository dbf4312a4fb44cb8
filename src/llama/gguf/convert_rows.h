// Rows of weights from one type of ggml's to another.
#pragma once

#include <atomic>
#include <cstdint>
#include <vector>

#include "base/status.h"
#include "ggml.h"

namespace outrider::gguf {

// Whether rows of `columns` weights can be had in `to`: ggml makes it without an importance matrix,
// and its blocks divide the row.
bool can_convert(ggml_type from, ggml_type to, std::int64_t columns);

// `data` holds `rows` of `columns` weights in `from`, and holds them in `to` afterwards. On
// `n_threads` threads (>= 1); the result does not depend on how many. kCancelled while *cancel
// (null: never). REQUIRES: can_convert()
Status convert_rows(std::vector<std::uint8_t>& data, std::int64_t rows, std::int64_t columns,
                    ggml_type from, ggml_type to, std::int32_t n_threads,
                    const std::atomic<bool>* cancel);

}  // namespace outrider::gguf
