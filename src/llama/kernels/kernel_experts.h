// Which rows of activations meet in which expert of a product with experts (MUL_MAT_ID), and where
// their outputs go.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "ggml.h"
#include "llama/kernels/kernel_products.h"

namespace outrider::llama {

// Pairs of a token and an expert that it goes to, sorted by experts: so rows that meet in the same
// expert share its weights.
class ExpertPairs {
 public:
  // Memory for the table of one thread.
  static std::size_t bytes(const ggml_tensor* op) {
    const auto pairs = static_cast<std::size_t>(ggml_nelements(op->src[2]));
    const auto experts = static_cast<std::size_t>(op->src[0]->ne[2]);
    return GGML_PAD((2 * pairs + 2 * experts + 1) * sizeof(std::int32_t), 64);
  }

  ExpertPairs(const ggml_tensor* op, std::uint8_t* memory)
      : ids_(op->src[2]),
        n_experts_(op->src[0]->ne[2]),
        begins_(reinterpret_cast<std::int32_t*>(memory)),
        used_(begins_ + n_experts_ + 1),
        pairs_(used_ + n_experts_),
        places_(pairs_ + ggml_nelements(ids_)) {
    std::fill_n(begins_, n_experts_ + 1, 0);
    const auto n_pairs = static_cast<std::int32_t>(ggml_nelements(ids_));
    for (std::int32_t pair = 0; pair < n_pairs; ++pair) ++begins_[expert(pair) + 1];
    for (std::int64_t e = 0; e < n_experts_; ++e) begins_[e + 1] += begins_[e];
    for (std::int32_t pair = 0; pair < n_pairs; ++pair) {
      places_[pair] = begins_[expert(pair)]++;
      pairs_[places_[pair]] = pair;
    }
    for (std::int64_t e = n_experts_; e > 0; --e) begins_[e] = begins_[e - 1];
    begins_[0] = 0;
    for (std::int32_t e = 0; e < n_experts_; ++e) {
      if (count(e) > 0) used_[n_used_++] = e;
    }
  }

  std::int64_t begin(std::int64_t e) const { return begins_[e]; }
  // The pairs of the expert that has most.
  std::int64_t largest() const {
    std::int64_t most = 0;
    for (std::int64_t e = 0; e < n_experts_; ++e) most = std::max(most, count(e));
    return most;
  }
  // Experts that have pairs, and the k-th of them, 0 <= k < n_used().
  std::int64_t n_used() const { return n_used_; }
  std::int64_t used(std::int64_t k) const { return used_[k]; }
  std::int64_t count(std::int64_t e) const { return begins_[e + 1] - begins_[e]; }
  // Of the pair at `at` in the sorted order; `rank`: which of its token's experts it is, from 0.
  std::int64_t rank(std::int64_t at) const { return pairs_[at] % ids_->ne[0]; }
  std::int64_t token(std::int64_t at) const { return pairs_[at] / ids_->ne[0]; }
  // Where the pair of a token and its expert `rank` is in the sorted order.
  std::int64_t at(std::int64_t token, std::int64_t rank) const {
    return places_[token * ids_->ne[0] + rank];
  }

 private:
  std::int32_t expert(std::int32_t pair) const {
    const auto rank = static_cast<std::size_t>(pair % ids_->ne[0]);
    const auto token = static_cast<std::size_t>(pair / ids_->ne[0]);
    std::int32_t id = 0;
    std::memcpy(&id,
                static_cast<const char*>(ids_->data) + rank * ids_->nb[0] + token * ids_->nb[1],
                sizeof id);
    // As ggml's own kernels have it. What a worker's peer sends must not be written beyond the
    // table.
    GGML_ASSERT(id >= 0 && id < n_experts_);
    return id;
  }

  const ggml_tensor* ids_;
  std::int64_t n_experts_;
  std::int32_t* begins_;  // [n_experts + 1]
  std::int32_t* used_;    // [n_used]
  std::int32_t* pairs_;   // [pairs], sorted
  std::int32_t* places_;  // [pairs], of each one among them
  std::int64_t n_used_ = 0;
};

class ExpertOutputs : public OutputRows {
 public:
  ExpertOutputs(const ggml_tensor* out, const ExpertPairs& pairs, std::int64_t begin)
      : out_(out), pairs_(pairs), begin_(begin) {}
  float* row(std::int64_t i) const override {
    const auto rank = static_cast<std::size_t>(pairs_.rank(begin_ + i));
    const auto token = static_cast<std::size_t>(pairs_.token(begin_ + i));
    return reinterpret_cast<float*>(static_cast<char*>(out_->data) + rank * out_->nb[1] +
                                    token * out_->nb[2]);
  }

 private:
  const ggml_tensor* out_;
  const ExpertPairs& pairs_;
  std::int64_t begin_;
};

}  // namespace outrider::llama
