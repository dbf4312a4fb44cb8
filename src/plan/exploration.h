// Exploration: when a drafter is asked although that does not seem to pay, to learn what it is
// worth.
//
// Idea. A drafter that is suspended, or does not seem to pay, is asked now and then all the same.
// That may take the allowance, a part of all time, which is added as time passes and saved up for
// one time of asking at most. Beyond it, a few single tokens' time may be taken at once, as soon as
// that is a part of all time. So a useless drafter costs about the allowance, however slow it is,
// and one that is useful, or has become so, is noticed.
//
// What asking is expected to take is taken from what is left when it begins. When it has ended, the
// difference to what it took is put right.
//
// Example. Asking is expected to take 21 ms. After 1,050 ms the allowance of a hundredth is 10.5
// ms, and as much may be taken beyond it: the drafter is asked, and 10.5 ms less than nothing are
// left. In the long run it is asked once in 2,100 ms.
//
// Times are milliseconds; `token_ms` is what the target takes for a single token, `elapsed_ms` what
// all steps took so far. One thread. Cost: O(1). Tested by exploration_test.cc.
#pragma once

namespace outrider {

class Exploration {
 public:
  // What may be taken beyond the allowance: of all time so far, and in times of a single token.
  static constexpr double kExploredOfTime = 0.01;
  static constexpr double kExploredAtOnce = 2.5;

  // Whether a drafter may be asked now, which is expected to take `expected_ms`. If so, that is
  // taken from what is left.
  bool begin(double expected_ms, double token_ms, double elapsed_ms);
  // It took `ms` where `expected_ms` were taken.
  void end(double expected_ms, double ms) { left_ms_ += expected_ms - ms; }
  void add_allowance(double ms) { left_ms_ += ms; }

 private:
  double left_ms_ = 0.0;  // of the allowance; less than 0: so much was taken beyond it
};

}  // namespace outrider
