#include "llama/gguf/integers.h"

#include <gguf.h>

#include <algorithm>
#include <cstring>
#include <limits>
#include <utility>

namespace outrider::gguf {
namespace {

template <typename T>
std::vector<std::int64_t> widened(const void* data, std::size_t n) {
  std::vector<std::int64_t> result;
  result.reserve(n);
  for (std::size_t i = 0; i < n; ++i) {
    T value{};  // metadata need not be aligned
    std::memcpy(&value, static_cast<const char*>(data) + i * sizeof(T), sizeof(T));
    constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max();
    result.push_back(std::cmp_greater(value, kMost) ? kMost : static_cast<std::int64_t>(value));
  }
  return result;
}

std::vector<std::int64_t> read(gguf_type type, const void* data, std::size_t n) {
  switch (type) {
    case GGUF_TYPE_UINT8:
      return widened<std::uint8_t>(data, n);
    case GGUF_TYPE_INT8:
      return widened<std::int8_t>(data, n);
    case GGUF_TYPE_UINT16:
      return widened<std::uint16_t>(data, n);
    case GGUF_TYPE_INT16:
      return widened<std::int16_t>(data, n);
    case GGUF_TYPE_UINT32:
      return widened<std::uint32_t>(data, n);
    case GGUF_TYPE_INT32:
      return widened<std::int32_t>(data, n);
    case GGUF_TYPE_UINT64:
      return widened<std::uint64_t>(data, n);
    case GGUF_TYPE_INT64:
      return widened<std::int64_t>(data, n);
    default:
      return {};
  }
}

}  // namespace

std::vector<std::int64_t> integers(const gguf_context* gguf, const std::string& key) {
  const std::int64_t id = gguf_find_key(gguf, key.c_str());
  if (id < 0) return {};
  const gguf_type type = gguf_get_kv_type(gguf, id);
  if (type == GGUF_TYPE_STRING) return {};  // of which ggml gives no data, but aborts
  if (type != GGUF_TYPE_ARRAY) return read(type, gguf_get_val_data(gguf, id), 1);
  const gguf_type of = gguf_get_arr_type(gguf, id);
  if (of == GGUF_TYPE_STRING) return {};
  return read(of, gguf_get_arr_data(gguf, id), gguf_get_arr_n(gguf, id));
}

std::optional<std::int64_t> integer(const gguf_context* gguf, const std::string& key) {
  const std::int64_t id = gguf_find_key(gguf, key.c_str());
  if (id < 0 || gguf_get_kv_type(gguf, id) == GGUF_TYPE_ARRAY) return std::nullopt;
  const std::vector<std::int64_t> one = integers(gguf, key);
  return one.empty() ? std::nullopt : std::optional(one.front());
}

std::int32_t in_32_bits(std::int64_t value) {
  using Limits = std::numeric_limits<std::int32_t>;
  return static_cast<std::int32_t>(
      std::clamp(value, std::int64_t{Limits::min()}, std::int64_t{Limits::max()}));
}

}  // namespace outrider::gguf
