#include "llama/sampler_chain.h"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <limits>
#include <new>
#include <utility>
#include <vector>

#include "llama/handles.h"

namespace outrider::llama {
namespace {

constexpr float kNever = -std::numeric_limits<float>::infinity();
constexpr std::size_t kBlock = 64;

// The row without the suppressed tokens; a copy only where there are some.
class Suppressor {
 public:
  explicit Suppressor(std::span<const Token> suppressed)
      : suppressed_(suppressed.begin(), suppressed.end()) {}

  std::span<const float> apply(std::span<const float> logits) {
    if (suppressed_.empty()) return logits;
    row_.assign(logits.begin(), logits.end());
    for (const Token token : suppressed_) {
      if (static_cast<std::size_t>(token) < row_.size()) {
        row_[static_cast<std::size_t>(token)] = kNever;
      }
    }
    return row_;
  }

 private:
  std::vector<Token> suppressed_;
  std::vector<float> row_;
};

class GreedySampler : public Sampler {
 public:
  explicit GreedySampler(Suppressor suppressor) : suppressor_(std::move(suppressor)) {}

  Distribution apply(std::span<const float> logits) override {
    logits = suppressor_.apply(logits);
    const std::ptrdiff_t best = argmax(logits);
    if (best < 0) return {};
    logit_ = logits[static_cast<std::size_t>(best)];
    token_ = static_cast<Token>(best);
    return {.logits = {&logit_, 1}, .tokens = {&token_, 1}};
  }

  void accept(Token /*token*/) override {}
  bool has_state() const override { return false; }
  std::unique_ptr<Sampler> clone() const override { return std::make_unique<GreedySampler>(*this); }

 private:
  Suppressor suppressor_;
  float logit_ = 0.0f;
  Token token_ = 0;
};

class TemperatureSampler : public Sampler {
 public:
  TemperatureSampler(float scale, Suppressor suppressor)
      : scale_(scale), suppressor_(std::move(suppressor)) {}

  Distribution apply(std::span<const float> logits) override {
    return {.logits = suppressor_.apply(logits), .tokens = {}, .scale = scale_};
  }

  void accept(Token /*token*/) override {}
  bool has_state() const override { return false; }
  std::unique_ptr<Sampler> clone() const override {
    return std::make_unique<TemperatureSampler>(*this);
  }

 private:
  float scale_;
  Suppressor suppressor_;
};

// What stands first in the chain and can be prepared by a scan of the row.
enum class First { kOther, kTopK, kMinP };

class ChainSampler : public Sampler {
 public:
  ChainSampler(SamplerHandle chain, First first, std::size_t top_k, float log_min_p,
               Suppressor suppressor)
      : chain_(std::move(chain)),
        first_(first),
        top_k_(top_k),
        log_min_p_(log_min_p),
        suppressor_(std::move(suppressor)) {}

  Distribution apply(std::span<const float> logits) override {
    logits = suppressor_.apply(logits);
    candidates_.clear();
    const bool prepared = (first_ == First::kTopK && take_top_k(logits)) ||
                          (first_ == First::kMinP && take_min_p(logits));
    if (!prepared) take_all(logits);
    if (n_possible_ == 0) return {};
    llama_token_data_array array{.data = candidates_.data(),
                                 .size = candidates_.size(),
                                 .selected = -1,
                                 .sorted = prepared && first_ == First::kTopK};
    llama_sampler_apply(chain_.get(), &array);
    logits_.resize(array.size);
    tokens_.resize(array.size);
    for (std::size_t i = 0; i < array.size; ++i) {
      logits_[i] = array.data[i].logit;
      tokens_[i] = array.data[i].id;
    }
    return {.logits = logits_, .tokens = tokens_};
  }

  void accept(Token token) override { llama_sampler_accept(chain_.get(), token); }
  bool has_state() const override { return false; }  // none of the samplers so far has any

  std::unique_ptr<Sampler> clone() const override {
    return std::make_unique<ChainSampler>(SamplerHandle(llama_sampler_clone(chain_.get())), first_,
                                          top_k_, log_min_p_, suppressor_);
  }

 private:
  void add(std::span<const float> logits, std::size_t i) {
    candidates_.push_back({.id = static_cast<llama_token>(i), .logit = logits[i], .p = 0.0f});
  }

  void take_all(std::span<const float> logits) {
    candidates_.clear();
    n_possible_ = 0;
    for (std::size_t i = 0; i < logits.size(); ++i) {
      add(logits, i);
      if (std::isnan(logits[i])) candidates_.back().logit = kNever;
      n_possible_ += candidates_.back().logit > kNever ? 1 : 0;
    }
  }

  // The largest value of each block of the row, NaN passed over; the last block may be short.
  void find_block_maxima(std::span<const float> logits) {
    maxima_.clear();
    for (std::size_t begin = 0; begin < logits.size(); begin += kBlock) {
      constexpr std::size_t kLanes = 16;
      float lanes[kLanes];
      std::fill(lanes, lanes + kLanes, kNever);
      const std::size_t end = std::min(begin + kBlock, logits.size());
      std::size_t i = begin;
      for (; i + kLanes <= end; i += kLanes) {
        for (std::size_t k = 0; k < kLanes; ++k) {
          lanes[k] = logits[i + k] > lanes[k] ? logits[i + k] : lanes[k];
        }
      }
      for (; i < end; ++i) lanes[0] = logits[i] > lanes[0] ? logits[i] : lanes[0];
      maxima_.push_back(*std::max_element(lanes, lanes + kLanes));
    }
  }

