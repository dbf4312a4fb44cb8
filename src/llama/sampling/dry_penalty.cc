#include "llama/sampling/dry_penalty.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace outrider::llama {
namespace {

constexpr std::int32_t kNone = -1;

// For each k the number of last tokens that also stand k tokens earlier. Not cut to a limit here:
// the cut numbers would not say how far the next ones can be taken over.
void count_repeats(std::span<const Token> text, std::vector<std::size_t>& repeats) {
  const std::size_t n = text.size();
  const auto from_end = [text, n](std::size_t i) { return text[n - 1 - i]; };
  repeats.assign(n, 0);
  // What lies from `left` to before `right`, from the end on, is as the end itself.
  std::size_t left = 0;
  std::size_t right = 0;
  for (std::size_t k = 1; k < n; ++k) {
    std::size_t length = k < right ? std::min(repeats[k - left], right - k) : 0;
    while (k + length < n && from_end(k + length) == from_end(length)) ++length;
    if (k + length > right) {
      left = k;
      right = k + length;
    }
    repeats[k] = length;
  }
}

// llama.cpp's: from which exponent on the power is no number.
std::int32_t most_exponent(float base) {
  constexpr float kLogOfMost = 88.7228391f;
  return base > 1.000001f ? static_cast<std::int32_t>(kLogOfMost / std::log(base)) : 0;
}

}  // namespace

DryPenalty::DryPenalty(const SamplingOptions& o, std::shared_ptr<const DryBreakers> breakers)
    : multiplier_(o.dry_multiplier),
      base_(o.dry_base),
      allowed_length_(o.dry_allowed_length),
      most_(most_exponent(o.dry_base)),
      window_(static_cast<std::size_t>(o.dry_penalty_last_n)),
      breakers_(std::move(breakers)) {}

void DryPenalty::apply(std::span<const Token> text, std::span<llama_token_data> candidates,
                       Scratch& scratch) const {
  text = text.last(std::min(window_, text.size()));
  const std::size_t allowed = static_cast<std::size_t>(allowed_length_);
  if (text.size() <= allowed) return;
  const std::size_t limit = breakers_->n_behind_last(text);
  if (limit < allowed) return;
  count_repeats(text, scratch.repeats);
  scratch.longest.assign(candidates.size(), kNone);
  for (std::size_t k = 1; k < text.size(); ++k) {
    const std::size_t length = std::min(scratch.repeats[k], limit);
    if (length < allowed) continue;
    const Token next = text[text.size() - k];
    const auto at = std::lower_bound(
        candidates.begin(), candidates.end(), next,
        [](const llama_token_data& candidate, Token token) { return candidate.id < token; });
    if (at == candidates.end() || at->id != next) continue;
    std::int32_t& longest = scratch.longest[static_cast<std::size_t>(at - candidates.begin())];
    longest = std::max(longest, static_cast<std::int32_t>(length));
  }
  for (std::size_t i = 0; i < candidates.size(); ++i) {
    if (scratch.longest[i] == kNone || breakers_->ends_alone(candidates[i].id)) continue;
    candidates[i].logit -= penalty(scratch.longest[i]);
  }
}

// The power in double precision and the product rounded once, as llama.cpp's.
float DryPenalty::penalty(std::int32_t length) const {
  std::int32_t exponent = length - allowed_length_;
  if (most_ > 0) exponent = std::min(exponent, most_);
  return static_cast<float>(static_cast<double>(multiplier_) *
                            std::pow(static_cast<double>(base_), static_cast<double>(exponent)));
}

}  // namespace outrider::llama
