// Vocabulary: between text and tokens, as one model does it.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/status.h"
#include "base/types.h"
#include "model/chat.h"

namespace outrider {

// Tokens by what they are for; kNoToken where the model has none.
struct SpecialTokens {
  Token front = kNoToken;          // what tokenize(add_special) puts in front of a text
  Token begin_of_text = kNoToken;  // the same token, or one that the model has and does not want
  Token end_of_text = kNoToken;
  Token end_of_turn = kNoToken;

  // Around the parts of a text whose middle is missing, as models are trained to fill it in:
  // prefix, the text before; suffix, the text behind; middle, the answer.
  Token fill_prefix = kNoToken;
  Token fill_suffix = kNoToken;
  Token fill_middle = kNoToken;
  Token repository = kNoToken;  // in front of a repository's name
  Token file = kNoToken;        // in front of a file's name and text

  bool fills_in() const {
    return fill_prefix != kNoToken && fill_suffix != kNoToken && fill_middle != kNoToken;
  }
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

  // The same with control tokens by their names: "<|im_end|>". REQUIRES: a valid id. Stays valid.
  virtual std::string_view spelled(Token token) const { return piece(token); }

  virtual SpecialTokens special() const { return {}; }

  // The source of the chat template, also where the model carries none and another is used; empty:
  // there is none.
  virtual std::string chat_template_source() const { return {}; }

  // What the chat template can do, by llama.cpp's names ("supports_tools"); empty: nothing is
  // known.
  virtual std::map<std::string, bool> chat_template_caps() const { return {}; }

  // `add_special`: puts in front (behind) what the model wants there, such as BOS.
  // `parse_special`: text such as "<|im_end|>" becomes the control token of that name.
  // Errors: kInvalidArgument when `text` is not valid UTF-8 (the message gives the byte).
  virtual Result<std::vector<Token>> tokenize(std::string_view text, bool add_special,
                                              bool parse_special) const = 0;

  // The text of `tokens`, control tokens left out. Ids outside the vocabulary: kInvalidArgument.
  virtual Result<std::string> detokenize(const std::vector<Token>& tokens) const = 0;

  // The prompt for a conversation, by the model's own template, open for the assistant's turn, and
  // how to read the answer.
  // Errors: kUnsupported when the model carries no template, or one that cannot be used;
  // kInvalidArgument, about "messages", "tools" or "chat_template_kwargs", for what the template
  // refuses, is not UTF-8 or JSON, or is over a limit (model/chat.h).
  virtual Result<ChatPrompt> chat_prompt(const std::vector<ChatMessage>& messages,
                                         const ChatOptions& options) const = 0;

  // The prompt's text alone.
  Result<std::string> chat_text(const std::vector<ChatMessage>& messages) const {
    Result<ChatPrompt> prompt = chat_prompt(messages, ChatOptions());
    if (!prompt.ok()) return prompt.status();
    return std::move(prompt->text);
  }
};

}  // namespace outrider
