#include "llama/gguf/convert_rows.h"

#include <algorithm>
#include <cstring>
#include <system_error>
#include <thread>

namespace outrider::gguf {
namespace {

// Of a portion: small enough for the caches, and for a look at `cancel` many times a second.
constexpr std::int64_t kPortionWeights = 1 << 16;

bool is_raised(const std::atomic<bool>* flag) { return flag != nullptr && flag->load(); }

}  // namespace

bool can_convert(ggml_type from, ggml_type to, std::int64_t columns) {
  const bool readable = from == GGML_TYPE_F32 || ggml_get_type_traits(from)->to_float != nullptr;
  const bool writable = to == GGML_TYPE_F32 || ggml_get_type_traits(to)->from_float_ref != nullptr;
  return readable && writable && !ggml_quantize_requires_imatrix(to) &&
         columns % ggml_blck_size(to) == 0;
}

Status convert_rows(std::vector<std::uint8_t>& data, std::int64_t rows, std::int64_t columns,
                    ggml_type from, ggml_type to, std::int32_t n_threads,
                    const std::atomic<bool>* cancel) {
  if (from == to || data.empty()) return Status();
  ggml_quantize_init(to);  // some types make tables; not safe from several threads at once
  const std::size_t from_bytes = ggml_row_size(from, columns);
  const std::size_t to_bytes = ggml_row_size(to, columns);
  std::vector<std::uint8_t> out(to_bytes * static_cast<std::size_t>(rows));
  const std::int64_t portion = std::max<std::int64_t>(1, kPortionWeights / columns);
  std::atomic<std::int64_t> next{0};
  const auto work = [&] {
    std::vector<float> floats(static_cast<std::size_t>(portion * columns));
    for (std::int64_t at = next.fetch_add(portion); at < rows && !is_raised(cancel);
         at = next.fetch_add(portion)) {
      const std::int64_t n = std::min(portion, rows - at);
      const std::uint8_t* const in = data.data() + from_bytes * static_cast<std::size_t>(at);
      if (from == GGML_TYPE_F32) {
        std::memcpy(floats.data(), in, from_bytes * static_cast<std::size_t>(n));
      } else {
        ggml_get_type_traits(from)->to_float(in, floats.data(), n * columns);
      }
      ggml_quantize_chunk(to, floats.data(), out.data() + to_bytes * static_cast<std::size_t>(at),
                          /*start=*/0, n, columns, /*imatrix=*/nullptr);
    }
  };
  std::vector<std::jthread> threads;
  try {
    for (std::int32_t i = 1; i < n_threads; ++i) threads.emplace_back(work);
  } catch (const std::system_error&) {
    // Fewer threads do the same.
  }
  work();
  threads.clear();  // joins
  if (is_raised(cancel)) return cancelled("interrupted");
  data = std::move(out);
  return Status();
}

}  // namespace outrider::gguf
