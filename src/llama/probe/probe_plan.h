// What a probe of exactness compares, in which order.
//
// Idea. A probe has a budget, and a large model may need all of it for its first few batches. So
// the work is cut into units that are worth something alone, the telling ones first: small widths
// everywhere in the cache (kernels change with its size), then several requests at once, then wide
// ones, then pieces of prompts, then the same with other tokens (some differences show in one row
// of three only), then the widths between.
//
// Example, widest 16, one sequence, starts 24, 254, 520:
//    required   2 3 4 at each start
//    then       8 at 520, 254, 24; 16 at 520, 254, 24; trees of 4 and 8; prompt pieces of 33;
//               a second round of 2 3 4 8 16; prompt pieces of 65; 5 6 7 9 ... 15 at one start
//               each; 130, 512
//
// Cost of a unit is in single steps, for the decision whether it still fits: a batch of w is taken
// for (1 + w/4) of them, which is more than measured anywhere.
//
// Tested by probe_plan_test.cc.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace outrider::llama {

struct ProbeUnit {
  enum class Kind {
    kWidth,   // batches of `width` against single steps
    kOthers,  // the same while other sequences share the batch
    kTree,  // a tree of `width` nodes with wrong side branches, its main chain against single steps
    kPiece,  // a prompt in one piece of `width` tokens against batches that are known to be exact
  };
  Kind kind = Kind::kWidth;
  std::int32_t start = 0;  // index of the place in the cache; not for kPiece
  std::int32_t width = 2;
  std::int32_t round = 0;  // selects the tokens
  bool required = false;   // exact=on needs it
  double budgets = 1.0;    // how many times the budget may be spent with it

  // The same work.
  bool operator==(const ProbeUnit& other) const {
    return kind == other.kind && start == other.start && width == other.width &&
           round == other.round;
  }

  // Estimate, in single steps. `known`: rows of single steps that need not be made again.
  double cost(std::int32_t known) const;
};

struct ProbePlanOptions {
  std::int32_t widest = 16;   // >= 2
  std::int32_t n_starts = 3;  // >= 1, in ascending order of cells
  std::int32_t n_sequences = 1;
  std::int32_t max_leaves = 1;
  std::int32_t n_batch = 512;  // no unit holds more tokens in one evaluation
  // The kernels have no way to tell one width from another, and only whether they run is to be
  // seen: 2 tokens and the widest at each start, with others, one tree, one piece.
  bool same_for_all_widths = false;
};

// All units, in order. Every width from 2 to widest occurs at least once.
std::vector<ProbeUnit> plan_probe(const ProbePlanOptions& options);

// More rounds of the widths up to `limit` at each start, for a model in which a wider batch was
// seen to differ: narrower ones may differ more rarely.
std::vector<ProbeUnit> plan_suspicion(const ProbePlanOptions& options, std::int32_t limit);

// Single steps that a unit of this width needs for comparison. One number for all widths of up to
// 4, so that they share them.
std::int32_t rows_needed(std::int32_t width, std::int32_t widest);

// "2-4, 8, 16" for ascending numbers.
std::string ranges(const std::vector<std::int32_t>& numbers);

}  // namespace outrider::llama
