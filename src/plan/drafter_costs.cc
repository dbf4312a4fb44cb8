#include "plan/drafter_costs.h"

#include <algorithm>
#include <limits>

namespace outrider {
namespace {

// What reading a token takes, in passes, while nothing of it was seen: batches are several times
// quicker than single tokens.
constexpr double kReadPasses = 0.3;
// The same in times of the target's single token, while no pass was seen either. Our kernels read a
// token in 0.15 of that time, and a draft is some five times as quick as its target.
constexpr double kReadTokens = 0.03;
constexpr double kReadMemory = 4096.0;  // tokens that count most
// One reading of a text that follows outweighs what another run measured.
constexpr double kRecalledReading = 128.0;

// A pass that takes more than so many times what was expected was held up by something else.
constexpr double kMostOff = 3.0;
// The same where only sizes are known.
constexpr double kMostOffUnseen = 8.0;
// However little was expected, this is credible, in times of a single token: it loses little.
constexpr double kLeastHeldUp = 0.25;

// What is credible where `most_ms` is by what is known of the drafter. All is, where nothing is
// known of the target.
double credible_ms(double most_ms, const CostCurve& target) {
  if (target.empty()) return std::numeric_limits<double>::infinity();
  return std::max(most_ms, kLeastHeldUp * target.ms(1));
}

}  // namespace

double DrafterCosts::most_pass_ms(bool first, std::int32_t sharing, const CostCurve& target) const {
  const std::int32_t n = std::max(sharing, 1);
  const double expected_ms = pass_ms(first, n, target) * n;
  const bool unseen = first_.empty();
  // Of one that nothing is known of: as long as the target's own.
  if (unseen && expected_share_ <= 0.0) return credible_ms(target.ms(n), target);
  return credible_ms((unseen ? kMostOffUnseen : kMostOff) * expected_ms, target);
}

double DrafterCosts::note_pass(bool first, std::int32_t sharing, double ms,
                               const CostCurve& target) {
  const double counted = held_up_pass_.counted(ms, most_pass_ms(first, sharing, target));
  (first ? first_ : further_).note(sharing, counted);
  return counted;
}

double DrafterCosts::note_reading(std::int64_t tokens, double ms, const CostCurve& target) {
  if (tokens <= 0) return 0.0;
  const double n = static_cast<double>(tokens);
  const double most_off = has_read() ? kMostOff : kMostOffUnseen;
  const double most_ms = credible_ms(most_off * reading_ms(tokens, target), target);
  const double counted = held_up_reading_.counted(std::max(ms, 0.0), most_ms);
  const double fade = std::max(0.0, 1.0 - n / kReadMemory);
  read_tokens_ = read_tokens_ * fade + n;
  read_ms_ = read_ms_ * fade + counted;
  return counted;
}

double DrafterCosts::pass_ms(bool first, std::int32_t sharing, const CostCurve& target) const {
  if (!first && at_once_) return 0.0;
  const CostCurve& seen = first || further_.empty() ? first_ : further_;
  const double n = static_cast<double>(std::max(sharing, 1));
  if (seen.empty()) return expected_share_ * target.ms(sharing) / n;
  const double widest_ms = target.ms(seen.largest());
  if (sharing <= seen.largest() || widest_ms <= 0.0) return seen.ms(sharing) / n;
  return seen.ms(seen.largest()) * target.ms(sharing) / widest_ms / n;
}

double DrafterCosts::reading_ms(std::int64_t tokens, const CostCurve& target) const {
  const double n = static_cast<double>(tokens);
  if (has_read()) return read_ms_ / read_tokens_ * n;
  const double token_ms = target.ms(1);
  const double one_pass_ms = pass_ms(/*first=*/true, 1, target);
  if (one_pass_ms <= 0.0) return kReadTokens * token_ms * n;
  const double further_ms = target.further_ms();
  return one_pass_ms * (further_ms > 0.0 ? further_ms / token_ms : kReadPasses) * n;
}

void DrafterCosts::tell(DrafterExperience* experience) const {
  experience->first_passes = first_.points();
  experience->further_passes = further_.points();
  experience->reading_ms = has_read() ? read_ms_ / read_tokens_ : 0.0;
}

void DrafterCosts::recall(const DrafterExperience& experience) {
  const double expected_share = expected_share_;
  const bool at_once = at_once_;
  *this = DrafterCosts();
  expected_share_ = expected_share;
  at_once_ = at_once;
  first_ = CostCurve(experience.first_passes);
  further_ = CostCurve(experience.further_passes);
  if (experience.reading_ms > 0.0) {
    read_tokens_ = kRecalledReading;
    read_ms_ = experience.reading_ms * kRecalledReading;
  }
}

}  // namespace outrider
