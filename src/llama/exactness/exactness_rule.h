// The rule that chooses a model's settings: weight buffers, flash attention, cache types.
//
// Idea. Whether a batch of n tokens gives the bits of n single steps is decided by which kernels
// llama.cpp picks, and those depend on the settings here. The rule is fixed per backend and weight
// type. It looks at no clock and does not ask whether speculation is on, so the same file gives the
// same text on every run, with speculation and without.
//
// On the processor (measured on AVX512, 17 weight types; docs/decisions.md has the table):
//  - Attention. Flash attention goes through one loop over the cells whatever the batch, except
//    where keys and values are both f16 or both f32: there a single query over more than 256 cells
//    is split over the threads and one of several is not, and from there on no position keeps its
//    bits (1 to 3 % of greedy choices flip). Of the exact pairs, bf16 keys with f16 values are the
//    fastest: at 1,700 tokens a step takes what it takes with f16, and half of what it takes with
//    q8_0 for both. Without flash attention nothing is exact.
//  - Outrider's own kernels (src/kernels) give a row the same bits in any batch, for any
//    weight type, and so does their attention for caches in f32, f16, bf16 and q8_0. With them the
//    cache is f16, as llama.cpp's is by default. The rest is about what they do not take, and about
//    kernels=stock.
//  - Weight buffers. ggml repacks some types into its own layouts. Repacked Q4_0 is exact; repacked
//    Q4_K and Q2_K are not from width 4 on, plain they are. With plain buffers a single step of
//    a file that is all Q4_K takes 1.5 times as long (Q4_0 1.3, Q2_K 1.2), so the rule takes them
//    only where the file's mix makes that less than a tenth; `exact=on` takes them wherever they
//    help. Where AMX would be given a head's matrices, which it cannot multiply (docs/bugs.md),
//    all weights are plain: llama.cpp offers layouts to all of a file's weights or to none.
//  - F32, F16, BF16 and IQ4_NL are never exact: one token and several take different kernels. A
//    file that multiplies with one of them gets llama.cpp's defaults, since nothing would be
//    gained. IQ types with lookup grids (IQ4_XS, ...) are exact below 8 tokens.
// Elsewhere nothing is known, so llama.cpp's defaults are taken, flash attention where the device
// has it for the model (unless the user chose), and the probe reports. Other
// devices know mixed cache types in special builds only, so exact=on, and workers, take q8_0 for
// both. So do models with latent attention (MLA), whose values are a part of the keys: llama.cpp
// takes no two types for them.
//
// Tested by exactness_rule_test.cc and exactness_facts_test.cc.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/status.h"
#include "llama/files/gguf_header.h"
#include "llama/model/llama_model.h"
#include "model/exactness.h"
#include "model/model_options.h"

namespace outrider::llama {

// What the rule looks at.
struct RuleFacts {
  // Bytes of the matrices that llama.cpp's kernels multiply tokens with, per ggml type ("q4_K",
  // "f16"), most bytes first. Not among them: tables that are only looked up, what Outrider's own
  // kernels take (they are exact whatever the type), and what lies on a GPU, where no choice of
  // buffers makes it exact.
  std::vector<std::pair<std::string, std::uint64_t>> weights;
  std::uint64_t own_bytes = 0;    // of those that Outrider's kernels take, on the processor
  std::uint64_t twice_bytes = 0;  // of the output matrix where it is also the table of tokens:
                                  // packed beside the mapped file
  bool own_attention = false;     // attention is theirs, too
  bool own_quantised = false;     // some of own_bytes are in no float type
  bool recurrent = false;         // some layers scan or convolve, which is always llama.cpp's
  std::vector<std::int32_t> head_sizes;  // of keys and values, distinct; may be empty
  bool on_cpu = true;                    // all layers are on the processor
  bool one_cache_type = false;           // llama.cpp takes one for keys and values alike, no two

  // Some matrices are of single heads or groups of heads, and llama.cpp's kernels multiply them. On
  // a processor for which ggml has AMX's layout they must not be repacked (has_amx_layout()).
  bool head_matrices = false;
  bool amx_layout = false;

  std::uint64_t bytes_of(std::string_view type) const;  // 0 when there is none

  // Whether all products and the attention over such a cache are Outrider's, and there is nothing
  // beside them whose bits may depend on the batch, so that what is left to a probe is whether they
  // really run.
  bool is_own_throughout(const ContextSettings& context) const;
};

// How to load a model, and why.
struct LoadPlan {
  bool extra_bufts = true;         // ModelFile::load's
  ContextSettings context;         // max_width and n_cells are left as they are
  std::vector<std::string> notes;  // what the user's own choices cost; one sentence each
  std::string plain_reason;        // why extra_bufts is off whatever `exact` is; else empty

  bool operator==(const LoadPlan& other) const {
    return extra_bufts == other.extra_bufts && same_context(other);
  }

 private:
  bool same_context(const LoadPlan& other) const {
    return context.flash_attention == other.context.flash_attention &&
           context.type_k == other.context.type_k && context.type_v == other.context.type_v;
  }
};

// Whether llama.cpp multiplies with this matrix ("blk.3.ffn_up.weight", "output.weight") on the
// processor where there is a GPU: it takes the last `n_gpu_layers` of the model's `n_layer` layers
// and its output, which counts as one; all where that is negative.
bool stays_on_processor(std::string_view matrix, std::int32_t n_layer, std::int32_t n_gpu_layers);

// Whether all layers of a model, or a head, are on this machine's processor, but for workers.
bool is_on_processor(const ModelOptions& options);

// Of a model that is to be opened: reads the file's header; the weights stay on the disk. Matrices
// that Outrider's kernels would take are left out, but with workers, where they lie elsewhere.
// Errors: read_gguf_header()'s; kUnsupported for two cache types where there can be one only.
Result<RuleFacts> read_rule_facts(const ModelOptions& options);
// Likewise, where the file's header was read.
Result<RuleFacts> read_rule_facts(const ModelOptions& options, const GgufHeader& header);

// The rule. `options.exact` kAuto and kOn: exact settings where they are cheap; kOff: the fastest.
// The user's cache types and flash attention win; `notes` says what that costs.
LoadPlan settings_rule(const RuleFacts& facts, const ModelOptions& options);

// What `exact=on` tries when the rule's settings turn out not to be exact: plain weight buffers
// and a cache that is exact. Equal to `plan` when there is nothing left to try.
LoadPlan strictest_plan(const RuleFacts& facts, const ModelOptions& options, const LoadPlan& plan);

// Why batches may differ under `plan`, and what would be right, for messages; empty when nothing is
// known against it.
std::string inexact_hint(const RuleFacts& facts, const LoadPlan& plan);

}  // namespace outrider::llama
