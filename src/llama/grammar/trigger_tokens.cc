#include "llama/grammar/trigger_tokens.h"

#include <algorithm>
#include <cstdint>
#include <utility>

#include "llama.h"
#include "llama/vocabulary/vocabulary.h"

namespace outrider::llama {
namespace {

bool continues_character(std::string_view text) {
  return !text.empty() && (static_cast<unsigned char>(text[0]) & 0xc0) == 0x80;
}

bool begins_with_rest(std::string_view text, std::string_view trigger) {
  for (std::size_t from = 1; from < trigger.size(); ++from) {
    if (text.starts_with(trigger.substr(from))) return true;
  }
  return false;
}

}  // namespace

std::string grammar_text(const LlamaVocabulary& vocabulary, Token token) {
  const std::string_view piece = vocabulary.piece(token);
  if (!piece.empty()) return std::string(piece);
  std::string text(64, '\0');
  std::int32_t n = 0;
  while ((n = llama_token_to_piece(vocabulary.handle(), token, text.data(),
                                   static_cast<std::int32_t>(text.size()), /*lstrip=*/0,
                                   /*special=*/true)) < 0) {
    text.resize(static_cast<std::size_t>(-n));
  }
  text.resize(static_cast<std::size_t>(n));
  return text;
}

TriggerTokens::TriggerTokens(std::vector<std::string> triggers, const LlamaVocabulary& vocabulary)
    : triggers_(std::move(triggers)) {
  for (const std::string& trigger : triggers_) longest_ = std::max(longest_, trigger.size());
  for (Token token = 0; token < vocabulary.size(); ++token) {
    std::string text = grammar_text(vocabulary, token);
    if (continues_character(text)) continuing_.push_back(token);
    bool whole = false;
    bool begins = false;
    for (const std::string& trigger : triggers_) {
      whole = whole || text.find(trigger) != std::string::npos;
      begins = begins || begins_with_rest(text, trigger);
    }
    if (!whole && !begins) continue;
    pieces_.push_back({.token = token, .text = std::move(text), .whole = whole});
  }
}

std::size_t TriggerTokens::begin_in(std::string_view text) const {
  for (const std::string& trigger : triggers_) {
    const std::size_t at = text.find(trigger);
    if (at != std::string_view::npos) return at;
  }
  return std::string_view::npos;
}

std::vector<std::string_view> TriggerTokens::endings(std::string_view tail) const {
  std::vector<std::string_view> endings;
  for (const std::string_view trigger : triggers_) {
    for (std::size_t said = 1; said < trigger.size(); ++said) {
      if (tail.ends_with(trigger.substr(0, said))) endings.push_back(trigger.substr(said));
    }
  }
  return endings;
}

}  // namespace outrider::llama
