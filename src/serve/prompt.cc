#include "serve/prompt.h"

#include <algorithm>

#include "engine/engine.h"

namespace outrider {
namespace {

Result<std::vector<Token>> tokenize_parts(const std::vector<PromptPart>& parts,
                                          const Vocabulary& vocabulary) {
  std::vector<Token> tokens;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    if (const Token* id = std::get_if<Token>(&parts[i])) {
      tokens.push_back(*id);
      continue;
    }
    Result<std::vector<Token>> more = vocabulary.tokenize(
        std::get<std::string>(parts[i]), /*add_special=*/i == 0, /*parse_special=*/true);
    if (!more.ok()) return more.status();
    tokens.insert(tokens.end(), more->begin(), more->end());
  }
  return tokens;
}

}  // namespace

std::vector<Token> cut_prompt(std::vector<Token> prompt, std::int64_t keep, std::int64_t n_ctx) {
  const std::int64_t size = static_cast<std::int64_t>(prompt.size());
  if (size < n_ctx) return prompt;
  keep = std::min(keep, n_ctx - 4);
  const std::int64_t block = (n_ctx - keep) / 2;
  // What is left is in [n_ctx - block, n_ctx).
  const std::int64_t blocks = (size - n_ctx) / block + 1;
  prompt.erase(prompt.begin() + keep, prompt.begin() + keep + blocks * block);
  return prompt;
}

Result<Prompt> make_prompt(const CompletionRequest& request, const Target& target) {
  const Vocabulary& vocabulary = target.vocabulary();
  std::vector<PromptPart> parts = request.prompt;
  if (parts.empty()) {
    Result<std::string> text = vocabulary.apply_chat_template(request.messages);
    if (!text.ok()) return text.status().with_context("the messages").about("messages");
    parts.emplace_back(std::move(*text));
  }
  Result<std::vector<Token>> tokens = tokenize_parts(parts, vocabulary);
  if (!tokens.ok()) {
    return request.prompt.empty() ? tokens.status().with_context("the messages").about("messages")
                                  : tokens.status().with_context("the prompt").about("prompt");
  }
  Prompt prompt;
  prompt.n_asked = static_cast<std::int64_t>(tokens->size());
  const std::int64_t n_ctx = target.capabilities().n_ctx;
  if (request.shift_keep && n_ctx >= 8) {
    const std::int64_t keep = *request.shift_keep < 0 ? prompt.n_asked : *request.shift_keep;
    prompt.tokens = cut_prompt(std::move(*tokens), keep, n_ctx);
  } else {
    prompt.tokens = std::move(*tokens);
  }
  OUTRIDER_RETURN_IF_ERROR(check_prompt(target.capabilities(), prompt.tokens));
  return prompt;
}

}  // namespace outrider
