// What gbnf_rules.cc and gbnf_places.cc measure the rules of a grammar with: alternatives, rules
// that enter one another, and components of these. Tested through gbnf.h.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "llama/grammar/gbnf_rules.h"

namespace outrider::llama {

// A rule that may be entered as the first thing of another, before any character.
struct FirstEdge {
  std::uint32_t to = 0;
  bool grows = false;  // something follows it there, which the matcher's stack keeps
  bool leads = false;  // it stands first, not behind what may be empty
};

struct Alternative {
  const GbnfElement* begin = nullptr;
  const GbnfElement* end = nullptr;
};

inline std::vector<Alternative> alternatives(const std::vector<GbnfElement>& rule) {
  std::vector<Alternative> all;
  const GbnfElement* begin = rule.data();
  const GbnfElement* const end = rule.data() + rule.size();
  for (const GbnfElement* e = begin; e != end; ++e) {
    if (e->kind != GbnfElement::Kind::kOr) continue;
    all.push_back({begin, e});
    begin = e + 1;
  }
  all.push_back({begin, end});
  return all;
}

inline std::string quoted_rule(const GbnfRules& grammar, std::size_t rule) {
  return "the rule '" + grammar.names[rule] + "'";
}

// Strongly connected components by Tarjan's algorithm without recursion. component[] numbers them
// so that edges lead to lower or equal numbers; `order` lists the rules by that number.
class Components {
 public:
  explicit Components(const std::vector<std::vector<FirstEdge>>& edges)
      : component(edges.size(), kNone),
        edges_(edges),
        low_(edges.size(), 0),
        seen_(edges.size(), 0) {
    for (std::uint32_t rule = 0; rule < edges.size(); ++rule) {
      if (seen_[rule] == 0) visit(rule);
    }
  }

  static constexpr std::uint32_t kNone = 0xFFFFFFFFU;
  std::vector<std::uint32_t> component;
  std::vector<std::uint32_t> order;

 private:
  struct Frame {
    std::uint32_t rule;
    std::size_t next_edge;
  };

  void enter(std::uint32_t rule, std::vector<Frame>& frames) {
    seen_[rule] = low_[rule] = ++n_seen_;
    stack_.push_back(rule);
    frames.push_back({rule, 0});
  }

  void visit(std::uint32_t start) {
    std::vector<Frame> frames;
    enter(start, frames);
    while (!frames.empty()) {
      Frame& frame = frames.back();
      const std::uint32_t rule = frame.rule;
      if (frame.next_edge < edges_[rule].size()) {
        const std::uint32_t to = edges_[rule][frame.next_edge++].to;
        if (seen_[to] == 0) {
          enter(to, frames);
        } else if (component[to] == kNone) {
          low_[rule] = std::min(low_[rule], seen_[to]);
        }
        continue;
      }
      frames.pop_back();
      if (!frames.empty()) {
        low_[frames.back().rule] = std::min(low_[frames.back().rule], low_[rule]);
      }
      if (low_[rule] == seen_[rule]) close(rule);
    }
  }

  void close(std::uint32_t root) {
    std::uint32_t rule = kNone;
    do {
      rule = stack_.back();
      stack_.pop_back();
      component[rule] = n_components_;
      order.push_back(rule);
    } while (rule != root);
    ++n_components_;
  }

  const std::vector<std::vector<FirstEdge>>& edges_;
  std::vector<std::uint32_t> low_;
  std::vector<std::uint32_t> seen_;  // 0: not yet
  std::vector<std::uint32_t> stack_;
  std::uint32_t n_seen_ = 0;
  std::uint32_t n_components_ = 0;
};

// Both measures of one component: all of its rules may be entered in one another.
struct Measure {
  std::size_t depth = 0;
  std::size_t ways = 0;
};

}  // namespace outrider::llama
