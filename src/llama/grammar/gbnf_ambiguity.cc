#include "llama/grammar/gbnf_ambiguity.h"

#include <algorithm>
#include <cstddef>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

namespace outrider::llama {
namespace {

using StepKind = GbnfElement::Kind;

// Tokens are words, runs of one sign, and a few signs in a row. `},{` has two changes; no token is
// a row of empty objects, whose places of optional parts multiply.
constexpr int kTokenCharacters = 16;
constexpr int kTokenChanges = 4;
// Of all texts together, and of those from one place: 60 ms and 9 ms (2 cores beside a build),
// 20 MiB.
constexpr std::size_t kMostWork = 1000000;
constexpr std::size_t kMostWorkFromAPlace = 150000;
constexpr std::size_t kWorkOfAStack = 8;
constexpr std::size_t kMostRangesOfAClass = 8;  // whose borders are tried
// Tried beside the borders of classes, and shown rather than those.
constexpr char32_t kUsualCharacters[] = U"a0 \n!\u00e9";

// Tokens hold no others.
bool may_be_in_a_token(std::uint32_t c) {
  const bool control = (c < 0x20 && c != '\n' && c != '\t') || (c >= 0x7F && c < 0xA0);
  return !control && (c < 0xD800 || c > 0xDFFF) && c <= 0x10FFFF;
}

bool changes_sign(std::uint32_t before, std::uint32_t c) {
  const auto is_of_a_word = [](std::uint32_t a) {
    return a >= 0x80 || (a >= '0' && a <= '9') || (a >= 'A' && a <= 'Z') || (a >= 'a' && a <= 'z');
  };
  return before != c && !(is_of_a_word(before) && is_of_a_word(c));
}

// As a grammar would have it.
std::string in_a_literal(std::uint32_t c) {
  if (c == '\n') return "\\n";
  if (c == '\t') return "\\t";
  if (c == '"' || c == '\\') return std::string("\\") + static_cast<char>(c);
  if (c < 0x80) return std::string(1, static_cast<char>(c));
  std::string hex;
  for (int digit = c > 0xFFFF ? 7 : 3; digit >= 0; --digit) {
    hex += "0123456789ABCDEF"[(c >> (4 * digit)) & 15];
  }
  return (c > 0xFFFF ? "\\U" : "\\u") + hex;
}

class GbnfAmbiguity {
 public:
  GbnfAmbiguity(const GbnfRules& grammar, const GbnfLimits& limits)
      : grammar_(grammar), most_ways_(static_cast<double>(limits.token_ways)) {
    for (const std::vector<GbnfElement>& rule : grammar.rules) {
      begins_.push_back(static_cast<std::uint32_t>(elements_.size()));
      elements_.insert(elements_.end(), rule.begin(), rule.end());
      elements_.push_back({StepKind::kOr});  // so each alternative ends with one
    }
    begins_.push_back(static_cast<std::uint32_t>(elements_.size()));
  }

  Status check(std::uint32_t root) {
    elements_.push_back({StepKind::kRule, root});
    elements_.push_back({StepKind::kOr});
    OUTRIDER_RETURN_IF_ERROR(look_from(on_top(kEmptyStack, begins_.back()), root));
    // Rules by their distance from the root; below_[rule] is what its end goes on with.
    std::vector<std::uint32_t> below(grammar_.rules.size(), kNotReached);
    std::vector<std::uint32_t> reached = {root};
    below[root] = kEmptyStack;
    for (std::size_t next = 0; next < reached.size(); ++next) {
      const std::uint32_t rule = reached[next];
      for (std::uint32_t at = begins_[rule]; at < begins_[rule + 1]; ++at) {
        if (elements_[at].kind != StepKind::kRule) continue;
        OUTRIDER_RETURN_IF_ERROR(look_from(on_top(below[rule], at), rule));
        if (work_ > kMostWork) return Status();
        std::uint32_t& below_inner = below[elements_[at].rule];
        if (below_inner != kNotReached) continue;
        below_inner = on_top(below[rule], at + 1);
        reached.push_back(elements_[at].rule);
      }
    }
    return Status();
  }

 private:
  static constexpr std::uint32_t kEmptyStack = 0;
  static constexpr std::uint32_t kNotReached = 0xFFFFFFFFU;

