// DrafterExperience: what was learned of one drafter that holds from run to run, so that the first
// request of a process starts with what the last one of another knew: how often its guesses are
// right, what its passes take, and what it gains.
//
// It is about one drafter, one target and one machine; who keeps it sees to that. What it says
// counts less than what is seen from then on: a few dozen guesses outweigh it.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/cost_point.h"

namespace outrider {

struct DrafterExperience {
  std::vector<double> acceptance;       // as AcceptanceTable::numbers() gives them; empty: nothing
  std::vector<CostPoint> first_passes;  // of a draft: ms, by requests that share the pass
  std::vector<CostPoint> further_passes;  // likewise
  double reading_ms = 0.0;  // for each token of a text it had not followed; 0: unknown
  // Pairs, by how many requests shared a step, and after them the same of texts that are drawn:
  // what it gained of tokens' plain time, summed, less than 0 where it lost; and of how many
  // tokens.
  std::vector<double> gained;
  std::vector<double> own;  // what the drafter itself learned (Drafter::learned)

  bool empty() const { return acceptance.empty(); }
};

// As text, a line for each part, and back. Nothing for a text that is damaged or of another
// version.
std::string to_text(const DrafterExperience& experience);
std::optional<DrafterExperience> experience_from(std::string_view text);

}  // namespace outrider
