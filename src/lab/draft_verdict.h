// Which of the drafts that were tried is written, and the sentence about it.
//
// Idea. Two speed-ups whose intervals overlap cannot be told apart, and one whose interval holds 1
// is no gain that was shown. So of the drafts that pay for certain the fastest is looked for, and
// of those that cannot be told from it the smallest file is taken: it costs less memory.
//
// Example. 2.16 (2.05 to 2.27) with 78 MB and 2.29 (2.18 to 2.40) with 94 MB: the first.
// Tested by draft_verdict_test.cc on made-up figures.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "lab/draft_search.h"

namespace outrider::lab {

struct DraftVerdict {
  std::optional<std::size_t> chosen;  // of the candidates; not given: none pays
  std::string verdict;                // a sentence
};

struct ChoiceSetting {
  bool is_measured = true;  // false: what is predicted decides
  std::string source;       // file
  std::string target;       // file
};

// REQUIRES: there are candidates
DraftVerdict choose_draft(const std::vector<DraftCandidate>& candidates,
                          const ChoiceSetting& setting);

// "2.16 (2.05 to 2.27)"; without an interval the first figure alone.
std::string speed_text(const DraftSpeed& speed);

}  // namespace outrider::lab
