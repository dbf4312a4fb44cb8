// Which drafts are tried, one after the other.
//
// Idea. What a draft is made of has three parts: the type of its weights, its tokens, and the
// layers that are left out. All combinations would be hundreds, and each takes seconds, so one part
// is chosen after the other, the others at their best so far: types first, which change what all
// else costs; then tokens, from many to few; then layers, for each number of them at a few places.
// What is best is what is predicted to be the fastest.
//
// Tested by draft_search_test.cc on made-up figures.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/status.h"
#include "lab/bench_statistics.h"
#include "lab/draft_prediction.h"

namespace outrider::lab {

// What a draft is made like.
struct DraftMake {
  std::string type;                 // of all matrices, ggml's name; empty: as the source has them
  std::int32_t n_tokens = 0;        // that are left; 0: all
  std::int32_t first_left_out = 0;  // of the layers
  std::int32_t n_left_out = 0;      // consecutive ones

  bool operator==(const DraftMake&) const = default;
};

// Of the speed of plain decoding, as it was measured with a draft.
struct DraftSpeed {
  double speedup = 0.0;
  std::optional<Interval> interval = {};  // of the speedup; not given: no text had two tokens
  double processor_speedup = 0.0;         // the same in processor time; 0: not known
  bool identical = false;                 // all texts were those of plain decoding
};

struct DraftCandidate {
  DraftMake make;
  Status status;            // why it cannot be used; then nothing below is known
  std::uint64_t bytes = 0;  // of its file
  double first_chance = 0.0;
  // A pass that begins a draft, and each further one, beside the target's curve: with other
  // programs on the machine both take longer.
  double first_ms = 0.0;
  double further_ms = 0.0;
  double processor_ms = 0.0;  // of a pass, all threads together
  DraftPrediction prediction;
  std::optional<DraftSpeed> measured;
};

struct DraftSearch {
  std::vector<std::string> types;        // to be tried beside the source's own
  std::vector<std::int32_t> n_tokens;    // that may be left, beside all
  std::vector<std::int32_t> n_left_out;  // layers, beside none
  std::int32_t n_layers = 0;             // of the source
  std::int32_t places = 3;               // at which so many layers are left out, >= 1

  // How many candidates there will be.
  std::int32_t size() const;
};

// Where `n` of `n_layers` layers are left out: first ones, spread evenly, the first and the last
// layer kept wherever that is possible. REQUIRES: 0 < n < n_layers
std::vector<std::int32_t> places_to_leave_out(std::int32_t n, std::int32_t n_layers,
                                              std::int32_t places);

// All candidates, in the order in which they were tried. `try_one` gives what became of one; a
// candidate that cannot be used is no error of its. Errors: those of `try_one`.
Result<std::vector<DraftCandidate>> search_drafts(
    const DraftSearch& search,
    const std::function<Result<DraftCandidate>(const DraftMake&)>& try_one);

// Indices of the candidates that are predicted to be the fastest, the best first; of equally fast
// ones the smaller file. Those that cannot be used are left out.
std::vector<std::size_t> best_drafts(const std::vector<DraftCandidate>& candidates);

// "q4_0, 8192 tokens, without layers 10-14"; "as it is".
std::string make_text(const DraftMake& make);

}  // namespace outrider::lab
