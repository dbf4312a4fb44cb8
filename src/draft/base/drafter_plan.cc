#include "draft/base/drafter_plan.h"

#include <algorithm>

#include "base/list_of.h"

namespace outrider {
namespace {

std::vector<std::string> split(std::string_view text, char separator) {
  std::vector<std::string> parts(1);
  for (const char c : text) {
    if (c == separator) {
      parts.emplace_back();
    } else {
      parts.back() += c;
    }
  }
  return parts;
}

}  // namespace

bool DrafterPlan::mentions(std::string_view name) const {
  return std::any_of(chains.begin(), chains.end(), [name](const std::vector<std::string>& chain) {
    return std::find(chain.begin(), chain.end(), name) != chain.end();
  });
}

Result<DrafterPlan> parse_drafter_plan(std::string_view expression,
                                       std::span<const std::string_view> known,
                                       std::string_view field) {
  const auto refuse = [&](const std::string& why) {
    return refused(std::string(field), "is '" + std::string(expression) + "', but " + why);
  };
  DrafterPlan plan;
  for (const std::string& group : split(expression, ',')) {
    std::vector<std::string> chain;
    for (const std::string& name : split(group, '/')) {
      if (std::find(known.begin(), known.end(), name) == known.end()) {
        return refuse((name.empty() ? "a name is missing" : "'" + name + "' is no drafter") +
                      "; give " + list_of_names(known, " or ") +
                      ", several with ',' (merged) or '/' (fall-back) between them");
      }
      if (plan.mentions(name) || std::find(chain.begin(), chain.end(), name) != chain.end()) {
        return refuse("'" + name + "' is there twice; name each drafter once");
      }
      chain.push_back(name);
    }
    plan.chains.push_back(std::move(chain));
  }
  return plan;
}

bool asks_at(std::span<const std::size_t> chain, std::size_t stage, std::size_t drafter,
             const TokenTree& proposed) {
  if (chain.size() <= stage || chain[stage] != drafter) return false;
  DrafterMask earlier = 0;
  for (const std::size_t before : chain.first(stage)) earlier |= DrafterMask{1} << before;
  return !proposed.has_proposed(earlier);
}

std::string to_string(const DrafterPlan& plan) {
  std::string text;
  for (const std::vector<std::string>& chain : plan.chains) {
    if (!text.empty()) text += ',';
    for (std::size_t i = 0; i < chain.size(); ++i) text += (i > 0 ? "/" : "") + chain[i];
  }
  return text;
}

}  // namespace outrider
