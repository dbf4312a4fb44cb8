// How near to each other two choices of a token were: a near-tie that rounding decides, or a bug.
//
// At the first position where a plain and a speculative run differ, the plain run's row of logits
// is looked at again. The gap is the smallest change of logits that turns the plain run's choice
// into the other one:
//  - temperature 0: the difference of the two logits;
//  - else the difference of the two perturbed scores logit + T * g(seed, position, token), which is
//    what the coupled rule compares (dist/gumbel.h), in units of logits;
//  - or, where the sampler chain cuts candidates off, the distance of one of the two tokens to the
//    edge of the cut, when that is less: a token that is kept in one run and cut off in the other
//    changes the choice as well.
// A batch and single steps that differ in rounding only differ in logits by hundredths (by at most
// about 0.1 with F16 keys and values, measured); a gap above kSuspiciousGap is none of rounding's.
//
// Tested by logit_gap_test.cc.
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "base/random.h"
#include "base/types.h"
#include "model/sampler.h"

namespace outrider::lab {

inline constexpr double kSuspiciousGap = 0.5;  // in logits

// What a chain made of one row.
struct RecordedRow {
  std::vector<float> logits;  // [n_vocab] the row
  std::vector<Token> kept;    // the candidates that the chain left
  // [kept] their log-probabilities up to a constant, after biases and penalties; empty: not known,
  // then the logits of the row stand for them. The edge of a cut is told by the row's logits alone,
  // so with biases, penalties or a grammar a gap at an edge is a rough one.
  std::vector<float> scores;

  bool recorded() const { return !logits.empty(); }
};

// A sampler that keeps the row of its call number `index` (from 0) and otherwise does what `inner`
// does. In plain decoding, one call is one token. `row` must outlive it.
std::unique_ptr<Sampler> make_recording_sampler(std::unique_ptr<Sampler> inner, std::size_t index,
                                                RecordedRow& row);

// The gap as defined above. REQUIRES: a recorded row; both ids inside it; temperature >= 0.
double logit_gap(const RecordedRow& row, float temperature, NoiseKey key, Token plain,
                 Token speculative);

}  // namespace outrider::lab
