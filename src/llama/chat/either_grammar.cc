#include "llama/chat/either_grammar.h"

#include <string>
#include <string_view>

#include "json-schema-to-grammar.h"

namespace outrider::llama {
namespace {

bool is_of_name(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-';
}

// Behind what begins at `i` and holds no names: a literal, a class, a token (<[12]>, <think>) or a
// number of repetitions; `i` where there is none of them.
std::size_t end_of_nameless(std::string_view gbnf, std::size_t i) {
  const char begin = gbnf[i];
  const char end = begin == '"'   ? '"'
                   : begin == '[' ? ']'
                   : begin == '<' ? '>'
                   : begin == '{' ? '}'
                                  : '\0';
  if (end == '\0') return i;
  for (++i; i < gbnf.size() && gbnf[i] != end; ++i) {
    if (gbnf[i] == '\\') ++i;
  }
  return i + 1;
}

// llama-common's grammars hold no comments.
std::string with_prefix(std::string_view gbnf, std::string_view prefix) {
  std::string renamed;
  for (std::size_t i = 0; i < gbnf.size();) {
    const std::size_t end = end_of_nameless(gbnf, i);
    if (end > i) {
      renamed += gbnf.substr(i, end - i);
      i = end;
    } else if (is_of_name(gbnf[i])) {
      std::size_t size = 1;
      while (i + size < gbnf.size() && is_of_name(gbnf[i + size])) ++size;
      renamed.append(prefix).append(gbnf.substr(i, size));
      i += size;
    } else {
      renamed += gbnf[i++];
    }
  }
  return renamed;
}

}  // namespace

ChatGrammar either(const ChatGrammar& first, const ChatGrammar& second) {
  ChatGrammar both;
  both.said = first.said.empty() ? second.said : first.said;
  const auto way = [&both](const ChatGrammar& grammar, const std::string& root) {
    return grammar.said.empty() && !both.said.empty() ? gbnf_format_literal(both.said) + " " + root
                                                      : root;
  };
  both.gbnf = "root ::= " + way(first, "a-root") + " | " + way(second, "b-root") + "\n" +
              with_prefix(first.gbnf, "a-") + "\n" + with_prefix(second.gbnf, "b-") + "\n";
  return both;
}

}  // namespace outrider::llama
