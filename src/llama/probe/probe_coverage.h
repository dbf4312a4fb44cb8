// What a probe has compared, and how to say it.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "llama/probe/probe_plan.h"

namespace outrider::llama {

class ProbeCoverage {
 public:
  // `starts`: cells in front of the batches, per place.
  explicit ProbeCoverage(std::vector<std::int32_t> starts)
      : starts_(std::move(starts)), widths_(starts_.size()) {}

  // All of it was compared and found equal.
  void add(const ProbeUnit& unit);
  const std::vector<ProbeUnit>& units() const { return units_; }
  void forget_pieces() { longest_piece_ = 0; }
  void add_rows(std::int64_t n) { rows_ += n; }

  std::int64_t rows() const { return rows_; }
  // Whether batches with other sequences were compared at every place.
  bool others_everywhere() const { return others_.size() == starts_.size(); }
  std::int32_t longest_piece() const { return longest_piece_; }

  // The widest width up to `limit` that was compared at every place; 1 when none was.
  std::int32_t widest_everywhere(std::int32_t limit) const;

  // "widths 2-4, 8 after 24 and 254 cells, 5 after some of them; 512 rows; prompt pieces to 65".
  // Widths over `limit` are left out, and so are places where nothing was compared.
  std::string text(std::int32_t limit) const;

 private:
  std::vector<std::int32_t> widths_at(std::size_t start, std::int32_t limit) const;

  std::vector<ProbeUnit> units_;
  std::vector<std::int32_t> starts_;
  std::vector<std::vector<std::int32_t>> widths_;  // per place, ascending, each once
  std::vector<std::int32_t> others_;               // indices of places
  std::int32_t longest_piece_ = 0;
  std::int32_t largest_tree_ = 0;
  std::int64_t rows_ = 0;
};

}  // namespace outrider::llama
