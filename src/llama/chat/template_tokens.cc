#include "llama/chat/template_tokens.h"

#include <string_view>
#include <vector>

namespace outrider::llama {
namespace {

constexpr std::size_t kMaxSource = std::size_t{1} << 20;
constexpr std::size_t kMaxBlockTokens = 4096;  // between two brackets {{ }} or {% %}
constexpr int kMaxNesting = 200;               // of brackets, and of blocks

// How blocks are nested. Each elif is one inside the if before it, as llama-common parses them.
class BlockStack {
 public:
  void begin(const std::string& name) { open_.push_back(name); }
  // What ends no open block is passed over: the parser refuses it, or takes it for nothing.
  void end(std::string_view name) {
    while (name == "if" && !open_.empty() && open_.back() == "elif") open_.pop_back();
    if (!open_.empty() && open_.back() == name) open_.pop_back();
  }
  std::size_t depth() const { return open_.size(); }

 private:
  std::vector<std::string> open_;
};

// {% set x %} ... {% endset %}, not {% set x = ... %}.
bool is_set_block(const std::vector<jinja::token>& tokens, std::size_t at) {
  while (at < tokens.size() && tokens[at].t != jinja::token::close_statement) {
    if (tokens[at++].t == jinja::token::equals) return false;
  }
  return true;
}

int bracket_step(jinja::token::type type) {
  switch (type) {
    case jinja::token::open_paren:
    case jinja::token::open_square_bracket:
    case jinja::token::open_curly_bracket:
      return 1;
    case jinja::token::close_paren:
    case jinja::token::close_square_bracket:
    case jinja::token::close_curly_bracket:
      return -1;
    default:
      return 0;
  }
}

}  // namespace

std::string too_much_template(const jinja::lexer_result& lexed) {
  if (lexed.source.size() > kMaxSource) return "has more than 1 MiB";
  BlockStack blocks;
  std::size_t in_block = 0;
  int brackets = 0;
  for (std::size_t i = 0; i < lexed.tokens.size(); ++i) {
    const jinja::token& token = lexed.tokens[i];
    const bool statement = token.t == jinja::token::open_statement;
    if (statement || token.t == jinja::token::open_expression) in_block = 0;
    if (in_block == 0) brackets = 0;
    brackets += bracket_step(token.t);
    if (statement && i + 1 < lexed.tokens.size()) {
      const std::string& name = lexed.tokens[i + 1].value;
      for (const char* block : {"if", "elif", "for", "macro", "call", "filter"}) {
        if (name == block) blocks.begin(name);
      }
      if (name == "set" && is_set_block(lexed.tokens, i)) blocks.begin(name);
      if (name.starts_with("end")) blocks.end(std::string_view(name).substr(3));
    }
    if (brackets > kMaxNesting) return "nests brackets more than 200 deep";
    if (blocks.depth() > static_cast<std::size_t>(kMaxNesting))
      return "nests blocks more than 200 deep";
    if (++in_block > kMaxBlockTokens) return "has an expression of more than 4,096 parts";
  }
  return "";
}

}  // namespace outrider::llama
