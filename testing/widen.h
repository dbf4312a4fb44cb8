// Widening: a model that costs k*k as much per token and says exactly the same.
//
// Idea. To measure speculation we need a target that is expensive next to its draft, and small
// machines cannot download one. So every weight matrix of a llama-architecture model is padded with
// zeros k-fold in both directions: the embedding (n_embd), the feed-forward layer (n_ff) and the
// number of heads (n_head and n_head_kv; the size of a head stays). The residual stream of the wide
// model is the old one followed by zeros, in every layer, and so the logits are the old ones.
//
// RMSNorm. Over k*n values of which the first n are x and the rest 0, the mean of squares m falls
// to m/k. norm'(x) = x / sqrt(m/k + e') * w'. With e' = e/k this is sqrt(k) x / sqrt(m + e) * w',
// so w' = w / sqrt(k) gives back norm(x). For k = 4 and 16 both divisions are exact in binary.
// Attention. Query head i reads key/value head i / (n_head / n_head_kv). The new heads are put
// after the old ones and the ratio stays, so an old query head still reads its old key/value head.
// A new head has query, key and value 0, gives equal weights to all positions and the result 0.
// Rotary position is per head, so its tensors (rope_freqs) stay as they are. Feed-forward. A new
// unit has silu(0) * 0 = 0; so do padded experts; the router's scores stay. Quantised blocks of the
// old weights are copied as they are; the padding is zero blocks made by the type's own quantiser.
//
// Example: SmolLM2-135M (n_embd 576, 9 heads, 3 key/value heads, n_ff 1536) with factor 4 becomes
// 2304, 36, 12, 6144: 1.8 billion parameters. Cost: reads the file once, writes k*k of its size;
// memory is the largest tensor of the result.
// Source: function-preserving widening after Chen, Goodfellow, Shlens, "Net2Net", ICLR 2016, with
// zeros instead of copied units.
// Tested by widen_test.cc: logits and greedy text of tiny models (2x, 4x) and of SmolLM2.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "base/status.h"

namespace outrider::testing {

inline constexpr int kMinWidenFactor = 2;
inline constexpr int kMaxWidenFactor = 16;

// Bytes written so far and in all; return false to stop. Called from widen_gguf's thread, after
// each tensor.
using WidenProgress = std::function<bool(std::uint64_t done, std::uint64_t total)>;

// Writes `input` widened `factor`-fold to `output`: whole or not at all (a temporary name in the
// same folder, flushed to the disk, then renamed). An existing `output` is replaced.
// Fails with kInvalidArgument (factor outside [2, 16], input and output the same file, not a GGUF,
// output not writable), kNotFound (no input), kDataLoss (damaged input), kUnsupported (another
// architecture, one part of a split model, a tensor it does not know), kResourceExhausted (full
// disk), kCancelled (progress said so). On failure `output` is as it was.
Status widen_gguf(const std::string& input, const std::string& output, int factor,
                  const WidenProgress& progress = nullptr);

}  // namespace outrider::testing
