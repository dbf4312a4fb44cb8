#include "draft/base/drafter_plan.h"

#include <algorithm>

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

std::string list_of(std::span<const std::string_view> names) {
  std::string list;
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (i > 0) list += i + 1 < names.size() ? ", " : " or ";
    list += names[i];
  }
  return list;
}

}  // namespace

std::string_view draft_name(std::string_view architecture) {
  const auto* const head = std::find(kHeadNames.begin(), kHeadNames.end(), architecture);
  return head == kHeadNames.end() ? kDraftModelName : *head;
}

bool is_draft_name(std::string_view name) {
  return name == kDraftModelName ||
         std::find(kHeadNames.begin(), kHeadNames.end(), name) != kHeadNames.end();
}

bool DrafterPlan::mentions(std::string_view name) const {
  return std::any_of(chains.begin(), chains.end(), [name](const std::vector<std::string>& chain) {
    return std::find(chain.begin(), chain.end(), name) != chain.end();
  });
}

bool mentions_draft(const DrafterPlan& plan) {
  return plan.mentions(kDraftModelName) ||
         std::any_of(kHeadNames.begin(), kHeadNames.end(),
                     [&plan](std::string_view name) { return plan.mentions(name); });
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
                      "; give " + list_of(known) +
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
