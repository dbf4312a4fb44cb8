// Vocabulary: between text and tokens, as one model does it.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "base/types.h"

namespace outrider {

struct ChatMessage {
  std::string role;     // "system", "user", "assistant"
  std::string content;  // UTF-8
};

// Immutable; any thread.
class Vocabulary {
 public:
  virtual ~Vocabulary() = default;

  virtual std::int32_t size() const = 0;  // valid ids are 0 <= id < size()

  // The bytes that `token` adds to a text; empty for control tokens (end of turn and the like).
  // A token may be a part of a multibyte character. REQUIRES: a valid id. Stays valid.
  virtual std::string_view piece(Token token) const = 0;

  // True when `token` ends the generation (end of text, end of turn, ...).
  virtual bool is_end_of_generation(Token token) const = 0;

  // `add_special`: puts in front (behind) what the model wants there, such as BOS.
  // `parse_special`: text such as "<|im_end|>" becomes the control token of that name.
  // Errors: kInvalidArgument when `text` is not valid UTF-8 (the message gives the byte).
  virtual Result<std::vector<Token>> tokenize(std::string_view text, bool add_special,
                                              bool parse_special) const = 0;

  // The text of `tokens`, control tokens left out. Ids outside the vocabulary: kInvalidArgument.
  virtual Result<std::string> detokenize(const std::vector<Token>& tokens) const = 0;

  // The prompt text for a conversation, by the model's own template, open for the assistant's turn.
  // Errors: kUnsupported when the model carries no template.
  virtual Result<std::string> apply_chat_template(
      const std::vector<ChatMessage>& messages) const = 0;
};

}  // namespace outrider
