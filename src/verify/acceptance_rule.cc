#include "verify/acceptance_rule.h"

#include <string>

namespace outrider {

Status check_branches(AcceptanceRule rule, std::int32_t branches) {
  if (!judges_chains_only(rule) || branches <= 1) return Status();
  return wrong_value("branches", std::to_string(branches),
                     "1 with rule=" + std::string(traits_of(rule).name) + ", which judges chains");
}

}  // namespace outrider