  // All values that reach `threshold`, in the order of their ids.
  void take_from(std::span<const float> logits, float threshold) {
    for (std::size_t block = 0; block < maxima_.size(); ++block) {
      if (!(maxima_[block] >= threshold)) continue;
      const std::size_t end = std::min((block + 1) * kBlock, logits.size());
      for (std::size_t i = block * kBlock; i < end; ++i) {
        if (logits[i] >= threshold) add(logits, i);
      }
    }
  }

  // The k best, sorted. False when they or their order are not determined by the values alone, or
  // when k is so large that the scan does not pay.
  bool take_top_k(std::span<const float> logits) {
    if (top_k_ * kBlock * 2 > logits.size()) return false;
    find_block_maxima(logits);
    sorted_maxima_ = maxima_;
    const std::vector<float>::iterator kth =
        sorted_maxima_.begin() + static_cast<std::ptrdiff_t>(top_k_ - 1);
    std::nth_element(sorted_maxima_.begin(), kth, sorted_maxima_.end(), std::greater<float>());
    if (*kth == kNever) return false;
    take_from(logits, *kth);
    std::sort(
        candidates_.begin(), candidates_.end(),
        [](const llama_token_data& a, const llama_token_data& b) { return a.logit > b.logit; });
    const std::size_t last = std::min(top_k_, candidates_.size() - 1);
    for (std::size_t i = 0; i < last; ++i) {
      if (candidates_[i].logit == candidates_[i + 1].logit) return false;
    }
    n_possible_ = top_k_;
    candidates_.resize(top_k_);
    return true;
  }

  // What min-p leaves of an unsorted row (llama_sampler_min_p_apply), which the sampler then finds
  // to be all.
  bool take_min_p(std::span<const float> logits) {
    find_block_maxima(logits);
    const float best = *std::max_element(maxima_.begin(), maxima_.end());
    if (best == kNever) return false;
    take_from(logits, best + log_min_p_);
    n_possible_ = candidates_.size();
    return n_possible_ > 0;
  }

  SamplerHandle chain_;
  First first_;
  std::size_t top_k_;
  float log_min_p_;
  Suppressor suppressor_;
  std::vector<llama_token_data> candidates_;
  std::size_t n_possible_ = 0;  // candidates above minus infinity, as far as counted
  std::vector<float> maxima_;   // [blocks]
  std::vector<float> sorted_maxima_;
  std::vector<float> logits_;  // the result
  std::vector<Token> tokens_;
};

struct Chain {
  SamplerHandle handle;
  First first = First::kOther;
  std::size_t n = 0;
};

// Mirrors common_sampler_init of llama.cpp's common/sampling.cpp.
Chain make_chain(const SamplingOptions& options) {
  Chain chain;
  llama_sampler_chain_params params = llama_sampler_chain_default_params();
  params.no_perf = true;
  chain.handle.reset(llama_sampler_chain_init(params));
  const auto add = [&chain](llama_sampler* sampler, First kind) {
    if (sampler == nullptr) return;
    llama_sampler_chain_add(chain.handle.get(), sampler);
    if (chain.n++ == 0) chain.first = kind;
  };
  constexpr std::size_t kMinKeep = 0;
  if (options.top_k > 0) add(llama_sampler_init_top_k(options.top_k), First::kTopK);
  if (options.typical_p < 1.0f) {
    add(llama_sampler_init_typical(options.typical_p, kMinKeep), First::kOther);
  }
  if (options.top_p < 1.0f) {
    add(llama_sampler_init_top_p(options.top_p, kMinKeep), First::kOther);
  }
  if (options.min_p > 0.0f) add(llama_sampler_init_min_p(options.min_p, kMinKeep), First::kMinP);
  if (chain.n > 0 && options.temperature != 1.0f) {
    add(llama_sampler_init_temp(options.temperature), First::kOther);
  }
  return chain;
}

}  // namespace

Result<std::unique_ptr<Sampler>> make_sampler(const SamplingOptions& options, std::int32_t n_vocab,
                                              std::span<const Token> suppressed) {
  assert(n_vocab >= 1 && std::all_of(suppressed.begin(), suppressed.end(),
                                     [&](Token t) { return t >= 0 && t < n_vocab; }));
  static_cast<void>(n_vocab);
  OUTRIDER_RETURN_IF_ERROR(validate(options));
  try {
    Suppressor suppressor(suppressed);
    // The best token survives top-k, top-p and min-p, but not always the typical sampler. A
    // temperature whose inverse is not a number is as good as 0.
    const float scale = 1.0f / options.temperature;
    const bool greedy = !std::isfinite(scale);
    if (greedy && options.typical_p >= 1.0f) {
      return std::unique_ptr<Sampler>(std::make_unique<GreedySampler>(std::move(suppressor)));
    }
    SamplingOptions in_chain = options;
    if (greedy) in_chain.temperature = 0.0f;
    Chain chain = make_chain(in_chain);
    if (chain.n == 0) {
      return std::unique_ptr<Sampler>(
          std::make_unique<TemperatureSampler>(scale, std::move(suppressor)));
    }
    return std::unique_ptr<Sampler>(std::make_unique<ChainSampler>(
        std::move(chain.handle), chain.first, static_cast<std::size_t>(std::max(options.top_k, 0)),
        std::log(options.min_p), std::move(suppressor)));
  } catch (const std::bad_alloc&) {
    return resource_exhausted("not enough memory for a sampler");
  }
}

}  // namespace outrider::llama
