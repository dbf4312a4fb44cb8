#include "serve/prompt.h"

#include <algorithm>
#include <utility>

#include "engine/engine.h"

namespace outrider {
namespace {

// Of the texts that a reader looks for, those of control tokens, which say nothing otherwise.
std::map<Token, std::string> shown_tokens(const std::vector<std::string>& texts,
                                          const Vocabulary& vocabulary) {
  std::map<Token, std::string> shown;
  for (const std::string& text : texts) {
    const Result<std::vector<Token>> tokens =
        vocabulary.tokenize(text, /*add_special=*/false, /*parse_special=*/true);
    if (!tokens.ok() || tokens->size() != 1) continue;
    const bool says_it = vocabulary.piece(tokens->front()) == text;
    const bool ends = vocabulary.is_end_of_generation(tokens->front());
    if (!says_it || ends) shown.emplace(tokens->front(), text);
  }
  return shown;
}

// The conversation's text; what the template asks for goes into `request` and `prompt`.
Result<std::string> apply_template(CompletionRequest& request, const Vocabulary& vocabulary,
                                   Prompt& prompt) {
  SamplingOptions& o = request.sampling;
  ChatOptions options = request.chat;
  if (o.grammar_triggers.empty()) options.json_schema = o.json_schema;
  options.json_schema_strict = o.json_schema_strict;
  OUTRIDER_ASSIGN_OR_RETURN(ChatPrompt chat, vocabulary.chat_prompt(request.messages, options));
  if (!chat.grammar.gbnf.empty()) {
    o.json_schema.clear();
    o.chat_grammar = std::move(chat.grammar);
  }
  for (std::string& stop : chat.stop) {
    if (!stop.empty()) request.stop.push_back(std::move(stop));
  }
  prompt.shown = shown_tokens(chat.shown, vocabulary);
  prompt.reader = std::move(chat.reader);
  return std::move(chat.text);
}

// Takes out as many blocks behind the first `keep` tokens as it takes to be shorter than `n_ctx`. A
// block is half of what the context holds behind these, so that a growing text keeps its beginning
// from request to request, and its state can be reused. REQUIRES: n_ctx >= 8, keep >= 0.
void cut_prompt(std::vector<Token>& prompt, std::int64_t keep, std::int64_t n_ctx) {
  const std::int64_t size = static_cast<std::int64_t>(prompt.size());
  if (size < n_ctx) return;
  keep = std::min(keep, n_ctx - 4);
  const std::int64_t block = (n_ctx - keep) / 2;
  // What is left is in [n_ctx - block, n_ctx).
  const std::int64_t blocks = (size - n_ctx) / block + 1;
  prompt.erase(prompt.begin() + keep, prompt.begin() + keep + blocks * block);
}

}  // namespace

Result<std::vector<Token>> tokenize_parts(const std::vector<PromptPart>& parts,
                                          const Vocabulary& vocabulary, bool add_special,
                                          bool parse_special) {
  std::vector<Token> tokens;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    if (const Token* id = std::get_if<Token>(&parts[i])) {
      tokens.push_back(*id);
      continue;
    }
    OUTRIDER_ASSIGN_OR_RETURN(
        std::vector<Token> more,
        vocabulary.tokenize(std::get<std::string>(parts[i]), add_special && i == 0, parse_special));
    tokens.insert(tokens.end(), more.begin(), more.end());
  }
  return tokens;
}

Result<Prompt> read_prompt(CompletionRequest& request, const Target& target) {
  const Vocabulary& vocabulary = target.vocabulary();
  Prompt prompt;
  const std::string about = request.prompt.empty() ? "messages" : "prompt";
  std::vector<PromptPart> parts = request.prompt;
  if (parts.empty()) {
    Result<std::string> text = apply_template(request, vocabulary, prompt);
    if (!text.ok()) {
      const Status status = text.status();
      if (!status.field().empty() && status.field() != about) return status;
      return status.with_context("the " + about).about(about);
    }
    parts.emplace_back(std::move(*text));
  }
  Result<std::vector<Token>> tokens = tokenize_parts(parts, vocabulary);
  if (!tokens.ok()) return tokens.status().with_context("the " + about).about(about);
  prompt.n_asked = static_cast<std::int64_t>(tokens->size());
  prompt.tokens = *std::move(tokens);
  return prompt;
}

Result<Prompt> make_prompt(CompletionRequest& request, const Target& target) {
  OUTRIDER_ASSIGN_OR_RETURN(Prompt prompt, read_prompt(request, target));
  const std::int64_t n_ctx = target.capabilities().n_ctx;
  if (request.shift_keep && n_ctx >= 8) {
    const std::int64_t keep = *request.shift_keep < 0 ? prompt.n_asked : *request.shift_keep;
    cut_prompt(prompt.tokens, keep, n_ctx);
  }
  OUTRIDER_RETURN_IF_ERROR(check_prompt(target.capabilities(), prompt.tokens));
  return prompt;
}

}  // namespace outrider
