// GainShares: what a drafter gains of each token's plain time, by the kind of step.
//
// Idea. Whether a drafter should read a text depends on what it will gain in the steps to come, and
// that is foreseen from what it gained. What a token is worth depends on how many requests share a
// step, and what guesses gain even more so: sixteen requests leave no room for them on most
// processors. So gains are counted as shares of a token's plain time, by the number of requests.
// And by whether texts are drawn: what guesses gain with the likeliest tokens, at temperature 0,
// pays for reading prompts that it does not pay for at temperature 1.
//
// Gains are the expected ones, which vary less than those that were measured. Before anything was
// gained, what the planner expects of the text stands in, and outweighs a few tokens. The older
// tokens fade. A loss counts as no more than kMostLostAtOnce: it may be an accident.
//
// Example. 100 tokens gained 0.1 of their plain time each. Of a text of which 0.3 is expected, that
// counts as 8 tokens: the share is (100 * 0.1 + 8 * 0.3) / 108 = 0.115.
//
// Times are milliseconds. One thread. Cost: O(1). Tested by gain_shares_test.cc.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace outrider {

// What a drafter did in a step, reading left out.
struct DrafterGain {
  double expected_ms = 0.0;  // gained, by the chances of its guesses
  double measured_ms = 0.0;  // gained, by what came
  std::int64_t tokens = 0;   // by which the texts went on that it was asked about
  std::int32_t n_ready = 1;  // requests that shared the step
  bool drawn = false;        // texts of them are drawn: their temperature is not 0
  double worth_ms = 0.0;     // what a token takes plainly in such a step
  double token_ms = 0.0;     // what the target takes for a single token
  bool ever_right = true;    // a guess of it was right, in this step or before
};

class GainShares {
 public:
  // What a step's loss says of later ones at most, in times of a single token.
  static constexpr double kMostLostAtOnce = 4.0;

  void note_gain(const DrafterGain& gain);

  // Of a token's plain time what is gained in steps that `n_ready` requests share; less than 0:
  // what is lost. `drawn` as in DrafterGain; `expected` is what is thought of it by other means.
  double share(std::int32_t n_ready, bool drawn, double expected) const;
  // Whether the drafter was seen to gain in such steps.
  bool proven(std::int32_t n_ready, bool drawn) const;

  // What holds from run to run, as DrafterExperience::gained has it; and back, in place of what is
  // known. Of less than all pairs, the others stay unknown.
  std::vector<double> numbers() const;
  void recall(std::span<const double> numbers);

 private:
  // Numbers of requests that count as one: 1, 2 and 3, 4 to 7, 8 to 15, more.
  static constexpr std::size_t kLoads = 5;
  struct Gained {
    double shares = 0.0;  // sum over tokens of the share gained of each one's plain time
    double tokens = 0.0;  // the older ones fading, in both
  };
  static std::size_t index(std::int32_t n_ready, bool drawn);  // of gained_

  std::array<Gained, 2 * kLoads> gained_{};  // the latter half of texts that are drawn
};

}  // namespace outrider
