// Which of ggml's attentions Outrider's own kernels take. llama/kernels/kernel_operations.h
// computes them.
#pragma once

#include "ggml.h"

namespace outrider::llama {

// True for a FLASH_ATTN_EXT of types and sizes that kernels/attention.h takes, none of them zero,
// without a bias that grows with the distance (ALiBi) and without soft caps.
bool kernel_attention_takes(const ggml_tensor* op);

}  // namespace outrider::llama
