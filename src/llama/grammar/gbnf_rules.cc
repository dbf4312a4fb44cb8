#include "llama/grammar/gbnf_rules.h"

#include <algorithm>
#include <cstddef>

#include "llama/grammar/gbnf_components.h"
#include "llama/grammar/gbnf_places.h"

namespace outrider::llama {
namespace {

using Kind = GbnfElement::Kind;

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

Status left_recursion(const GbnfRules& grammar, std::size_t rule) {
  return invalid_argument("left recursion: " + quoted_rule(grammar, rule) +
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

// What the first characters of rules are like. By component; later ones use earlier ones.
Status check_first(const GbnfRules& grammar, const GbnfLimits& limits,
                   const std::vector<std::vector<FirstEdge>>& edges, const Components& components,
                   std::vector<Measure>& measures) {
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
      return invalid_argument(quoted_rule(grammar, rule) + " enters more than " +
                              std::to_string(limits.first_depth) +
                              " rules one in another before the first character");
    }
    if (own.ways > limits.first_ways) {
      return invalid_argument(quoted_rule(grammar, rule) + " can begin in more than " +
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
    return invalid_argument(quoted_rule(grammar, rule) + " is used but not defined");
  }
  const std::vector<bool> nullable = find_nullable(grammar);
  const std::vector<std::vector<FirstEdge>> edges = find_first_edges(grammar, nullable);
  OUTRIDER_RETURN_IF_ERROR(check_leading(grammar, edges));
  const Components components(edges);
  std::vector<Measure> measures(edges.size());
  OUTRIDER_RETURN_IF_ERROR(check_first(grammar, limits, edges, components, measures));
  return check_gbnf_places(grammar, limits, nullable, components, measures);
}

}  // namespace outrider::llama
