#include "llama/grammar/gbnf.h"

#include <algorithm>
#include <limits>
#include <map>
#include <utility>

#include "base/utf8.h"
#include "llama/grammar/gbnf_ambiguity.h"
#include "llama/grammar/gbnf_cursor.h"
#include "llama/grammar/gbnf_rules.h"

namespace outrider::llama {
namespace {

using Kind = GbnfElement::Kind;

constexpr std::uint64_t kNoMaximum = std::numeric_limits<std::uint64_t>::max();

// llama.cpp's parser (llama_grammar_parser), group by group on a stack of its own instead of the
// machine's. What is wrong is found where `text_` is.
class GbnfParser {
 public:
  GbnfParser(std::string_view text, const GbnfLimits& limits) : text_(text), limits_(limits) {}

  Status parse() {
    text_.skip_space(/*newlines=*/true);
    while (!text_.at_end()) OUTRIDER_RETURN_IF_ERROR(parse_rule());
    if (grammar_.rules.empty()) return invalid_argument("the grammar is empty: it has no rules");
    if (symbols_.find("root") == symbols_.end()) {
      return invalid_argument("the grammar has no rule 'root', from which it would begin");
    }
    OUTRIDER_RETURN_IF_ERROR(check_gbnf_rules(grammar_, limits_));
    return check_gbnf_ambiguity(grammar_, symbols_["root"], limits_);
  }

  GbnfSummary summary() const {
    GbnfSummary summary = tokens_;
    summary.n_rules = grammar_.rules.size();
    return summary;
  }

 private:
  // A rule, or a group in one, that is being read.
  struct Open {
    std::uint32_t rule = 0;
    std::size_t n_rules_before = 0;
    std::vector<GbnfElement> elements;
    std::size_t last_begin = 0;      // of the last symbol, which a repetition is about
    std::size_t last_weight = 0;     // its elements in llama.cpp's count
    std::size_t repeated_rules = 1;  // llama.cpp's n_prev_rules
  };

  bool nested() const { return open_.size() > 1; }

  std::uint32_t add_symbol(const std::string& name) {
    grammar_.rules.emplace_back();
    grammar_.defined.push_back(false);
    grammar_.names.push_back(name);
    return static_cast<std::uint32_t>(grammar_.rules.size() - 1);
  }

  std::uint32_t symbol(const std::string& name) {
    const std::map<std::string, std::uint32_t>::const_iterator known = symbols_.find(name);
    if (known != symbols_.end()) return known->second;
    return symbols_[name] = add_symbol(name);
  }

  Status check_size() const {
    if (grammar_.rules.size() > limits_.rules) {
      return text_.wrong("the grammar has more than " + std::to_string(limits_.rules) +
                         " rules, groups and repetitions counted");
    }
    if (n_elements_ > limits_.elements) {
      return text_.wrong("the grammar has more than " + std::to_string(limits_.elements) +
                         " elements, repetitions counted");
    }
    return Status();
  }

  void define(std::uint32_t rule, std::vector<GbnfElement> elements) {
    grammar_.rules[rule] = std::move(elements);
    grammar_.defined[rule] = true;
  }

  // A symbol begins: what a repetition behind it will be about.
  void begin_symbol(std::size_t repeated_rules = 1) {
    open_.back().last_begin = open_.back().elements.size();
    open_.back().last_weight = 0;
    open_.back().repeated_rules = repeated_rules;
  }
  void add(Kind kind, std::uint32_t rule = 0) {
    open_.back().elements.push_back({kind, rule});
    add_weight();
  }
  void add_terminal(std::uint32_t characters) {
    open_.back().elements.push_back({.kind = Kind::kTerminal, .characters = characters});
    add_weight();
  }
  std::uint32_t add_characters(GbnfCharacters characters) {
    grammar_.characters.push_back(std::move(characters));
    return static_cast<std::uint32_t>(grammar_.characters.size() - 1);
  }
  std::uint32_t literal_character(std::uint32_t character) {
    const auto [known, is_new] = literal_characters_.try_emplace(character, 0);
    if (is_new) known->second = add_characters({.ranges = {{character, character}}});
    return known->second;
  }
  void add_weight() {
    ++open_.back().last_weight;
    ++n_elements_;
  }

