#include "llama/kernels/kernel_attention.h"

#include <cstdint>

#include "kernels/attention.h"
#include "llama/kernels/attention_rows.h"

namespace outrider::llama {
namespace {

bool is_taken_cache(const ggml_tensor* cells) {
  return cache_type(cells) && cells->ne[0] <= kernels::kMaxHeadSize &&
         cells->ne[0] % ggml_blck_size(cells->type) == 0 &&
         cells->nb[0] == ggml_type_size(cells->type);
}

// Null, or a value for each cell, the same for all heads; tokens and streams beyond it begin again.
bool is_taken_mask(const ggml_tensor* mask, std::int64_t n_cells) {
  return mask == nullptr ||
         (mask->ne[2] == 1 && mask->type == GGML_TYPE_F16 && mask->nb[0] == sizeof(std::uint16_t) &&
          mask->ne[0] >= n_cells && !ggml_is_empty(mask));
}

// Null, or a value for each head of the queries, one behind the other.
bool is_taken_sinks(const ggml_tensor* sinks, std::int64_t n_heads) {
  return sinks == nullptr ||
         (sinks->type == GGML_TYPE_F32 && sinks->nb[0] == sizeof(float) && sinks->ne[0] >= n_heads);
}

// A row of values for each head of each token of each stream, as ggml lays them: what a worker's
// peer asks for must not be written beyond its memory.
bool is_taken_output(const ggml_tensor* op) {
  const ggml_tensor* q = op->src[0];
  return op->type == GGML_TYPE_F32 && op->nb[0] == sizeof(float) && op->nb[0] <= op->nb[1] &&
         op->nb[1] <= op->nb[2] && op->nb[2] <= op->nb[3] && op->ne[0] == op->src[2]->ne[0] &&
         op->ne[1] == q->ne[2] && op->ne[2] == q->ne[1] && op->ne[3] == q->ne[3];
}

}  // namespace

bool kernel_attention_takes(const ggml_tensor* op) {
  if (op->op != GGML_OP_FLASH_ATTN_EXT) return false;
  const ggml_tensor* q = op->src[0];
  const ggml_tensor* k = op->src[1];
  const ggml_tensor* v = op->src[2];
  // A graph is planned with those that compute nothing, too.
  if (ggml_is_empty(q) || ggml_is_empty(k) || ggml_is_empty(v)) return false;
  const float max_bias = attention_parameter(op, 1);
  const float soft_cap = attention_parameter(op, 2);
  return max_bias == 0.0F && soft_cap == 0.0F && q->type == GGML_TYPE_F32 &&
         q->nb[0] == sizeof(float) && is_taken_cache(k) && is_taken_cache(v) &&
         k->ne[0] == q->ne[0] && v->ne[1] == k->ne[1] && v->ne[2] == k->ne[2] &&
         v->ne[3] == k->ne[3] && q->ne[2] % k->ne[2] == 0 && q->ne[3] % k->ne[3] == 0 &&
         is_taken_mask(op->src[3], k->ne[1]) && is_taken_sinks(op->src[4], q->ne[2]) &&
         is_taken_output(op);
}

}  // namespace outrider::llama
