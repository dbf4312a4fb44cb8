// CostCurve: what a pass of a model takes, by the number of its tokens.
//
// Idea. One table, no formula: kernels work on tiles, so a pass of four tokens may take less than
// one of two (on a Zen 4 with Q4_0: 1, 1.49, 1.81, 1.30 times a single token). The logarithm of a
// time is a common level and a shape by width. The level follows the machine quickly (another
// program, a longer context). The shape is learned slowly, and from neighbours only: from how a
// pass compares with the one just before it, of another width. Compared with the level, a width
// that is used while another program runs would pass for dear for good. (With 60 passes of one
// width while the machine was twice as slow, 60 of another while it was not, and so on, a single
// token was thought to take 1.9 times what it takes; so it is 1.07.) An observation moves both by
// no more than a bounded step, so that a pass that was held up counts little.
//
// Where nothing was measured, no neighbour bounds what the first wide pass says, and one that was
// held up would not be tried again. So widths compare only when a second pass of one was seen, and
// the quicker of the two counts; what was seen once until then is forgotten. Of the smallest width,
// too, the quicker of the first two passes counts, whatever was seen in between.
//
// What was never measured is read off a straight line between the measured neighbours; beyond the
// largest width, off the line through it and the largest one of at most half its size. (Not in
// proportion: then a token more would cost what each of them costs on average, and a batch of many
// requests would never be widened on a machine that has room for it.) It is measured as soon as it
// is tried; what is further away than twice the largest width is too far for a guess (reach()).
//
// A model builds its graph anew where a pass has another width than the one before. What that takes
// is measured at load (model/measure_costs.h), is no part of the times here, and is taken off what
// is noted: single tokens behind wider passes would pass for dear otherwise, and wider ones, which
// make the pass behind them slower as well, for cheap.
//
// Example. 16 tokens took 25 ms and 8 took 22: 32 are expected to take 31, not 50.
//
// Cost: O(1) to note; O(kMaxWidth) after a first measurement of a width. Tested by
// cost_curve_test.cc on flat, linear, tiled, noisy and drifting machines.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "base/cost_point.h"

namespace outrider {

class CostCurve {
 public:
  static constexpr std::int32_t kMaxWidth = 256;

  CostCurve() = default;
  // What was measured before. Points out of range are left out.
  explicit CostCurve(std::span<const CostPoint> measured, double rebuild_ms = 0.0);

  // A pass of `width` tokens took `ms`. Of one of 0 tokens or more than kMaxWidth (prompts) nothing
  // is kept but that the next one finds another graph than its own.
  void note(std::int32_t width, double ms);

  // Nothing is known, and ms() is 0.
  bool empty() const { return n_noted_ == 0; }

  // What a pass of `width` tokens takes now; 0 for a width of 0 or less.
  double ms(std::int32_t width) const;

  // What a pass of `width` tokens takes more where a plain one would have `plain` (both >= 1): for
  // its own graph, and for that of the plain pass that comes behind it sooner or later; less what
  // the plain pass would have taken for its graph now. >= 0.
  double detour_ms(std::int32_t width, std::int32_t plain) const;
  // What the next pass of `width` tokens takes for its graph.
  double rebuild_ms(std::int32_t width) const { return width == graph_width_ ? 0.0 : rebuild_ms(); }
  double rebuild_ms() const;

  // How many passes were noted, and of how many widths.
  std::int64_t passes_noted() const { return n_noted_; }
  std::int32_t widths_noted() const { return n_widths_; }
  // Whether a width beyond the smallest was seen twice, or measured with care.
  bool compares_widths() const;
  std::int32_t smallest() const { return smallest_; }  // width that was noted; 0: none
  std::int32_t largest() const { return largest_; }    // likewise
  // What a token more takes in a pass wider than any that was noted; 0 where only one width was.
  double further_ms() const;
  // The widest pass that may be planned: twice the largest that was noted, at most kMaxWidth.
  std::int32_t reach() const;

  // How many passes of this width were noted.
  std::int64_t noted(std::int32_t width) const;

  // What was measured, at the present level, by rising width.
  std::vector<CostPoint> points() const;

 private:
  struct Entry {
    double shape = 0.0;  // natural logarithm of the time, less the level
    std::int64_t n = 0;
  };

  void note_first(std::int32_t width, double time);
  void forget_seen_once();
  double time_of(std::int32_t width) const;  // of one that was noted
  double slope() const;                      // of a token more, beyond the largest that was noted
  double beyond(std::int32_t width) const;

  std::array<Entry, kMaxWidth + 1> entries_{};  // [width]
  double level_ = 0.0;
  double rebuild_ = 0.0;          // in units of exp(level_)
  std::int32_t graph_width_ = 0;  // of the pass before, noted or not; 0: not known
  std::int32_t last_width_ = 0;   // of the pass before; 0: none
  double last_level_ = 0.0;       // what it by itself would say of the level
  std::int64_t n_noted_ = 0;
  std::int32_t n_widths_ = 0;
  std::int32_t smallest_ = 0;  // width that was noted
  std::int32_t largest_ = 0;
};

}  // namespace outrider
