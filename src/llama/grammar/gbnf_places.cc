#include "llama/grammar/gbnf_places.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>

namespace outrider::llama {
namespace {

using PlaceKind = GbnfElement::Kind;

// What stands behind an element in its alternative, for the matcher that has just passed it.
struct PlaceRest {
  std::uint64_t ways = 0;     // to the next character
  std::uint64_t step = 0;     // places where it may be when that character has come, by each way
  bool may_be_empty = false;  // then what stands behind the rule counts as well
};

// Once around a component of first edges, or one rule.
struct PlaceInner {
  std::uint64_t step = 0;    // places inside, one character behind the beginning
  bool may_be_over = false;  // behind one character nothing more need follow
};

class GbnfPlaces {
 public:
  GbnfPlaces(const GbnfRules& grammar, const std::vector<bool>& nullable, const Components& first,
             const std::vector<Measure>& measures)
      : grammar_(grammar),
        nullable_(nullable),
        first_(first),
        measures_(measures),
        rests_(grammar.rules.size()),
        inner_(grammar.rules.size()),
        outward_(grammar.rules.size()) {}

  Status check(const GbnfLimits& limits) {
    for (std::size_t rule = 0; rule < grammar_.rules.size(); ++rule) find_ways(rule);
    for (const std::uint32_t rule : first_.order) find_inner(rule);
    for (std::size_t rule = 0; rule < grammar_.rules.size(); ++rule) find_steps(rule);
    find_outward();
    for (std::size_t rule = 0; rule < grammar_.rules.size(); ++rule) {
      std::uint64_t ways = 0;
      std::uint64_t step = inner_[first_.component[rule]].step;
      for (std::size_t i = 0; i < rests_[rule].size(); ++i) {
        const GbnfElement& e = grammar_.rules[rule][i];
        const PlaceRest inside =
            e.kind == PlaceKind::kRule ? outward_[tail_component_[e.rule]] : PlaceRest();
        ways = std::max(ways, inside.ways + rests_[rule][i].ways);
        step = std::max(step, inside.step + rests_[rule][i].step);
      }
      if (ways > limits.place_ways || step > limits.step_ways) return too_many(rule, limits);
    }
    return Status();
  }

 private:
  Status too_many(std::size_t rule, const GbnfLimits& limits) const {
    return invalid_argument(
        "within " + quoted_rule(grammar_, rule) + " the text can go on in more than " +
        std::to_string(limits.place_ways) + " ways at one place, or in more than " +
        std::to_string(limits.step_ways) +
        " behind one character; fewer optional parts in a row, or alternatives "
        "that begin differently, are needed");
  }

  bool is_nullable(const GbnfElement& e) const {
    return e.kind == PlaceKind::kRule && nullable_[e.rule];
  }

  // rests_[rule], but for `step`.
  void find_ways(std::size_t rule) {
    const std::vector<GbnfElement>& elements = grammar_.rules[rule];
    rests_[rule].resize(elements.size());
    PlaceRest rest{.may_be_empty = true};  // behind the last element of an alternative
    for (std::size_t i = elements.size(); i-- > 0;) {
      const GbnfElement& e = elements[i];
      if (e.kind == PlaceKind::kOr) {
        rest = PlaceRest{.may_be_empty = true};
        continue;
      }
      rests_[rule][i] = rest;
      const bool passes = is_nullable(e);
      const std::uint64_t own =
          e.kind == PlaceKind::kRule ? measures_[first_.component[e.rule]].ways : 1;
      rest = {.ways = own + (passes ? rest.ways : 0), .may_be_empty = passes && rest.may_be_empty};
    }
  }

  // Texts that pass an element at once go on with what is behind it. Of several elements that may
  // be empty, what is behind the first holds what is behind the others, but counts each time: for
  // the end of a token, llama.cpp looks at it once for each way to get there.
  void find_inner(std::uint32_t rule) {
    PlaceInner& own = inner_[first_.component[rule]];
    for (const Alternative& alt : alternatives(grammar_.rules[rule])) {
      for (const GbnfElement* e = alt.begin; e != alt.end; ++e) {
        const PlaceRest& rest =
            rests_[rule][static_cast<std::size_t>(e - grammar_.rules[rule].data())];
        // An empty repetition's loop, whose end is this component's own.
        const bool loop =
            e->kind == PlaceKind::kRule && first_.component[e->rule] == first_.component[rule];
        const PlaceInner inside = loop ? PlaceInner() : inner_of(*e);
        own.step += inside.step;
        if (inside.may_be_over) own.step += rest.ways;
        own.may_be_over |= inside.may_be_over && rest.may_be_empty;
        if (!is_nullable(*e)) break;
      }
    }
  }

