#include "llama/sampling/sampler_plan.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <new>
#include <utility>

namespace outrider::llama {
namespace {

// Adds llama.cpp's samplers to one part of the chain, and notes what stands first.
class PartBuilder {
 public:
  explicit PartBuilder(SamplerPlan& plan, bool leads) : plan_(plan), leads_(leads) {
    llama_sampler_chain_params params = llama_sampler_chain_default_params();
    params.no_perf = true;
    chain_.reset(llama_sampler_chain_init(params));
  }

  void add(llama_sampler* sampler, ChainFirst kind) {
    if (sampler == nullptr) throw std::bad_alloc();
    llama_sampler_chain_add(chain_.get(), sampler);
    if (n_++ == 0 && leads_) plan_.first = kind;
  }

  std::size_t size() const { return n_; }
  SamplerHandle take() { return n_ == 0 ? nullptr : std::move(chain_); }

 private:
  SamplerPlan& plan_;
  bool leads_;
  SamplerHandle chain_;
  std::size_t n_ = 0;
};

// Before llama.cpp's typical sampler, which multiplies each p with its logarithm: one candidate
// with p = 0 (a banned token, what top-n-sigma leaves of others) makes its order arbitrary
// (docs/bugs.md). exp(-80) of the best is a number for any vocabulary, and no such candidate would
// be kept.
void drop_impossible(llama_sampler* /*self*/, llama_token_data_array* candidates) {
  llama_token_data* const end = candidates->data + candidates->size;
  float best = -std::numeric_limits<float>::infinity();
  for (const llama_token_data* c = candidates->data; c != end; ++c) best = std::max(best, c->logit);
  llama_token_data* const kept = std::remove_if(
      candidates->data, end, [best](const llama_token_data& c) { return c.logit < best - 80.0f; });
  candidates->size = static_cast<std::size_t>(kept - candidates->data);
}

llama_sampler* make_impossible_dropper() {
  static llama_sampler_i calls = {
      .name = [](const llama_sampler* /*self*/) { return "possible"; },
      .accept = nullptr,
      .apply = drop_impossible,
      .reset = nullptr,
      .clone = [](const llama_sampler* /*self*/) { return make_impossible_dropper(); },
      .free = nullptr,
      .backend_init = nullptr,
      .backend_accept = nullptr,
      .backend_apply = nullptr,
      .backend_set_input = nullptr,
  };
  return llama_sampler_init(&calls, nullptr);
}

}  // namespace

SamplerFilters make_sampler_filters(const SamplingOptions& o, SamplerPlan& plan) {
  constexpr std::size_t kMinKeep = 0;
  const float temperature = plan.greedy ? 0.0f : o.temperature;
  PartBuilder before(plan, /*leads=*/true);
  SamplerFilters filters;
  if (o.mirostat != 0) {
    // Sorts as mirostat's own softmax does, but in front of the temperature, which keeps the order:
    // the logits behind a low one are more than the sort bears (docs/bugs.md).
    before.add(llama_sampler_init_top_k(std::numeric_limits<std::int32_t>::max()),
               ChainFirst::kOther);
    filters.before = before.take();
    PartBuilder after(plan, /*leads=*/false);
    if (temperature != 1.0f) after.add(llama_sampler_init_temp(temperature), ChainFirst::kOther);
    filters.after = after.take();
    return filters;
  }
  if (o.top_n_sigma > 0.0f)
    before.add(llama_sampler_init_top_n_sigma(o.top_n_sigma), ChainFirst::kOther);
  if (o.top_k > 0) before.add(llama_sampler_init_top_k(o.top_k), ChainFirst::kTopK);
  if (o.typical_p < 1.0f) {
    before.add(make_impossible_dropper(), ChainFirst::kOther);
    before.add(llama_sampler_init_typical(o.typical_p, kMinKeep), ChainFirst::kOther);
  }
  if (o.top_p < 1.0f) before.add(llama_sampler_init_top_p(o.top_p, kMinKeep), ChainFirst::kOther);
  if (o.min_p > 0.0f) before.add(llama_sampler_init_min_p(o.min_p, kMinKeep), ChainFirst::kMinP);
  filters.before = before.take();
  if (plan.xtc_probability > 0.0f) {
    // Probability 1: whether it takes part is drawn here.
    filters.xtc.reset(llama_sampler_init_xtc(1.0f, o.xtc_threshold, kMinKeep, /*seed=*/1));
    if (!filters.xtc) throw std::bad_alloc();
  }
  PartBuilder after(plan, /*leads=*/false);
  if (temperature != 1.0f || o.dynatemp_range > 0.0f) {
    after.add(llama_sampler_init_temp_ext(temperature, o.dynatemp_range, o.dynatemp_exponent),
              ChainFirst::kOther);
  }
  filters.after = after.take();
  return filters;
}

SamplerPlan make_sampler_plan(const SamplingOptions& o) {
  SamplerPlan plan;
  plan.top_k = static_cast<std::size_t>(std::max(o.top_k, 0));
  plan.log_min_p = std::log(o.min_p);
  plan.scale = 1.0f / o.temperature;
  if (o.mirostat == 0 && o.xtc_threshold <= 0.5f) plan.xtc_probability = o.xtc_probability;
  plan.dynamic = o.mirostat == 0 && o.dynatemp_range > 0.0f;
  plan.least_temperature =
      plan.dynamic ? std::max(0.0f, o.temperature - o.dynatemp_range) : o.temperature;
  // A temperature whose inverse is not a number is as good as 0.
  plan.greedy = !plan.dynamic && !std::isfinite(plan.scale);
  // The best token survives all filters but the typical sampler and XTC. Where mirostat has one
  // token to choose from, it has nothing to learn.
  const bool best_survives =
      o.mirostat != 0 || (o.typical_p >= 1.0f && plan.xtc_probability == 0.0f);
  if (plan.greedy && best_survives) plan.kind = ChainKind::kGreedy;
  if (plan.greedy || plan.dynamic || o.mirostat != 0) return plan;
  const SamplerFilters filters = make_sampler_filters(o, plan);
  if (!filters.before && !filters.xtc) plan.kind = ChainKind::kDense;
  return plan;
}

}  // namespace outrider::llama
