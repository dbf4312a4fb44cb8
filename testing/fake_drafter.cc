#include "testing/fake_drafter.h"

#include <algorithm>

namespace outrider::testing {

Script prophet(std::vector<Token> whole_text, std::int32_t count, std::int32_t wrong_every,
               std::int32_t n_vocab) {
  return [=](DraftRequest& request) {
    std::vector<Token> chain;
    const std::int32_t n = std::min(count, request.max_nodes);
    for (std::int32_t i = 0; i < n; ++i) {
      const std::size_t at = request.text.size() + static_cast<std::size_t>(i);
      if (at >= whole_text.size()) break;
      const bool wrong = wrong_every > 0 && at % static_cast<std::size_t>(wrong_every) == 0;
      chain.push_back(wrong ? (whole_text[at] + 1) % n_vocab : whole_text[at]);
    }
    add_chain(request, chain);
    return Status();
  };
}

}  // namespace outrider::testing
