#include "llama/probe/probe_coverage.h"

#include <algorithm>
#include <iterator>

namespace outrider::llama {
namespace {

// "24", "24 and 254", "24, 254 and 520".
std::string listed(const std::vector<std::int32_t>& numbers) {
  std::string text;
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    if (i > 0) text += i + 1 == numbers.size() ? " and " : ", ";
    text += std::to_string(numbers[i]);
  }
  return text;
}

}  // namespace

void ProbeCoverage::add(const ProbeUnit& unit) {
  units_.push_back(unit);
  const auto insert = [](std::vector<std::int32_t>& numbers, std::int32_t number) {
    const auto at = std::lower_bound(numbers.begin(), numbers.end(), number);
    if (at == numbers.end() || *at != number) numbers.insert(at, number);
  };
  switch (unit.kind) {
    case ProbeUnit::Kind::kWidth:
      return insert(widths_[static_cast<std::size_t>(unit.start)], unit.width);
    case ProbeUnit::Kind::kOthers:
      return insert(others_, unit.start);
    case ProbeUnit::Kind::kTree:
      largest_tree_ = std::max(largest_tree_, unit.width);
      return;
    case ProbeUnit::Kind::kPiece:
      longest_piece_ = std::max(longest_piece_, unit.width);
      return;
  }
}

std::vector<std::int32_t> ProbeCoverage::widths_at(std::size_t start, std::int32_t limit) const {
  std::vector<std::int32_t> widths = widths_[start];
  std::erase_if(widths, [limit](std::int32_t width) { return width > limit; });
  return widths;
}

std::int32_t ProbeCoverage::widest_everywhere(std::int32_t limit) const {
  if (widths_.empty()) return 1;
  std::vector<std::int32_t> common = widths_at(0, limit);
  for (const std::vector<std::int32_t>& widths : widths_) {
    std::erase_if(common, [&](std::int32_t width) {
      return !std::binary_search(widths.begin(), widths.end(), width);
    });
  }
  return common.empty() ? 1 : common.back();
}

std::string ProbeCoverage::text(std::int32_t limit) const {
  std::vector<std::int32_t> cells;       // of the places where something was compared
  std::vector<std::int32_t> everywhere;  // compared at each of them
  std::vector<std::int32_t> anywhere;    // at one at least
  for (std::size_t i = 0; i < starts_.size(); ++i) {
    const std::vector<std::int32_t> widths = widths_at(i, limit);
    if (widths.empty()) continue;
    std::vector<std::int32_t> joined;
    std::set_union(anywhere.begin(), anywhere.end(), widths.begin(), widths.end(),
                   std::back_inserter(joined));
    anywhere = std::move(joined);
    if (cells.empty()) everywhere = widths;
    std::erase_if(everywhere, [&](std::int32_t width) {
      return !std::binary_search(widths.begin(), widths.end(), width);
    });
    cells.push_back(starts_[i]);
  }
  std::erase_if(anywhere, [&](std::int32_t width) {
    return std::binary_search(everywhere.begin(), everywhere.end(), width);
  });
  std::string text = "no width";
  if (!cells.empty()) {
    text = everywhere.empty()
               ? ""
               : "widths " + ranges(everywhere) + " after " + listed(cells) + " cells";
    if (!anywhere.empty()) {
      text += (text.empty() ? "widths " : ", ") + ranges(anywhere) + " after some of " +
              (everywhere.empty() ? listed(cells) + " cells" : "them");
    }
  }
  text += "; " + std::to_string(rows_) + " rows";
  if (!others_.empty()) text += "; with other requests in the batch";
  const std::int32_t tree = std::min(largest_tree_, limit);
  if (tree > 2) text += "; trees to " + std::to_string(tree) + " nodes";
  if (longest_piece_ > 0) text += "; prompt pieces to " + std::to_string(longest_piece_);
  return text;
}

}  // namespace outrider::llama
