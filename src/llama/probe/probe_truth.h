// ProbeTruth: what single steps say, which batches are compared with.
//
// Behind each start there is one text for a round: what the model itself would say and random
// tokens, chosen as it grows. The rows are large (16 MB for 16 of a vocabulary of 262,144), so
// those of the last round alone are kept.
//
// Tested by probe_test.cc.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "base/status.h"
#include "llama/probe/probe_walk.h"

namespace outrider::llama {

class ProbeTruth {
 public:
  struct Stretch {
    std::vector<Token> tokens;  // [rows.size() + 1]: the next token is known with each row
    std::vector<ProbeRow> rows;
  };

  // `walk` must outlive it. Widths up to `widest` are compared.
  ProbeTruth(ProbeWalk& walk, std::int32_t widest) : walk_(walk), widest_(widest) {}

  // Makes at least `n` rows behind the start with this index, and forgets other rounds'. When some
  // are missing (or `again`), those that are known are made again and compared; how many is added
  // to `repeated`, and the first difference is kept. Errors: the walk's.
  Status take(std::int32_t start, std::int32_t round, std::int32_t n, bool again,
              std::int64_t* repeated);

  std::int32_t round() const { return round_; }                        // the last one taken
  std::int32_t known(std::int32_t start, std::int32_t round) const;    // rows
  const Stretch& at(std::int32_t start) { return stretches_[start]; }  // of the last round

  // How repeated single steps first differed ("by up to ..."); empty when they never did.
  const std::string& difference() const { return difference_; }

 private:
  ProbeWalk& walk_;
  std::int32_t widest_;
  std::int32_t round_ = 0;
  std::map<std::int32_t, Stretch> stretches_;
  std::string difference_;
};

}  // namespace outrider::llama
