#include "engine/prompt_share.h"

#include <algorithm>
#include <cassert>
#include <limits>

namespace outrider {
namespace {

constexpr double kFollow = 0.3;    // weight of a new measurement of a token's time
constexpr double kPaidBack = 0.5;  // of the share, for the loan

// A pass whose prompts take more than so many times what was expected was held up by something
// else.
constexpr double kMostOffForPrompts = 2.0;
// However little was expected, this is credible: a few tokens may take as long as many do.
constexpr double kLeastHeldUpMs = 0.25 * PromptShare::kBurstMs;

}  // namespace

double PromptShare::share_of(std::int64_t texts, std::int64_t prompts) const {
  const double others = static_cast<double>(prompts - 1);
  return std::max(share_, others / (others + static_cast<double>(texts)));
}

std::int64_t PromptShare::tokens(std::int64_t texts, std::int64_t prompts) {
  assert(texts > 0 && prompts > 0);
  now_ = share_of(texts, prompts);
  if (!reading_) loan_ms_ = std::max(0.0, credit_ms_);
  if (share_ >= 1.0) return chunk_;
  const std::int64_t piece = grid();
  if (credit_ms_ <= 0.0) return 0;
  if (ms_per_token_ <= 0.0) return piece;
  // Less than a piece waits until there is enough for one; a piece dearer than the whole bucket is
  // read when that is full.
  const double affordable = credit_ms_ / ms_per_token_;
  if (affordable < static_cast<double>(piece)) return credit_ms_ >= kBurstMs ? piece : 0;
  return affordable >= static_cast<double>(chunk_) ? chunk_ : static_cast<std::int64_t>(affordable);
}

// What is credible for `n_prompt` tokens.
double PromptShare::most_ms(std::int64_t n_prompt) const {
  if (ms_per_token_ <= 0.0) return kBurstMs;
  return std::max(kLeastHeldUpMs,
                  kMostOffForPrompts * ms_per_token_ * static_cast<double>(n_prompt));
}

double PromptShare::reading_ms(std::int64_t texts, std::int64_t readers) {
  assert(readers > 0);
  if (share_ >= 1.0 || texts == 0) return std::numeric_limits<double>::infinity();
  reads_share_ = share_of(texts, readers);
  return std::max(0.0, reads_ms_);
}

double PromptShare::reading_takes_ms(double ms) const {
  if (reads_share_ <= 0.0) return ms;
  return std::max(ms, (ms - reads_ms_) / reads_share_);
}

void PromptShare::note(double ms, double prompt_ms, std::int64_t n_prompt, double reading_ms) {
  const double reads_share = reads_share_ > 0.0 ? reads_share_ : share_;
  reads_ms_ = std::min(kReadMs, reads_ms_ + reads_share * ms - reading_ms);
  // What several readers may take beyond the share is not the prompts' to pay back.
  const double charged_ms = reading_ms * share_ / reads_share;
  reads_share_ = 0.0;
  if (n_prompt > 0) {
    const double counted_ms = held_up_.counted(prompt_ms, most_ms(n_prompt));
    ms -= prompt_ms - counted_ms;  // nor did the texts have that time
    prompt_ms = counted_ms;
  }
  reading_ = now_ > 0.0;
  const double share = reading_ ? now_ : share_;
  // Beside prompts that wait it is one more loan: drafters read without end, and prompts would wait
  // as long for a first token.
  if (reading_) loan_ms_ += charged_ms;
  const double paid_ms = reading_ ? std::min(loan_ms_, kPaidBack * share_ * ms) : charged_ms;
  loan_ms_ = std::max(0.0, loan_ms_ - paid_ms);
  credit_ms_ = std::min(kBurstMs, credit_ms_ + share * ms - paid_ms - prompt_ms);
  now_ = 0.0;
  if (n_prompt == 0) return;
  const double one = prompt_ms / static_cast<double>(n_prompt);
  ms_per_token_ = ms_per_token_ <= 0.0 ? one : ms_per_token_ + kFollow * (one - ms_per_token_);
}

}  // namespace outrider
