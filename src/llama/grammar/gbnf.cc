#include "llama/grammar/gbnf.h"

#include <algorithm>
#include <limits>
#include <map>
#include <utility>

#include "base/utf8.h"
#include "llama/grammar/gbnf_rules.h"

namespace outrider::llama {
namespace {

using Kind = GbnfElement::Kind;

constexpr std::uint64_t kNoMaximum = std::numeric_limits<std::uint64_t>::max();

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_hex(char c) { return is_digit(c) || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F'); }
bool is_word(char c) {
  return is_digit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '-';
}

// llama.cpp's parser (llama_grammar_parser), group by group on a stack of its own instead of the
// machine's. `at_` moves through the text; what is wrong is found there.
class GbnfParser {
 public:
  GbnfParser(std::string_view text, const GbnfLimits& limits) : text_(text), limits_(limits) {}

  Status parse() {
    skip_space(/*newlines=*/true);
    while (!at_end()) OUTRIDER_RETURN_IF_ERROR(parse_rule());
    if (grammar_.rules.empty()) return invalid_argument("the grammar is empty: it has no rules");
    if (symbols_.find("root") == symbols_.end()) {
      return invalid_argument("the grammar has no rule 'root', from which it would begin");
    }
    return check_gbnf_rules(grammar_, limits_);
  }

  GbnfSummary summary() const {
    GbnfSummary summary = tokens_;
    summary.n_rules = grammar_.rules.size();
    summary.n_elements = n_elements_;
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

  bool at_end() const { return at_ >= text_.size(); }
  char peek(std::size_t ahead = 0) const {
    return at_ + ahead < text_.size() ? text_[at_ + ahead] : '\0';
  }
  bool nested() const { return open_.size() > 1; }

  Status wrong(const std::string& what) const {
    const std::string_view before = text_.substr(0, at_);
    const std::ptrdiff_t line = std::count(before.begin(), before.end(), '\n') + 1;
    const std::size_t newline = before.rfind('\n');
    const std::size_t column =
        newline == std::string_view::npos ? before.size() + 1 : before.size() - newline;
    return invalid_argument("line " + std::to_string(line) + ", column " + std::to_string(column) +
                            ": " + what);
  }

  void skip_space(bool newlines) {
    while (!at_end()) {
      const char c = peek();
      if (c == '#') {
        while (!at_end() && peek() != '\r' && peek() != '\n') ++at_;
      } else if (c == ' ' || c == '\t' || (newlines && (c == '\r' || c == '\n'))) {
        ++at_;
      } else {
        return;
      }
    }
  }

  std::string read_name() {
    const std::size_t begin = at_;
    while (is_word(peek())) ++at_;
    return std::string(text_.substr(begin, at_ - begin));
  }

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
      return wrong("the grammar has more than " + std::to_string(limits_.rules) +
                   " rules, groups and repetitions counted");
    }
    if (n_elements_ > limits_.elements) {
      return wrong("the grammar has more than " + std::to_string(limits_.elements) +
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
  void add_weight() {
    ++open_.back().last_weight;
    ++n_elements_;
  }

  Status parse_rule() {
    const std::string name = read_name();
    if (name.empty()) return wrong("expected the name of a rule (letters, digits, '-')");
    skip_space(false);
    if (!(peek() == ':' && peek(1) == ':' && peek(2) == '=')) {
      return wrong("expected '::=' after the rule's name '" + name + "'");
    }
    at_ += 3;
    skip_space(true);
    open_.clear();
    open_.push_back({.rule = symbol(name)});
    bool ended = false;
    while (!ended) {
      OUTRIDER_RETURN_IF_ERROR(parse_symbol(ended));
      OUTRIDER_RETURN_IF_ERROR(check_size());
    }
    if (nested()) return wrong("expected ')': a group is not closed");
    define(open_.back().rule, std::move(open_.back().elements));
    if (!at_end() && peek() != '\r' && peek() != '\n') {
      return wrong("expected the end of the line, or an item of the rule '" + name + "'");
    }
    skip_space(true);
    return Status();
  }

  // One item of a sequence, a repetition, or the end of an alternative or a group. `ended`: what
  // stands here belongs to no rule.
  Status parse_symbol(bool& ended) {
    const char c = peek();
    if (c == '"') return parse_literal();
    if (c == '[') return parse_class();
    if (c == '<' || c == '!') return parse_token();
    if (c == '(') return open_group();
    if (c == ')' && nested()) return close_group();
    if (c == '{') return parse_counts();
    if (is_word(c)) {
      begin_symbol();
      add(Kind::kRule, symbol(read_name()));
    } else if (c == '.') {
      ++at_;
      begin_symbol();
      add(Kind::kTerminal);
    } else if (c == '*' || c == '+' || c == '?') {
      ++at_;
      skip_space(nested());
      return repeat(c == '+' ? 1 : 0, c == '?' ? 1 : kNoMaximum);
    } else if (c == '|') {
      ++at_;
      add(Kind::kOr);
      begin_symbol();
      skip_space(true);
      return Status();
    } else {
      ended = true;
    }
    skip_space(nested() && !ended);
    return Status();
  }

  // One character of a literal or class, escapes included.
  Status parse_char() {
    if (at_end()) return wrong("unexpected end of the grammar inside a literal or class");
    if (peek() != '\\') {
      ++at_;
      while ((static_cast<unsigned char>(peek()) & 0xC0) == 0x80) ++at_;
      return Status();
    }
    const char c = peek(1);
    const std::size_t n_hex = c == 'x' ? 2 : c == 'u' ? 4 : c == 'U' ? 8 : 0;
    if (n_hex == 0 &&
        (c == '\0' || std::string_view("trn\\\"[]-").find(c) == std::string_view::npos)) {
      return wrong("unknown escape; known are \\x \\u \\U \\t \\r \\n \\\\ \\\" \\[ \\] \\-");
    }
    for (std::size_t i = 0; i < n_hex; ++i) {
      if (!is_hex(peek(2 + i))) return wrong("expected " + std::to_string(n_hex) + " hex digits");
    }
    at_ += 2 + n_hex;
    return Status();
  }

  Status parse_literal() {
    ++at_;
    begin_symbol();
    while (peek() != '"' || at_end()) {
      OUTRIDER_RETURN_IF_ERROR(parse_char());
      add(Kind::kTerminal);
    }
    ++at_;
    skip_space(nested());
    return Status();
  }

  Status parse_class() {
    const std::size_t begin = at_++;
    if (peek() == '^') ++at_;
    begin_symbol();
    while (peek() != ']' || at_end()) {
      OUTRIDER_RETURN_IF_ERROR(parse_char());
      open_.back().last_weight == 0 ? add(Kind::kTerminal) : add_weight();
      if (peek() != '-' || peek(1) == ']') continue;
      ++at_;
      OUTRIDER_RETURN_IF_ERROR(parse_char());
      add_weight();
    }
    ++at_;
    if (open_.back().last_weight == 0) {
      at_ = begin;
      return wrong("a class with no characters; '.' is any character");
    }
    skip_space(nested());
    return Status();
  }

  Status parse_token() {
    if (peek() == '!') ++at_;
    const std::size_t begin = at_;
    if (peek() != '<') return wrong("expected '<' and a token after '!'");
    ++at_;
    if (peek() == '[') {
      ++at_;
      std::uint64_t id = 0;
      OUTRIDER_RETURN_IF_ERROR(parse_number(std::numeric_limits<std::int32_t>::max(), id));
      if (peek() != ']' || peek(1) != '>') return wrong("expected ']>' after the token's id");
      at_ += 2;
      tokens_.token_ids.push_back(static_cast<std::uint32_t>(id));
    } else {
      while (!at_end() && peek() != '>') ++at_;
      if (at_end()) return wrong("expected '>' after the token's name");
      ++at_;
      tokens_.token_names.emplace_back(text_.substr(begin, at_ - begin));
    }
    begin_symbol();
    add(Kind::kTerminal);
    skip_space(nested());
    return Status();
  }

  Status parse_number(std::uint64_t most, std::uint64_t& value) {
    if (!is_digit(peek())) return wrong("expected a number");
    value = 0;
    for (; is_digit(peek()); ++at_) {
      value = value * 10 + static_cast<std::uint64_t>(peek() - '0');
      if (value > most) return wrong("the number is above " + std::to_string(most));
    }
    return Status();
  }

  Status open_group() {
    if (open_.size() > limits_.depth) {
      return wrong("groups are nested more than " + std::to_string(limits_.depth) + " deep");
    }
    ++at_;
    skip_space(true);
    const std::size_t before = grammar_.rules.size();
    const std::uint32_t rule = add_symbol(grammar_.names[open_.back().rule]);
    open_.push_back({.rule = rule, .n_rules_before = before});
    return Status();
  }

  Status close_group() {
    ++at_;
    Open group = std::move(open_.back());
    open_.pop_back();
    define(group.rule, std::move(group.elements));
    begin_symbol(std::max<std::size_t>(1, grammar_.rules.size() - group.n_rules_before));
    add(Kind::kRule, group.rule);
    skip_space(nested());
    return Status();
  }

  // {m}, {m,} and {m,n}
  Status parse_counts() {
    ++at_;
    skip_space(nested());
    std::uint64_t least = 0;
    OUTRIDER_RETURN_IF_ERROR(parse_number(limits_.repetitions, least));
    skip_space(nested());
    std::uint64_t most = least;
    if (peek() == ',') {
      ++at_;
      skip_space(nested());
      most = kNoMaximum;
      if (is_digit(peek())) OUTRIDER_RETURN_IF_ERROR(parse_number(limits_.repetitions, most));
      skip_space(nested());
    }
    if (peek() != '}') return wrong("expected '}' or ',' in a repetition such as {2,5}");
    if (most < least) {
      return wrong("a repetition of at least " + std::to_string(least) + " and at most " +
                   std::to_string(most));
    }
    ++at_;
    skip_space(nested());
    return repeat(least, most);
  }

  // The last symbol `least` to `most` times, by llama.cpp's rewriting: S{m,n} becomes S m times and
  // a chain of n - m rules S'(i) ::= S S'(i-1) | nothing; S{m,} one rule S' ::= S S' | nothing.
  Status repeat(std::uint64_t least, std::uint64_t most) {
    Open& open = open_.back();
    if (open.last_begin == open.elements.size()) {
      return wrong("there is nothing to repeat before this");
    }
    const bool endless = most == kNoMaximum;
    const std::uint64_t times = !endless && most > 0 ? most : std::max<std::uint64_t>(least, 1);
    open.repeated_rules *= static_cast<std::size_t>(times);
    const std::uint64_t n_optional = endless ? 1 : most - least;
    if (open.repeated_rules > limits_.repetitions) {
      return wrong("repetitions in one another come to more than " +
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

  std::string_view text_;
  const GbnfLimits& limits_;
  std::size_t at_ = 0;
  std::vector<Open> open_;  // the rule being read, and the groups open in it
  std::map<std::string, std::uint32_t> symbols_;
  GbnfRules grammar_;
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
  if (const std::optional<std::size_t> bad = first_invalid_utf8(text)) {
    return invalid_argument("the grammar is not valid UTF-8, at byte " + std::to_string(*bad));
  }
  GbnfParser parser(text, limits);
  OUTRIDER_RETURN_IF_ERROR(parser.parse());
  return parser.summary();
}

}  // namespace outrider::llama
