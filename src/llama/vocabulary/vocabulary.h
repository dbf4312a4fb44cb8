// LlamaVocabulary: the tokens of one model, as llama.cpp reads them.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "llama/chat/chat_template.h"
#include "llama/vocabulary/dry_breakers.h"
#include "model/vocabulary.h"

struct llama_model;
struct llama_vocab;

namespace outrider::llama {

class TokenPrefixes;

// Immutable; any thread. Points into the model: ModelFile owns both.
class LlamaVocabulary : public Vocabulary {
 public:
  // Reads all pieces once (262,144 tokens: 25 ms), so that piece() is two look-ups.
  // Errors: kUnsupported when the model has no vocabulary; kDataLoss when the tokenizer adds a
  // token to texts that it does not have.
  static Result<std::unique_ptr<LlamaVocabulary>> create(const llama_model* model);
  ~LlamaVocabulary() override;

  std::int32_t size() const override { return static_cast<std::int32_t>(offsets_.size()) - 1; }

  std::string_view piece(Token token) const override {
    const std::size_t i = static_cast<std::size_t>(token);
    return std::string_view(bytes_).substr(offsets_[i], offsets_[i + 1] - offsets_[i]);
  }

  bool is_end_of_generation(Token token) const override {
    return ends_generation_[static_cast<std::size_t>(token)] != 0;
  }

  // SentencePiece vocabularies that put a space in front of a text do so here.
  Result<std::vector<Token>> tokenize(std::string_view text, bool add_special,
                                      bool parse_special) const override;

  // The pieces, one after the other: what a client that joins a stream's pieces gets. A space that
  // tokenize() put in front stays.
  Result<std::string> detokenize(const std::vector<Token>& tokens) const override;

  // llama/chat/chat_template.h.
  Result<ChatPrompt> chat_prompt(const std::vector<ChatMessage>& messages,
                                 const ChatOptions& options) const override {
    return chat_template_.prompt(messages, options);
  }
  // What the template can express; read at the first call.
  ChatAbilities chat_abilities() const { return chat_template_.abilities(); }

  // How the file spells the token: "▁the", "<|im_end|>". REQUIRES: a valid id.
  std::string_view text(Token token) const;

  // Ids that the model must never say, by its own metadata (tokenizer.ggml.suppress_tokens);
  // llama.cpp's sampling removes them. Mostly empty.
  const std::vector<Token>& suppressed() const { return suppressed_; }

  SpecialTokens special() const override;

  std::string_view spelled(Token token) const override {
    const std::string_view bytes = piece(token);
    return bytes.empty() ? text(token) : bytes;
  }

  std::string chat_template_source() const override { return chat_template_.source(); }
  std::map<std::string, bool> chat_template_caps() const override { return chat_template_.caps(); }

  // Which tokens begin with which; built at the first call. Any thread.
  const TokenPrefixes& prefixes() const;

  // DRY's sequence breakers `texts`; what was made of the last few lists is kept and shared. Any
  // thread. Throws std::bad_alloc.
  std::shared_ptr<const DryBreakers> dry_breakers(const std::vector<std::string>& texts) const {
    return dry_breakers_.get(vocab_, texts);
  }

  const llama_vocab* handle() const { return vocab_; }  // for this layer

 private:
  LlamaVocabulary(const llama_model* model, const llama_vocab* vocab);
  void read_tokens();
  // On this thread's stack (llama/vocabulary/tokenizer_stack.h).
  Result<std::vector<Token>> tokenize_here(std::string_view text, bool add_special,
                                           bool parse_special) const;

  const llama_vocab* vocab_;
  ChatTemplate chat_template_;
  std::string bytes_;                          // all pieces, one after the other
  std::vector<std::uint32_t> offsets_;         // [size() + 1] into bytes_
  std::vector<std::uint8_t> ends_generation_;  // [size()]
  std::vector<Token> suppressed_;

  mutable std::once_flag prefixes_once_;
  mutable std::unique_ptr<const TokenPrefixes> prefixes_;
  mutable DryBreakersCache dry_breakers_;
};

}  // namespace outrider::llama