  Status parse_rule() {
    const std::string name = text_.read_name();
    if (name.empty()) return text_.wrong("expected the name of a rule (letters, digits, '-')");
    text_.skip_space(false);
    if (!(text_.peek() == ':' && text_.peek(1) == ':' && text_.peek(2) == '=')) {
      return text_.wrong("expected '::=' after the rule's name '" + name + "'");
    }
    text_.skip(3);
    text_.skip_space(true);
    open_.clear();
    open_.push_back({.rule = symbol(name)});
    bool ended = false;
    while (!ended) {
      OUTRIDER_RETURN_IF_ERROR(parse_symbol(ended));
      OUTRIDER_RETURN_IF_ERROR(check_size());
    }
    if (nested()) return text_.wrong("expected ')': a group is not closed");
    define(open_.back().rule, std::move(open_.back().elements));
    if (!text_.at_end() && text_.peek() != '\r' && text_.peek() != '\n') {
      return text_.wrong("expected the end of the line, or an item of the rule '" + name + "'");
    }
    text_.skip_space(true);
    return Status();
  }

  // One item of a sequence, a repetition, or the end of an alternative or a group. `ended`: what
  // stands here belongs to no rule.
  Status parse_symbol(bool& ended) {
    const char c = text_.peek();
    if (c == '"') return parse_literal();
    if (c == '[') return parse_class();
    if (c == '<' || c == '!') return parse_token();
    if (c == '(') return open_group();
    if (c == ')' && nested()) return close_group();
    if (c == '{') return parse_counts();
    if (GbnfCursor::is_word(c)) {
      begin_symbol();
      add(Kind::kRule, symbol(text_.read_name()));
    } else if (c == '.') {
      text_.skip();
      begin_symbol();
      add_terminal(add_characters({.all_others = true}));
    } else if (c == '*' || c == '+' || c == '?') {
      text_.skip();
      text_.skip_space(nested());
      return repeat(c == '+' ? 1 : 0, c == '?' ? 1 : kNoMaximum);
    } else if (c == '|') {
      text_.skip();
      add(Kind::kOr);
      begin_symbol();
      text_.skip_space(true);
      return Status();
    } else {
      ended = true;
    }
    text_.skip_space(nested() && !ended);
    return Status();
  }

  Status parse_literal() {
    text_.skip();
    begin_symbol();
    while (text_.peek() != '"' || text_.at_end()) {
      std::uint32_t character = 0;
      OUTRIDER_RETURN_IF_ERROR(text_.read_char(character));
      add_terminal(literal_character(character));
    }
    text_.skip();
    text_.skip_space(nested());
    return Status();
  }

  Status parse_class() {
    const std::size_t begin = text_.at();
    text_.skip();
    GbnfCharacters characters{.all_others = text_.peek() == '^'};
    if (characters.all_others) text_.skip();
    begin_symbol();
    while (text_.peek() != ']' || text_.at_end()) {
      std::uint32_t first = 0;
      OUTRIDER_RETURN_IF_ERROR(text_.read_char(first));
      std::uint32_t last = first;
      add_weight();
      if (text_.peek() == '-' && text_.peek(1) != ']') {
        text_.skip();
        OUTRIDER_RETURN_IF_ERROR(text_.read_char(last));
        add_weight();
      }
      characters.ranges.emplace_back(first, last);
    }
    text_.skip();
    if (characters.ranges.empty()) {
      text_.go_back(begin);
      return text_.wrong("a class with no characters; '.' is any character");
    }
    open_.back().elements.push_back(
        {.kind = Kind::kTerminal, .characters = add_characters(std::move(characters))});
    text_.skip_space(nested());
    return Status();
  }

  Status parse_token() {
    if (text_.peek() == '!') text_.skip();
    const std::size_t begin = text_.at();
    if (text_.peek() != '<') return text_.wrong("expected '<' and a token after '!'");
    text_.skip();
    if (text_.peek() == '[') {
      text_.skip();
      std::uint64_t id = 0;
      OUTRIDER_RETURN_IF_ERROR(text_.read_number(std::numeric_limits<std::int32_t>::max(), id));
      if (text_.peek() != ']' || text_.peek(1) != '>')
        return text_.wrong("expected ']>' after the token's id");
      text_.skip(2);
      tokens_.token_ids.push_back(static_cast<std::uint32_t>(id));
    } else {
      while (!text_.at_end() && text_.peek() != '>') text_.skip();
      if (text_.at_end()) return text_.wrong("expected '>' after the token's name");
      text_.skip();
      tokens_.token_names.emplace_back(text_.since(begin));
    }
    begin_symbol();
    add_terminal(add_characters({}));
    text_.skip_space(nested());
    return Status();
  }

  Status open_group() {
    if (open_.size() > limits_.depth) {
      return text_.wrong("groups are nested more than " + std::to_string(limits_.depth) + " deep");
    }
    text_.skip();
    text_.skip_space(true);
    const std::size_t before = grammar_.rules.size();
    const std::uint32_t rule = add_symbol(grammar_.names[open_.back().rule]);
    open_.push_back({.rule = rule, .n_rules_before = before});
    return Status();
  }

