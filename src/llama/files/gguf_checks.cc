#include "llama/files/gguf_checks.h"

#include <gguf.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <optional>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "llama/files/gguf_head_sizes.h"
#include "llama/files/gguf_windows.h"
#include "llama/gguf/integers.h"

namespace outrider::llama {
namespace {

constexpr std::int64_t kMaxLayers = 512;    // LLAMA_MAX_LAYERS
constexpr std::int64_t kMaxExperts = 1024;  // LLAMA_MAX_EXPERTS

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

Status check_rope_scaling(const std::string& path, const gguf_context* gguf,
                          const std::string& prefix) {
  const std::string key = prefix + "rope.scaling.type";
  const std::int64_t id = gguf_find_key(gguf, key.c_str());
  if (id < 0 || gguf_get_kv_type(gguf, id) != GGUF_TYPE_STRING) return Status();
  const std::string_view given = gguf_get_val_str(gguf, id);
  for (const std::string_view known : {"none", "linear", "yarn", "longrope"}) {
    if (given == known) return Status();
  }
  return damaged(
      path, key + " is '" + std::string(given) + "', but must be none, linear, yarn or longrope");
}

// How many experts there are, and how many of them a token takes: in each layer, where it differs.
class ExpertChecks {
 public:
  ExpertChecks(const std::string& path, const gguf_context* gguf, const std::string& architecture)
      : path_(path), prefix_(architecture + ".") {
    count_ = number(gguf, "expert_count");
    const std::vector<std::int64_t> used = gguf::integers(gguf, prefix_ + "expert_used_count");
    if (!used.empty()) {
      const auto [least, most] = std::minmax_element(used.begin(), used.end());
      used_ = *least < 0 ? *least : *most;
    }
    groups_ = number(gguf, "expert_group_count");
    groups_used_ = number(gguf, "expert_group_used_count");
    // Where llama.cpp takes a single expert for none.
    if (count_ <= 1 && (architecture == "hunyuan_vl" || architecture == "hunyuan-dense")) {
      count_ = used_ = 0;
    }
  }

  // As llama-model.cpp:1293 to 1305 has it.
  Status run() const {
    if (count_ < 0 || count_ > kMaxExperts) {
      return wrong("expert_count", count_, "from 0 to " + std::to_string(kMaxExperts));
    }
    if (count_ == 0) {
      if (used_ != 0) return wrong("expert_used_count", used_, "0, as there are no experts");
      if (groups_ != 0) return wrong("expert_group_count", groups_, "0, as there are no experts");
      return Status();
    }
    const std::string n = std::to_string(count_);
    if (used_ < 1 || used_ > count_) {
      return wrong("expert_used_count", used_, "from 1 to expert_count, which is " + n);
    }
    if (groups_ < 0 || groups_ >= count_) {
      return wrong("expert_group_count", groups_, "below expert_count, which is " + n);
    }
    if (groups_ < 2) return Status();
    if (count_ % groups_ != 0) {
      return wrong("expert_group_count", groups_, "a divisor of expert_count, which is " + n);
    }
    if (groups_used_ > 0 && groups_used_ < groups_) return Status();
    return wrong("expert_group_used_count", groups_used_,
                 "from 1 to below expert_group_count, which is " + std::to_string(groups_));
  }

 private:
  std::int64_t number(const gguf_context* gguf, const char* name) const {
    return gguf::integer(gguf, prefix_ + name).value_or(0);
  }
  Status wrong(const char* name, std::int64_t value, const std::string& right) const {
    return damaged(path_,
                   prefix_ + name + " is " + std::to_string(value) + ", but must be " + right);
  }

  const std::string& path_;
  const std::string prefix_;
  std::int64_t count_ = 0;
  std::int64_t used_ = 0;  // the most of any layer
  std::int64_t groups_ = 0;
  std::int64_t groups_used_ = 0;
};

Status check_heads(const std::string& path, const gguf_context* gguf,
                   const std::string& architecture) {
  const std::string wrong = wrong_head_sizes(gguf, architecture);
  return wrong.empty() ? Status() : damaged(path, wrong);
}

Status check_windows(const std::string& path, const gguf_context* gguf,
                     const std::string& architecture) {
  const std::string wrong = wrong_windows(gguf, architecture);
  return wrong.empty() ? Status() : damaged(path, wrong);
}

// A single float; none where there is none.
std::optional<float> float_of(const gguf_context* gguf, const std::string& key) {
  const std::int64_t id = gguf_find_key(gguf, key.c_str());
  if (id < 0 || gguf_get_kv_type(gguf, id) != GGUF_TYPE_FLOAT32) return std::nullopt;
  return gguf_get_val_f32(gguf, id);
}

// Two values that an architecture's graph asserts (llama-graph.cpp:162, models/deepseek2.cpp:484).
Status check_positions(const std::string& path, const gguf_context* gguf,
                       const std::string& architecture) {
  const std::string prefix = architecture + ".";
  if (architecture == "deepseek2" || architecture == "mistral4") {
    const std::string length = prefix + "attention.temperature_length";
    const bool scaled = float_of(gguf, prefix + "attention.temperature_scale").value_or(0.0f) != 0;
    if (scaled && gguf::integer(gguf, length).value_or(0) == 0) {
      return damaged(path, length + " must be there, and above 0, as attention.temperature_scale " +
                               "is given");
    }
  }
  const std::string base = prefix + "rope.freq_base";
  const std::optional<float> given = float_of(gguf, base);
  if (!given || takes_rope_base(architecture, *given)) return Status();
  return damaged(path, base + " is " + std::to_string(*given) + ", but must be 10000");
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

bool takes_rope_base(const std::string& architecture, float base) {
  return architecture != "deepseek2-ocr" || base == 10000.0f;
}

Status check_gguf_values(const std::string& path, const gguf_context* gguf,
                         const std::string& architecture) {
  const std::string prefix = architecture + ".";
  OUTRIDER_RETURN_IF_ERROR(check_layers(path, gguf, prefix));
  OUTRIDER_RETURN_IF_ERROR(check_rope_scaling(path, gguf, prefix));
  OUTRIDER_RETURN_IF_ERROR(ExpertChecks(path, gguf, architecture).run());
  OUTRIDER_RETURN_IF_ERROR(check_heads(path, gguf, architecture));
  OUTRIDER_RETURN_IF_ERROR(check_windows(path, gguf, architecture));
  OUTRIDER_RETURN_IF_ERROR(check_positions(path, gguf, architecture));
  OUTRIDER_RETURN_IF_ERROR(check_epsilons(path, gguf, prefix));
  OUTRIDER_RETURN_IF_ERROR(check_split_number(path, gguf));
  return check_tokens(path, gguf);
}

}  // namespace outrider::llama
