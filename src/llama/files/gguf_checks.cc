#include "llama/files/gguf_checks.h"

#include <gguf.h>

#include <cmath>
#include <cstdint>
#include <optional>
#include <string_view>
#include <unordered_map>

#include "llama/gguf/integers.h"

namespace outrider::llama {
namespace {

constexpr std::int64_t kMaxLayers = 512;  // LLAMA_MAX_LAYERS

Status damaged(const std::string& path, const std::string& what) {
  return data_loss("'" + path + "' is damaged: " + what + "; fetch the file again");
}

Status check_layers(const std::string& path, const gguf_context* gguf, const std::string& prefix) {
  for (const char* name : {"block_count", "nextn_predict_layers"}) {
    const std::string key = prefix + name;
    const std::int64_t id = gguf_find_key(gguf, key.c_str());
    if (id < 0 || gguf_get_kv_type(gguf, id) != GGUF_TYPE_ARRAY) continue;
    return damaged(path, key + " is a list, but must be one integer");
  }
  const std::string key = prefix + "block_count";
  const std::optional<std::int64_t> n = gguf::integer(gguf, key);
  if (n && (*n < 1 || *n > kMaxLayers)) {
    return damaged(path, key + " is " + std::to_string(*n) + ", but must be from 1 to " +
                             std::to_string(kMaxLayers));
  }
  // llama.cpp aborts (llama-model.cpp:1262).
  const std::string predicting = prefix + "nextn_predict_layers";
  const std::optional<std::int64_t> of_them = gguf::integer(gguf, predicting);
  if (!n || !of_them || (*of_them >= 0 && *of_them <= *n)) return Status();
  return damaged(path, predicting + " is " + std::to_string(*of_them) +
                           ", but must be from 0 to block_count, which is " + std::to_string(*n));
}

Status check_epsilons(const std::string& path, const gguf_context* gguf,
                      const std::string& prefix) {
  for (const char* name : {"attention.layer_norm_rms_epsilon", "attention.layer_norm_epsilon",
                           "attention.group_norm_epsilon"}) {
    const std::string key = prefix + name;
    const std::int64_t id = gguf_find_key(gguf, key.c_str());
    if (id < 0 || gguf_get_kv_type(gguf, id) != GGUF_TYPE_FLOAT32) continue;
    const float value = gguf_get_val_f32(gguf, id);
    if (std::isfinite(value) && value >= 0.0f) continue;
    return damaged(path, key + " is " + std::to_string(value) + ", but must be at least 0");
  }
  return Status();
}

// llama.cpp reads texts up to their first NUL, and gives empty ones names of their own.
Status check_tokens(const std::string& path, const gguf_context* gguf) {
  const std::int64_t id = gguf_find_key(gguf, "tokenizer.ggml.tokens");
  if (id < 0 || gguf_get_kv_type(gguf, id) != GGUF_TYPE_ARRAY ||
      gguf_get_arr_type(gguf, id) != GGUF_TYPE_STRING) {
    return Status();
  }
  const std::size_t n = gguf_get_arr_n(gguf, id);
  std::unordered_map<std::string_view, std::size_t> seen;
  seen.reserve(n);
  for (std::size_t i = 0; i < n; ++i) {
    const std::string_view text = gguf_get_arr_str(gguf, id, i);
    if (text.empty()) continue;
    const auto [at, is_new] = seen.emplace(text, i);
    if (is_new) continue;
    return damaged(path, "tokens " + std::to_string(at->second) + " and " + std::to_string(i) +
                             " of its vocabulary have the same text");
  }
  return Status();
}

// Of a split model's later files llama.cpp takes the number without asking for its type, and aborts
// (llama-model-loader.cpp, "check idx").
Status check_split_number(const std::string& path, const gguf_context* gguf) {
  const std::int64_t id = gguf_find_key(gguf, "split.no");
  if (id < 0 || gguf_get_kv_type(gguf, id) == GGUF_TYPE_UINT16) return Status();
  return damaged(path, "split.no is of another type than llama.cpp writes (u16)");
}

}  // namespace

Status check_gguf_values(const std::string& path, const gguf_context* gguf,
                         const std::string& architecture) {
  const std::string prefix = architecture + ".";
  OUTRIDER_RETURN_IF_ERROR(check_layers(path, gguf, prefix));
  OUTRIDER_RETURN_IF_ERROR(check_epsilons(path, gguf, prefix));
  OUTRIDER_RETURN_IF_ERROR(check_split_number(path, gguf));
  return check_tokens(path, gguf);
}

}  // namespace outrider::llama