  PlaceInner inner_of(const GbnfElement& e) const {
    return e.kind == PlaceKind::kRule ? inner_[first_.component[e.rule]]
                                      : PlaceInner{.may_be_over = true};
  }

  // rests_[rule][].step, as find_inner has it for an alternative's beginning.
  void find_steps(std::size_t rule) {
    const std::vector<GbnfElement>& elements = grammar_.rules[rule];
    std::uint64_t inside = 0;
    std::uint64_t behind = 0;
    for (std::size_t i = elements.size(); i-- > 0;) {
      const GbnfElement& e = elements[i];
      if (e.kind == PlaceKind::kOr) {
        inside = behind = 0;
        continue;
      }
      PlaceRest& rest = rests_[rule][i];
      rest.step = inside + behind;
      const PlaceInner own = inner_of(e);
      const bool passes = is_nullable(e);
      inside = own.step + (passes ? inside : 0);
      behind = (own.may_be_over ? rest.ways : 0) + (passes ? behind : 0);
    }
  }

  // outward_: the most that may count at a place within a rule from which its end can be reached,
  // by components of the references behind which nothing more need follow. What repeats in itself
  // counts once around: each time costs a character, and check_grammar_time sees it grow.
  void find_outward() {
    std::vector<std::vector<FirstEdge>> edges(grammar_.rules.size());
    for (std::size_t rule = 0; rule < edges.size(); ++rule) {
      for (std::size_t i = 0; i < rests_[rule].size(); ++i) {
        const GbnfElement& e = grammar_.rules[rule][i];
        if (e.kind == PlaceKind::kRule && rests_[rule][i].may_be_empty)
          edges[rule].push_back({e.rule});
      }
    }
    const Components tails(edges);
    std::vector<PlaceRest> around(edges.size());
    std::vector<PlaceRest> most(edges.size());
    for (const std::uint32_t rule : tails.order) {
      const std::uint32_t own = tails.component[rule];
      for (std::size_t i = 0; i < rests_[rule].size(); ++i) {
        const GbnfElement& e = grammar_.rules[rule][i];
        const PlaceRest& rest = rests_[rule][i];
        if (e.kind == PlaceKind::kOr || !rest.may_be_empty) continue;
        if (e.kind == PlaceKind::kRule && tails.component[e.rule] == own) {
          around[own].ways += rest.ways;
          around[own].step += rest.step;
          continue;
        }
        const PlaceRest inside =
            e.kind == PlaceKind::kRule ? outward_[tails.component[e.rule]] : PlaceRest();
        most[own].ways = std::max(most[own].ways, inside.ways + rest.ways);
        most[own].step = std::max(most[own].step, inside.step + rest.step);
      }
      outward_[own].ways = most[own].ways + around[own].ways;
      outward_[own].step = most[own].step + around[own].step;
    }
    tail_component_ = tails.component;
  }

  const GbnfRules& grammar_;
  const std::vector<bool>& nullable_;
  const Components& first_;
  const std::vector<Measure>& measures_;
  std::vector<std::vector<PlaceRest>> rests_;  // [rule][element]
  std::vector<PlaceInner> inner_;              // by component of first_
  std::vector<PlaceRest> outward_;             // by tail_component_; may_be_empty is not used
  std::vector<std::uint32_t> tail_component_;
};

}  // namespace

Status check_gbnf_places(const GbnfRules& grammar, const GbnfLimits& limits,
                         const std::vector<bool>& nullable, const Components& first,
                         const std::vector<Measure>& measures) {
  return GbnfPlaces(grammar, nullable, first, measures).check(limits);
}

}  // namespace outrider::llama
