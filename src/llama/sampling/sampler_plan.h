// What a chain of sampling options comes to: what can be left out, and which of llama.cpp's
// samplers the rest needs. For sampler_chain.cc only, and tested through it.
#pragma once

#include <cstddef>

#include "llama/base/handles.h"
#include "model/sampler.h"

namespace outrider::llama {

// What the chain comes to, behind grammar and edits.
enum class ChainKind {
  kGreedy,   // the best token
  kDense,    // the row with a scale: nothing but a temperature
  kFilters,  // llama.cpp's samplers
};

// What stands first in the chain and can be prepared by a scan of the row.
enum class ChainFirst { kOther, kTopK, kMinP };

// What never changes while a request runs.
struct SamplerPlan {
  ChainKind kind = ChainKind::kFilters;
  ChainFirst first = ChainFirst::kOther;
  bool greedy = false;   // the temperature is as good as 0
  bool dynamic = false;  // it depends on the entropy
  float least_temperature = 0.0f;
  std::size_t top_k = 0;
  float log_min_p = 0.0f;
  float scale = 1.0f;            // 1 / temperature, for kDense
  float xtc_probability = 0.0f;  // 0: off
};

// llama.cpp's samplers in three parts, since XTC takes part or not.
struct SamplerFilters {
  SamplerHandle before;  // null: none; likewise the others
  SamplerHandle xtc;
  SamplerHandle after;  // the temperature
};

// REQUIRES: valid options. Throws std::bad_alloc.
SamplerPlan make_sampler_plan(const SamplingOptions& options);

// The samplers of a plan of kFilters, in llama.cpp's order (common_sampler_init in its
// common/sampling.cpp); notes in the plan which comes first. Throws std::bad_alloc.
SamplerFilters make_sampler_filters(const SamplingOptions& options, SamplerPlan& plan);

}  // namespace outrider::llama
