// HeldUp: tells a pass that something else held up (a stopped process, a laptop that slept, pages
// that were read from the disk) from one that takes so long.
//
// Idea. Such a pass takes seconds where milliseconds were expected. Counted in full it would be
// worth hundreds of ordinary ones: a draft that made texts twice as fast was switched off for 20
// minutes by one pause of a minute, and, where its reading was held up, in all later runs. One pass
// alone says nothing of the next, so it counts as the most that is credible. The next one that
// takes as long counts in full: then it is the draft that is slow.
//
// Tested by drafter_costs_test.cc and engine/engine_planner_pauses_test.cc.
#pragma once

#include <algorithm>

namespace outrider {

class HeldUp {
 public:
  // What a pass of `ms` counts as, where up to `most_ms` are credible.
  double counted(double ms, double most_ms) {
    const bool late = ms > most_ms;
    const double counted = late && !last_was_late_ ? most_ms : ms;
    last_was_late_ = late;
    return counted;
  }

 private:
  bool last_was_late_ = false;
};

}  // namespace outrider
