#include "llama/exactness/exactness_rule.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <map>

#include "ggml-backend.h"
#include "llama/base/backend.h"
#include "llama/files/gguf_family.h"
#include "llama/files/matrices.h"
#include "llama/kernels/own_kernels.h"

namespace outrider::llama {
namespace {

// Repacked by ggml, with other results for four tokens and more than for one; exact when plain.
// Q5_K and Q6_K are repacked on ARM only, where nothing was measured.
#if defined(__aarch64__)
constexpr std::array<std::string_view, 4> kExactOnlyPlain{"q4_K", "q2_K", "q5_K", "q6_K"};
#else
constexpr std::array<std::string_view, 2> kExactOnlyPlain{"q4_K", "q2_K"};
#endif

// All that ggml repacks on some processor (ggml-cpu/repack.cpp).
constexpr std::array<std::string_view, 9> kRepacked{"q4_0", "q4_K", "q2_K",   "q5_K", "q6_K",
                                                    "q8_0", "q1_0", "iq4_nl", "mxfp4"};

// One token and several take kernels that add up in another order, in either kind of buffer
// (ggml-cpu/llamafile/sgemm.cpp). Measured on x86; on ARM it begins with 4 or 8 tokens.
#if defined(__aarch64__)
constexpr std::array<std::string_view, 0> kNeverExact{};
#else
constexpr std::array<std::string_view, 4> kNeverExact{"f32", "f16", "bf16", "iq4_nl"};
#endif

bool is_float(std::string_view type) { return type == "f32" || type == "f16" || type == "bf16"; }

// From 8 tokens on these are decoded to panels (ggml-cpu/iqp.cpp).
constexpr std::array<std::string_view, 8> kExactBelowEight{"iq2_xxs", "iq2_xs", "iq2_s", "iq3_xxs",
                                                           "iq3_s",   "iq1_s",  "iq1_m", "iq4_xs"};

template <std::size_t kSize>
std::uint64_t sum_of(const RuleFacts& facts, const std::array<std::string_view, kSize>& types) {
  std::uint64_t sum = 0;
  for (const std::string_view type : types) sum += facts.bytes_of(type);
  return sum;
}

// What plain buffers add to the time of a single step, for a file that is all of this type.
// Measured on one thread, 1.8B parameters: Q4_K 68 -> 102 ms, Q4_0 76 -> 99, Q2_K 63 -> 74 but 279
// -> 243 for four tokens.
double cost_of_plain(std::string_view type) {
  if (type == "q4_0") return 0.3;
  if (type == "q2_K") return 0.1;
  return std::find(kExactOnlyPlain.begin(), kExactOnlyPlain.end(), type) == kExactOnlyPlain.end()
             ? 0.0
             : 0.5;
}

// The same for a mixed file: taken as proportional to the bytes.
double cost_of_plain(const RuleFacts& facts) {
  double all = 0.0;
  double added = 0.0;
  for (const std::pair<std::string, std::uint64_t>& part : facts.weights) {
    const double bytes = static_cast<double>(part.second);
    all += bytes;
    added += bytes * cost_of_plain(part.first);
  }
  return all > 0.0 ? added / all : 0.0;
}

// Up to here plain buffers are taken for granted: gemma-3-270m Q4_K_M is at 0.03 and shows 2 %.
constexpr double kCheap = 0.1;

// "F16", "Q4_K": as file types are written.
std::string upper(std::string_view type) {
  std::string name(type);
  std::transform(name.begin(), name.end(), name.begin(), [](unsigned char c) {
    return static_cast<char>(c >= 'a' && c <= 'z' ? c - 'a' + 'A' : c);
  });
  return name;
}

// The types of `types` that the file has, as "F16, BF16".
template <std::size_t kSize>
std::string present(const RuleFacts& facts, const std::array<std::string_view, kSize>& types) {
  std::string names;
  for (const std::string_view type : types) {
    if (facts.bytes_of(type) == 0) continue;
    names += (names.empty() ? "" : ", ") + upper(type);
  }
  return names;
}

// Whether the matrices that are never exact are in float types beside quantised ones. A file in
// another type would have them in float types, too: quantising leaves them as they are.
bool floats_are_left(const RuleFacts& facts) {
  bool quantised = facts.own_quantised;
  for (const std::pair<std::string, std::uint64_t>& part : facts.weights) {
    if (is_float(part.first)) continue;
    if (std::find(kNeverExact.begin(), kNeverExact.end(), part.first) != kNeverExact.end()) {
      return false;
    }
    quantised = true;
  }
  return quantised;
}

bool is_own_cache(const std::string& type) {
  return type == "f16" || type == "bf16" || type == "q8_0" || type == "f32";
}

// Attention over this cache does the same for one query and for several.
bool exact_cache(const RuleFacts& facts, const std::string& type_k, const std::string& type_v) {
  if (facts.own_attention && is_own_cache(type_k) && is_own_cache(type_v)) return true;
  if (type_k != type_v) return true;
  return type_k != "f16" && type_k != "f32";
}

struct CacheTypes {
  std::string k;
  std::string v;
};

// One that is exact for keys and values alike: q8_0 has blocks of 32; other heads take bf16.
std::string single_cache_type(const RuleFacts& facts) {
  constexpr std::int32_t kBlock = 32;
  const bool divides = std::all_of(facts.head_sizes.begin(), facts.head_sizes.end(),
                                   [](std::int32_t size) { return size % kBlock == 0; });
  return divides ? "q8_0" : "bf16";
}

// What the user chose; empty: nothing. Where there can be one type only, what was chosen for keys
// or values is chosen for both.
CacheTypes chosen_cache_types(const RuleFacts& facts, const ModelOptions& options) {
  CacheTypes chosen{.k = options.cache_type_k, .v = options.cache_type_v};
  if (!facts.one_cache_type) return chosen;
  if (chosen.k.empty()) chosen.k = chosen.v;
  if (chosen.v.empty()) chosen.v = chosen.k;
  return chosen;
}

// With what the user chose. Devices other than this processor know mixed types in special builds
// only, and ggml has no fast product with bf16 on ARM.
CacheTypes exact_cache_types(const RuleFacts& facts, const ModelOptions& options) {
  const std::string single = single_cache_type(facts);
  CacheTypes types{.k = single, .v = single};
#if !defined(__aarch64__)
  const bool may_mix = facts.on_cpu && options.workers.empty() && !facts.one_cache_type;
  if (may_mix) types = {.k = "bf16", .v = "f16"};
#endif
  if (facts.own_attention) types = {.k = "f16", .v = "f16"};
  const CacheTypes chosen = chosen_cache_types(facts, options);
  if (!chosen.v.empty()) types.v = chosen.v;
  if (chosen.k.empty()) return types;
  types.k = chosen.k;
  if (chosen.v.empty() && !exact_cache(facts, types.k, types.v)) types.v = single;
  return types;
}

// llama_init_from_model makes no context otherwise: with latent attention (is_mla()) the values are
// a part of the cached keys, and deepseek4's are, too.
bool needs_one_cache_type(const GgufHeader& header) {
  return header.keys_hold_values || header.architecture == "deepseek4";
}

Status check_one_cache_type(const ModelOptions& options) {
  const std::string& k = options.cache_type_k;
  const std::string& v = options.cache_type_v;
  if (k.empty() || v.empty() || k == v) return Status();
  return refused(StatusCode::kUnsupported, "cache_type_v",
                 "is " + v + ", and cache_type_k is " + k + ", but '" + options.path +
                     "' keeps keys and values in one cache, which has one type; give the same "
                     "twice, or one of them");
}

// Matrices of which each head, or group of heads, has its own: the graph multiplies them with
// inputs whose heads it has permuted. With latent attention those are what makes a head's keys and
// values, with DeepSeek V4 the first of the output's two matrices. No other matrix of llama.cpp's
// models is multiplied so (its src/models, looked through on 2026-11-30).
bool is_of_heads(const Matrix& matrix) {
  constexpr std::array<std::string_view, 3> kNames{".attn_k_b.", ".attn_v_b.", ".attn_output_a."};
  return std::any_of(kNames.begin(), kNames.end(), [&matrix](std::string_view name) {
    return matrix.name.find(name) != std::string::npos;
  });
}

void apply_user_choices(const RuleFacts& facts, const ModelOptions& options, bool exactness_matters,
                        LoadPlan* plan) {
  ContextSettings& context = plan->context;
  context.rope_freq_base = options.rope_freq_base;
  context.rope_freq_scale = options.rope_freq_scale;
  context.flash_if_supported =
      !facts.on_cpu && options.workers.empty() && options.flash_attention == FlashAttention::kAuto;
  if (options.flash_attention != FlashAttention::kAuto) {
    context.flash_attention = options.flash_attention == FlashAttention::kOn;
    if (!context.flash_attention) {
      // A quantised cache for values needs flash attention.
      context.type_k = context.type_v = "f16";
      if (exactness_matters) {
        plan->notes.push_back(
            "without flash attention (flash_attn=off) a batch does not give the bits of single "
            "steps; leave the option out");
      }
    }
  }
  const CacheTypes chosen = chosen_cache_types(facts, options);
  if (!chosen.k.empty()) context.type_k = chosen.k;
  if (!chosen.v.empty()) context.type_v = chosen.v;
  const bool any_chosen = !chosen.k.empty() || !chosen.v.empty();
  if (any_chosen && exactness_matters && context.flash_attention &&
      !exact_cache(facts, context.type_k, context.type_v)) {
    plan->notes.push_back("with a " + context.type_k +
                          " cache a batch gives the bits of single steps only within the first 256 "
                          "cells; with bf16 keys (cache_type_k=bf16) it does throughout");
  }
}

// Own attention follows the matrix that queries come from (llama/kernels/kernel_buffer.cc), and
// leaves out what changes the scores. Where the answer is wrong, the probe finds out.
bool own_attention(const GgufHeader& header, const std::vector<Matrix>& matrices) {
  if (header.attention_changes_scores) return false;
  bool any = false;
  for (const Matrix& matrix : matrices) {
    if (matrix.name.find("attn_kv_a") != std::string::npos) return false;  // compressed keys
    if (matrix.name.find("attn_q.") == std::string::npos &&
        matrix.name.find("attn_qkv.") == std::string::npos) {
      continue;
    }
    if (!matrix.own_kernels_take_it) return false;
    any = true;
  }
  return any;
}

}  // namespace

bool RuleFacts::is_own_throughout(const ContextSettings& context) const {
  return weights.empty() && own_attention && !recurrent && context.flash_attention &&
         is_own_cache(context.type_k) && is_own_cache(context.type_v);
}

std::uint64_t RuleFacts::bytes_of(std::string_view type) const {
  for (const std::pair<std::string, std::uint64_t>& part : weights) {
    if (part.first == type) return part.second;
  }
  return 0;
}

bool stays_on_processor(std::string_view matrix, std::int32_t n_layer, std::int32_t n_gpu_layers) {
  if (n_gpu_layers < 0) return false;
  constexpr std::string_view kLayer = "blk.";
  std::int32_t layer = n_layer;  // the output, which comes behind them all
  if (matrix.starts_with(kLayer)) {
    matrix.remove_prefix(kLayer.size());
    std::from_chars(matrix.data(), matrix.data() + matrix.size(), layer);
  }
  return layer < n_layer + 1 - n_gpu_layers;
}

bool is_on_processor(const ModelOptions& options) {
  ensure_backend();
  return options.n_gpu_layers == 0 || !has_other_device();
}

Result<RuleFacts> read_rule_facts(const ModelOptions& options) {
  OUTRIDER_ASSIGN_OR_RETURN(const GgufHeader header, read_gguf_header(options.path));
  return read_rule_facts(options, header);
}

Result<RuleFacts> read_rule_facts(const ModelOptions& options, const GgufHeader& header) {
  ensure_backend();
  RuleFacts facts;
  facts.one_cache_type = needs_one_cache_type(header);
  if (facts.one_cache_type) OUTRIDER_RETURN_IF_ERROR(check_one_cache_type(options));
  facts.recurrent = has_recurrent_layers(header.architecture);
  facts.on_cpu = is_on_processor(options);
  for (const std::vector<std::int32_t>* sizes : {&header.head_sizes_k, &header.head_sizes_v}) {
    for (const std::int32_t size : *sizes) {
      if (std::find(facts.head_sizes.begin(), facts.head_sizes.end(), size) ==
          facts.head_sizes.end()) {
        facts.head_sizes.push_back(size);
      }
    }
  }

  const Result<std::vector<Matrix>> matrices = read_matrices(options.path, header);
  if (!matrices.ok()) return matrices.status();
  const bool ours = options.kernels == KernelChoice::kAuto && own_kernels().available;
  const bool own = ours && options.workers.empty();
  // Ours take such matrices in every type that AMX takes, and are asked first.
  facts.head_matrices = !ours && std::any_of(matrices->begin(), matrices->end(), is_of_heads);
  facts.amx_layout = has_amx_layout();
  facts.own_attention = own && facts.on_cpu && own_attention(header, *matrices);
  std::map<std::string, std::uint64_t> bytes;
  for (const Matrix& matrix : *matrices) {
    const bool is_here =
        facts.on_cpu || stays_on_processor(matrix.name, header.n_layer, options.n_gpu_layers);
    if (own && is_here && matrix.own_kernels_take_it) {
      facts.own_bytes += matrix.bytes;
      facts.own_quantised = facts.own_quantised || !is_float(matrix.type);
      if (matrix.name == "token_embd.weight") facts.twice_bytes += matrix.bytes;
    } else if (is_here) {
      bytes[matrix.type] += matrix.bytes;
    }
  }
  facts.weights.assign(bytes.begin(), bytes.end());
  std::stable_sort(
      facts.weights.begin(), facts.weights.end(),
      [](const std::pair<std::string, std::uint64_t>& a,
         const std::pair<std::string, std::uint64_t>& b) { return a.second > b.second; });
  return facts;
}

LoadPlan settings_rule(const RuleFacts& facts, const ModelOptions& options) {
  LoadPlan plan;
  const bool attainable = facts.on_cpu && sum_of(facts, kNeverExact) == 0;
  const bool exact =
      options.exact == ExactMode::kOn || (options.exact == ExactMode::kAuto && attainable);
  const CacheTypes types =
      exact ? exact_cache_types(facts, options) : CacheTypes{.k = "f16", .v = "f16"};
  plan.context.type_k = types.k;
  plan.context.type_v = types.v;
  if (exact) {
    const double most = options.exact == ExactMode::kOn ? 1.0 : kCheap;
    plan.extra_bufts = sum_of(facts, kExactOnlyPlain) == 0 || cost_of_plain(facts) > most;
  }
  if (facts.head_matrices && facts.amx_layout) {
    plan.extra_bufts = false;
    plan.plain_reason =
        "all weights stay as the file has them, which is slower: llama.cpp would give the heads' "
        "matrices to AMX, which cannot multiply them";
  }
  apply_user_choices(facts, options, options.exact != ExactMode::kOff, &plan);
  return plan;
}

LoadPlan strictest_plan(const RuleFacts& believed, const ModelOptions& options,
                        const LoadPlan& plan) {
  LoadPlan strict = plan;
  RuleFacts facts = believed;
  facts.own_attention = false;  // if it were, there would be nothing to change
  if (sum_of(facts, kRepacked) > 0) strict.extra_bufts = false;
  const CacheTypes types = exact_cache_types(facts, options);
  const bool flash_free = options.flash_attention == FlashAttention::kAuto;
  if (flash_free) strict.context.flash_attention = true;
  if (strict.context.flash_attention) {
    strict.context.type_k = types.k;
    strict.context.type_v = types.v;
  }
  return strict;
}

std::string inexact_hint(const RuleFacts& facts, const LoadPlan& plan) {
  if (!facts.on_cpu) {
    return "the device picks its code by the number of tokens in a batch; on the processor "
           "(gpu_layers=0) quantised files are exact";
  }
  if (!plan.context.flash_attention) {
    return "attention without flash attention depends on the batch; leave out flash_attn=off";
  }
  const std::string never = present(facts, kNeverExact);
  if (!never.empty()) {
    return never + " weights are multiplied by other code for several tokens than for one" +
           (floats_are_left(facts) ? ""
                                   : "; a file in Q8_0, Q4_0, Q4_1, Q5_0 or a K type is exact");
  }
  if (!exact_cache(facts, plan.context.type_k, plan.context.type_v)) {
    return "a single token over more than 256 cells of a " + plan.context.type_k +
           " cache is added up in another order than several; bf16 keys (cache_type_k=bf16) are "
           "exact";
  }
  const std::string panels = present(facts, kExactBelowEight);
  if (!panels.empty()) return panels + " weights take other code from 8 tokens on";
  const std::string repacked = present(facts, kExactOnlyPlain);
  if (plan.extra_bufts && !repacked.empty()) {
    return repacked + " weights in repacked buffers take other code from 4 tokens on; plain ones " +
           "(exact=on) do not";
  }
  return "";
}

}  // namespace outrider::llama