  // A stack of the matcher: the element that comes next, on the stack that its rule's end goes on
  // with. Those that begin alike share that.
  struct Stack {
    std::uint32_t below = 0;
    std::uint32_t at = 0;
    std::uint32_t ways_begin = 0;  // in ways_, of stacks with a character or token on top, to which
    std::uint32_t ways_end = 0;    // it leads; empty: not yet known
  };
  // The ways that lead to a stack.
  struct Reading {
    std::uint32_t stack = 0;
    double ways = 0.0;
  };
  // What may come next of one class, and the ways that go on behind it.
  struct Next {
    std::uint32_t characters = 0;
    double ways = 0.0;
  };

  std::uint32_t on_top(std::uint32_t below, std::uint32_t at) {
    if (elements_[at].kind == StepKind::kOr) return below;
    const std::uint64_t key = (static_cast<std::uint64_t>(below) << 32) | at;
    const auto [known, is_new] = ids_.try_emplace(key, static_cast<std::uint32_t>(stacks_.size()));
    if (is_new) {
      stacks_.push_back({below, at});
      seen_.push_back(0);
      work_ += kWorkOfAStack;
    }
    return known->second;
  }

  // llama_grammar_advance_stack. Finds none where that is too much work.
  void find_ways(std::uint32_t from) {
    if (stacks_[from].ways_begin != stacks_[from].ways_end) return;
    const std::uint32_t begin = static_cast<std::uint32_t>(ways_.size());
    std::vector<std::uint32_t> todo = {from};
    ++n_searches_;
    while (!todo.empty() && work_ <= most_work_here_) {
      const std::uint32_t stack = todo.back();
      todo.pop_back();
      if (seen_[stack] == n_searches_) continue;
      seen_[stack] = n_searches_;
      ++work_;
      const std::uint32_t at = stacks_[stack].at;
      if (stack == kEmptyStack || elements_[at].kind == StepKind::kTerminal) {
        ways_.push_back(stack);
        continue;
      }
      const std::uint32_t rule = elements_[at].rule;
      const std::uint32_t behind = on_top(stacks_[stack].below, at + 1);
      todo.push_back(on_top(behind, begins_[rule]));
      for (std::uint32_t e = begins_[rule]; e + 1 < begins_[rule + 1]; ++e) {
        if (elements_[e].kind == StepKind::kOr) todo.push_back(on_top(behind, e + 1));
      }
    }
    if (work_ > most_work_here_) return ways_.resize(begin);
    stacks_[from].ways_begin = begin;
    stacks_[from].ways_end = static_cast<std::uint32_t>(ways_.size());
  }

  std::uint32_t behind_character(std::uint32_t stack) {
    return on_top(stacks_[stack].below, stacks_[stack].at + 1);
  }

  // The classes on top of `readings`.
  std::vector<Next> find_next(const std::vector<Reading>& readings) {
    std::vector<Next> all;
    for (const Reading& reading : readings) {
      if (reading.stack == kEmptyStack) continue;
      const std::uint32_t behind = behind_character(reading.stack);
      find_ways(behind);
      all.push_back({elements_[stacks_[reading.stack].at].characters,
                     reading.ways * (stacks_[behind].ways_end - stacks_[behind].ways_begin)});
    }
    std::sort(all.begin(), all.end(),
              [](const Next& a, const Next& b) { return a.characters < b.characters; });
    std::size_t n = 0;
    for (const Next& next : all) {
      if (n > 0 && all[n - 1].characters == next.characters) {
        all[n - 1].ways += next.ways;
      } else {
        all[n++] = next;
      }
    }
    all.resize(n);
    return all;
  }

  // The ways on behind a character; below 0 where none takes it.
  double ways_behind(const std::vector<Next>& next, std::uint32_t character) {
    double ways = -1.0;
    for (const Next& one : next) {
      const GbnfCharacters& characters = grammar_.characters[one.characters];
      work_ += 1 + characters.ranges.size() / 4;
      if (characters.takes(character)) ways = std::max(ways, 0.0) + one.ways;
    }
    return ways;
  }

  // All classes take the same of the characters between two borders.
  std::vector<std::uint32_t> find_characters(const std::vector<Next>& next,
                                             std::uint32_t before) const {
    std::vector<std::uint32_t> borders;
    for (const Next& one : next) {
      std::size_t n = 0;
      for (const auto& [first, last] : grammar_.characters[one.characters].ranges) {
        if (n++ == kMostRangesOfAClass) break;
        borders.push_back(first);
        borders.push_back(last + 1);
      }
    }
    std::sort(borders.begin(), borders.end());
    borders.erase(std::unique(borders.begin(), borders.end()), borders.end());
    std::erase_if(borders, [](std::uint32_t c) { return !may_be_in_a_token(c); });
    if (before != 0) borders.insert(borders.begin(), before);
    borders.insert(borders.begin() + (before != 0 ? 1 : 0), std::begin(kUsualCharacters),
                   std::end(kUsualCharacters) - 1);
    return borders;
  }

