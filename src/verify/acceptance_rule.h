// The acceptance rules, and what follows from each for those around the walk.
//
// A further rule is an enumerator, its row in kAcceptanceRules, its walk (src/verify) and a case in
// src/engine/verify.cc, without which the compiler warns. Its name is in two more places that no
// C++ is read from: the schema of answers (src/http/answer_schemas.cc) and the page's choice
// (src/http/page/settings.js).
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/status.h"

namespace outrider {

// How drafted tokens are judged. `coupled` gives the very text of plain decoding with the same
// seed; the others give texts of the target's distribution that depend on what was drafted.
enum class AcceptanceRule {
  kCoupled,    // verify/coupled.h
  kRejection,  // verify/rejection.h
  kBlock,      // verify/block.h: chains only
};

struct AcceptanceRuleTraits {
  AcceptanceRule rule = AcceptanceRule::kCoupled;
  std::string_view name;  // users': in JSON, options and messages
  // The text is that of plain decoding with the same seed, so what holds of the target's exactness
  // holds of it. Without, its distribution alone is the target's.
  bool keeps_text = false;
  // It compares probabilities, so drafted tokens have to be drawn from the draft's distribution
  // (dist/draws.h). Which are sent may then not depend on what was drawn: such steps are not
  // planned, and what guesses without a distribution guesses only when it is named.
  bool draws = false;
  bool judges_chains_only = false;
};

// By AcceptanceRule.
inline constexpr std::array kAcceptanceRules = {
    AcceptanceRuleTraits{.rule = AcceptanceRule::kCoupled, .name = "coupled", .keeps_text = true},
    AcceptanceRuleTraits{.rule = AcceptanceRule::kRejection, .name = "rejection", .draws = true},
    AcceptanceRuleTraits{
        .rule = AcceptanceRule::kBlock, .name = "block", .draws = true, .judges_chains_only = true},
};
static_assert(kAcceptanceRules.size() == static_cast<std::size_t>(AcceptanceRule::kBlock) + 1,
              "each rule has a row; kBlock is the last");
static_assert(
    [] {
      for (std::size_t i = 0; i < kAcceptanceRules.size(); ++i) {
        if (kAcceptanceRules[i].rule != static_cast<AcceptanceRule>(i)) return false;
      }
      return true;
    }(),
    "the rows are in the enum's order");

constexpr const AcceptanceRuleTraits& traits_of(AcceptanceRule rule) {
  return kAcceptanceRules[static_cast<std::size_t>(rule)];
}
constexpr bool keeps_text(AcceptanceRule rule) { return traits_of(rule).keeps_text; }
constexpr bool draws(AcceptanceRule rule) { return traits_of(rule).draws; }
constexpr bool judges_chains_only(AcceptanceRule rule) {
  return traits_of(rule).judges_chains_only;
}

// Errors: kInvalidArgument, about "branches", for more than one with a rule that judges chains.
Status check_branches(AcceptanceRule rule, std::int32_t branches);

}  // namespace outrider
