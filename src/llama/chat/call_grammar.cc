#include "llama/chat/call_grammar.h"

#include <algorithm>
#include <cstddef>
#include <set>
#include <string>
#include <variant>

#include "chat-peg-parser.h"

namespace outrider::llama {
namespace {

// Where the right side of the rule "name ::= ..." begins and ends; `begin` is npos without such a
// rule. Each rule is a line: in its literals a line's end is escaped.
struct RightSide {
  std::size_t begin = std::string::npos;
  std::size_t size = 0;
};

RightSide right_side(const std::string& gbnf, const std::string& name) {
  const std::string left = name + " ::= ";
  std::size_t at = 0;
  if (!gbnf.starts_with(left)) {
    at = gbnf.find("\n" + left);
    if (at == std::string::npos) return {};
    ++at;
  }
  const std::size_t begin = at + left.size();
  const std::size_t end = std::min(gbnf.find('\n', begin), gbnf.size());
  return {begin, end - begin};
}

void replace_rule(std::string& gbnf, const std::string& name, const std::string& with) {
  const RightSide side = right_side(gbnf, name);
  if (side.begin != std::string::npos) gbnf.replace(side.begin, side.size, with);
}

// The texts that are content and nothing else (gpt-oss marks reasoning with the same one): none of
// them can be said any more.
void forbid_content(const common_peg_arena& parser, std::string& gbnf) {
  std::set<common_peg_parser_id> content;
  std::set<common_peg_parser_id> other;
  for (common_peg_parser_id id = 0; id < parser.size(); ++id) {
    const common_peg_tag_parser* tag = std::get_if<common_peg_tag_parser>(&parser.get(id));
    if (tag == nullptr) continue;
    (tag->tag == common_chat_peg_builder::CONTENT ? content : other).insert(tag->child);
  }
  for (const common_peg_parser_id id : content) {
    if (!other.contains(id)) replace_rule(gbnf, "until-" + std::to_string(id), "\"\"");
  }
}

// Of the rules that are calls and repeat themselves without end, each once.
void forbid_more_calls(const common_peg_arena& parser, std::string& gbnf) {
  for (common_peg_parser_id id = 0; id < parser.size(); ++id) {
    const common_peg_rule_parser* rule = std::get_if<common_peg_rule_parser>(&parser.get(id));
    if (rule == nullptr || !rule->trigger) continue;
    const common_peg_repetition_parser* calls =
        std::get_if<common_peg_repetition_parser>(&parser.get(rule->child));
    if (calls == nullptr || calls->min_count != 1 || calls->max_count != -1) continue;
    const RightSide side = right_side(gbnf, rule->name);
    const bool repeats =
        side.begin != std::string::npos && side.size > 0 && gbnf[side.begin + side.size - 1] == '+';
    if (repeats) gbnf.erase(side.begin + side.size - 1, 1);
  }
}

}  // namespace

void narrow_to_calls(const common_chat_params& params, const ChatOptions& options,
                     ChatGrammar& grammar) {
  if (grammar.gbnf.empty() || params.parser.empty()) return;
  common_peg_arena parser;
  parser.load(params.parser);
  // A text that is gone on with is content that has been said.
  const bool only_calls = options.tool_choice == ToolChoice::kRequired && !options.continue_last;
  if (only_calls) forbid_content(parser, grammar.gbnf);
  if (takes_one_call(options)) forbid_more_calls(parser, grammar.gbnf);
}

}  // namespace outrider::llama