  std::vector<Reading> take(const std::vector<Reading>& readings, std::uint32_t character) {
    std::vector<Reading> taken;
    for (const Reading& reading : readings) {
      if (reading.stack == kEmptyStack || work_ > most_work_here_) continue;
      const std::uint32_t characters = elements_[stacks_[reading.stack].at].characters;
      if (!grammar_.characters[characters].takes(character)) continue;
      const Stack& behind = stacks_[behind_character(reading.stack)];
      for (std::uint32_t i = behind.ways_begin; i < behind.ways_end; ++i) {
        taken.push_back({ways_[i], reading.ways});
      }
      work_ += behind.ways_end - behind.ways_begin;
    }
    std::sort(taken.begin(), taken.end(),
              [](const Reading& a, const Reading& b) { return a.stack < b.stack; });
    std::size_t n = 0;
    for (const Reading& one : taken) {
      if (n > 0 && taken[n - 1].stack == one.stack) {
        taken[n - 1].ways += one.ways;
      } else {
        taken[n++] = one;
      }
    }
    taken.resize(n);
    return taken;
  }

  // `rule`: for the message.
  Status look_from(std::uint32_t start, std::uint32_t rule) {
    most_work_here_ = std::min(work_ + kMostWorkFromAPlace, kMostWork);
    find_ways(start);
    std::vector<Reading> readings;
    for (std::uint32_t i = stacks_[start].ways_begin; i < stacks_[start].ways_end; ++i) {
      readings.push_back({ways_[i], 1.0});
    }
    double followed = 0.0;
    std::string text;
    std::uint32_t before = 0;
    int n_changes = -1;  // the first is none
    for (int length = 0; length < kTokenCharacters; ++length) {
      for (const Reading& reading : readings) followed += reading.ways;
      const std::vector<Next> next = find_next(readings);
      if (work_ > most_work_here_) return Status();
      double best = 1.0;
      std::uint32_t best_character = 0;
      for (const std::uint32_t character : find_characters(next, before)) {
        const double ways = ways_behind(next, character);
        if (followed > most_ways_ && ways < 0.0) {
          return too_ambiguous(rule, text + in_a_literal(character));
        }
        if (ways > best && n_changes + changes_sign(before, character) <= kTokenChanges) {
          best = ways;
          best_character = character;
        }
        if (work_ > most_work_here_) return Status();
      }
      if (best <= 1.0) return Status();  // what lies behind is another start's
      n_changes += changes_sign(before, best_character) ? 1 : 0;
      before = best_character;
      readings = take(readings, best_character);
      text += in_a_literal(best_character);
      if (work_ > most_work_here_) return Status();
    }
    return Status();
  }

  Status too_ambiguous(std::uint32_t rule, const std::string& text) const {
    return invalid_argument(
        "within the rule '" + grammar_.names[rule] + "' llama.cpp would follow more than " +
        std::to_string(static_cast<std::uint64_t>(most_ways_)) + " ways into the text \"" + text +
        "\" before it refuses it; fewer optional parts or loops behind one another that take the "
        "same characters are needed, such as [a-z]{0,30} instead of thirty times [a-z]?");
  }

  const GbnfRules& grammar_;
  const double most_ways_;
  std::vector<GbnfElement> elements_;      // of all rules
  std::vector<std::uint32_t> begins_;      // [n_rules + 1], in elements_
  std::vector<Stack> stacks_ = {{}};       // the empty one first
  std::vector<std::uint32_t> seen_ = {0};  // [stacks_]: the last search that came to it
  std::vector<std::uint32_t> ways_;
  std::unordered_map<std::uint64_t, std::uint32_t> ids_;
  std::uint32_t n_searches_ = 0;
  std::size_t work_ = 0;
  std::size_t most_work_here_ = 0;
};

}  // namespace

Status check_gbnf_ambiguity(const GbnfRules& grammar, std::uint32_t root,
                            const GbnfLimits& limits) {
  return GbnfAmbiguity(grammar, limits).check(root);
}

}  // namespace outrider::llama