  Status close_group() {
    text_.skip();
    Open group = std::move(open_.back());
    open_.pop_back();
    define(group.rule, std::move(group.elements));
    begin_symbol(std::max<std::size_t>(1, grammar_.rules.size() - group.n_rules_before));
    add(Kind::kRule, group.rule);
    text_.skip_space(nested());
    return Status();
  }

  // {m}, {m,} and {m,n}
  Status parse_counts() {
    text_.skip();
    text_.skip_space(nested());
    std::uint64_t least = 0;
    OUTRIDER_RETURN_IF_ERROR(text_.read_number(limits_.repetitions, least));
    text_.skip_space(nested());
    std::uint64_t most = least;
    if (text_.peek() == ',') {
      text_.skip();
      text_.skip_space(nested());
      most = kNoMaximum;
      if (GbnfCursor::is_digit(text_.peek()))
        OUTRIDER_RETURN_IF_ERROR(text_.read_number(limits_.repetitions, most));
      text_.skip_space(nested());
    }
    if (text_.peek() != '}')
      return text_.wrong("expected '}' or ',' in a repetition such as {2,5}");
    if (most < least) {
      return text_.wrong("a repetition of at least " + std::to_string(least) + " and at most " +
                         std::to_string(most));
    }
    text_.skip();
    text_.skip_space(nested());
    return repeat(least, most);
  }

  // The last symbol `least` to `most` times, by llama.cpp's rewriting: S{m,n} becomes S m times and
  // a chain of n - m rules S'(i) ::= S S'(i-1) | nothing; S{m,} one rule S' ::= S S' | nothing.
  Status repeat(std::uint64_t least, std::uint64_t most) {
    Open& open = open_.back();
    if (open.last_begin == open.elements.size()) {
      return text_.wrong("there is nothing to repeat before this");
    }
    const bool endless = most == kNoMaximum;
    const std::uint64_t times = !endless && most > 0 ? most : std::max<std::uint64_t>(least, 1);
    open.repeated_rules *= static_cast<std::size_t>(times);
    const std::uint64_t n_optional = endless ? 1 : most - least;
    if (open.repeated_rules > limits_.repetitions) {
      return text_.wrong("repetitions in one another come to more than " +
                         std::to_string(limits_.repetitions) + " rules");
    }
    n_elements_ += open.last_weight * (least + n_optional);
    if (n_elements_ > limits_.elements) return check_size();

    const std::vector<GbnfElement> last(
        open.elements.begin() + static_cast<std::ptrdiff_t>(open.last_begin), open.elements.end());
    if (least == 0) open.elements.resize(open.last_begin);
    for (std::uint64_t i = 1; i < least; ++i) {
      open.elements.insert(open.elements.end(), last.begin(), last.end());
    }
    std::uint32_t previous = 0;
    for (std::uint64_t i = 0; i < n_optional; ++i) {
      const std::uint32_t rule = add_symbol(grammar_.names[open.rule]);
      std::vector<GbnfElement> elements = last;
      if (i > 0 || endless) elements.push_back({Kind::kRule, endless ? rule : previous});
      elements.push_back({Kind::kOr, 0});
      define(rule, std::move(elements));
      previous = rule;
    }
    if (n_optional > 0) open.elements.push_back({Kind::kRule, previous});
    open.last_weight = open.last_weight * std::max<std::uint64_t>(least, 1) + 1;
    return Status();
  }

  GbnfCursor text_;
  const GbnfLimits& limits_;
  std::vector<Open> open_;  // the rule being read, and the groups open in it
  std::map<std::string, std::uint32_t> symbols_;
  GbnfRules grammar_;
  std::map<std::uint32_t, std::uint32_t> literal_characters_;  // -> grammar_.characters
  GbnfSummary tokens_;
  std::size_t n_elements_ = 0;
};

}  // namespace

Result<GbnfSummary> check_gbnf(std::string_view text, const GbnfLimits& limits) {
  if (text.size() > limits.bytes) {
    return invalid_argument("the grammar has " + std::to_string(text.size()) +
                            " bytes, more than " + std::to_string(limits.bytes));
  }
  if (text.find('\0') != std::string_view::npos) {
    return invalid_argument("the grammar holds a NUL byte, at byte " +
                            std::to_string(text.find('\0')));
  }
  OUTRIDER_RETURN_IF_ERROR(check_utf8(text, "the grammar"));
  GbnfParser parser(text, limits);
  OUTRIDER_RETURN_IF_ERROR(parser.parse());
  return parser.summary();
}

}  // namespace outrider::llama
