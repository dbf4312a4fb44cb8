#include "llama/grammar/gbnf_rules.h"

#include <algorithm>
#include <cstddef>

namespace outrider::llama {
namespace {

using Kind = GbnfElement::Kind;

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

std::vector<Alternative> alternatives(const std::vector<GbnfElement>& rule) {
  std::vector<Alternative> all;
  const GbnfElement* begin = rule.data();
  const GbnfElement* const end = rule.data() + rule.size();
  for (const GbnfElement* e = begin; e != end; ++e) {
    if (e->kind != Kind::kOr) continue;
    all.push_back({begin, e});
    begin = e + 1;
  }
  all.push_back({begin, end});
  return all;
}

std::string quoted(const GbnfRules& grammar, std::size_t rule) {
  return "the rule '" + grammar.names[rule] + "'";
}

// Which rules can be empty: an alternative is when all its symbols are, found from the bottom up.
std::vector<bool> find_nullable(const GbnfRules& grammar) {
  struct Open {
    std::uint32_t rule;
    std::size_t missing;  // symbols not known to be nullable
  };
  std::vector<Open> open;
  std::vector<std::vector<std::size_t>> users(grammar.rules.size());  // rule -> indices into open
  std::vector<std::uint32_t> todo;
  std::vector<bool> nullable(grammar.rules.size(), false);
  for (std::uint32_t rule = 0; rule < grammar.rules.size(); ++rule) {
    for (const Alternative& alt : alternatives(grammar.rules[rule])) {
      const bool references_only = std::all_of(
          alt.begin, alt.end, [](const GbnfElement& e) { return e.kind == Kind::kRule; });
      if (!references_only) continue;
      for (const GbnfElement* e = alt.begin; e != alt.end; ++e) {
        users[e->rule].push_back(open.size());
      }
      open.push_back({rule, static_cast<std::size_t>(alt.end - alt.begin)});
      if (alt.begin == alt.end) todo.push_back(rule);
    }
  }
  while (!todo.empty()) {
    const std::uint32_t rule = todo.back();
    todo.pop_back();
    if (nullable[rule]) continue;
    nullable[rule] = true;
    for (const std::size_t user : users[rule]) {
      if (--open[user].missing == 0) todo.push_back(open[user].rule);
    }
  }
  return nullable;
}

std::vector<std::vector<FirstEdge>> find_first_edges(const GbnfRules& grammar,
                                                     const std::vector<bool>& nullable) {
  std::vector<std::vector<FirstEdge>> edges(grammar.rules.size());
  for (std::size_t rule = 0; rule < grammar.rules.size(); ++rule) {
    for (const Alternative& alt : alternatives(grammar.rules[rule])) {
      for (const GbnfElement* e = alt.begin; e != alt.end && e->kind == Kind::kRule; ++e) {
        edges[rule].push_back({e->rule, e + 1 != alt.end, e == alt.begin});
        if (!nullable[e->rule]) break;
      }
    }
  }
  return edges;
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

Status left_recursion(const GbnfRules& grammar, std::size_t rule) {
  return invalid_argument("left recursion: " + quoted(grammar, rule) +
                          " begins with itself, so it could never get to a character; put what "
                          "repeats behind something, as in a ::= \"x\" a | \"x\"");
}

// Rules that begin with themselves whatever is empty. llama.cpp refuses these, growing or not.
Status check_leading(const GbnfRules& grammar, std::vector<std::vector<FirstEdge>> edges) {
  for (std::vector<FirstEdge>& list : edges) {
    std::erase_if(list, [](const FirstEdge& edge) { return !edge.leads; });
  }
  const Components components(edges);
  for (std::size_t rule = 0; rule < edges.size(); ++rule) {
    for (const FirstEdge& edge : edges[rule]) {
      if (components.component[edge.to] == components.component[rule]) {
        return left_recursion(grammar, rule);
      }
    }
  }
  return Status();
}

// Both measures of one component: all of its rules may be entered in one another.
struct Measure {
  std::size_t depth = 0;
  std::size_t ways = 0;
};

Status check_first(const GbnfRules& grammar, const GbnfLimits& limits) {
  const std::vector<bool> nullable = find_nullable(grammar);
  const std::vector<std::vector<FirstEdge>> edges = find_first_edges(grammar, nullable);
  OUTRIDER_RETURN_IF_ERROR(check_leading(grammar, edges));
  const Components components(edges);
  std::vector<Measure> measures(edges.size());  // by component; later ones use earlier ones
  for (const std::uint32_t rule : components.order) {
    Measure& own = measures[components.component[rule]];
    own.ways += alternatives(grammar.rules[rule]).size();
    std::size_t deepest = 0;
    for (const FirstEdge& edge : edges[rule]) {
      if (components.component[edge.to] == components.component[rule]) {
        // Without growth it is a loop of empty repetitions, which the matcher's memory ends.
        if (edge.grows) return left_recursion(grammar, rule);
        own.ways += 1;
        continue;
      }
      const Measure& entered = measures[components.component[edge.to]];
      deepest = std::max(deepest, entered.depth);
      own.ways += entered.ways;
      if (own.ways > limits.first_ways) break;
    }
    own.depth = std::max(own.depth, deepest) + 1;
    if (own.depth > limits.first_depth) {
      return invalid_argument(quoted(grammar, rule) + " enters more than " +
                              std::to_string(limits.first_depth) +
                              " rules one in another before the first character");
    }
    if (own.ways > limits.first_ways) {
      return invalid_argument(quoted(grammar, rule) + " can begin in more than " +
                              std::to_string(limits.first_ways) +
                              " ways; fewer optional parts, or repetitions in one another, are "
                              "needed");
    }
  }
  return Status();
}

}  // namespace

Status check_gbnf_rules(const GbnfRules& grammar, const GbnfLimits& limits) {
  for (std::size_t rule = 0; rule < grammar.rules.size(); ++rule) {
    if (grammar.defined[rule]) continue;
    return invalid_argument(quoted(grammar, rule) + " is used but not defined");
  }
  return check_first(grammar, limits);
}

}  // namespace outrider::llama
