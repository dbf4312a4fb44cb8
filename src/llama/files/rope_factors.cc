#include "llama/files/rope_factors.h"

#include <cstdio>
#include <limits>
#include <string>

namespace outrider::llama {

bool takes_short_factors(const GgufHeader& header, std::int32_t n_ctx) {
  return (n_ctx > 0 ? n_ctx : header.n_ctx_train) <= header.short_context;
}

std::array<llama_model_kv_override, 2> keep_short_factors(const GgufHeader& header) {
  std::array<llama_model_kv_override, 2> list{};
  list[0].tag = LLAMA_KV_OVERRIDE_TYPE_INT;
  const std::string key = header.architecture + "." + std::string(kOriginalContext);
  std::snprintf(list[0].key, sizeof list[0].key, "%s", key.c_str());
  list[0].val_i64 = std::numeric_limits<std::int32_t>::max();
  return list;
}

}  // namespace outrider::llama
