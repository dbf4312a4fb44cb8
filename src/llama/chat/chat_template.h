// ChatTemplate: a model's own chat template, by llama-common's Jinja interpreter and its knowledge
// of formats.
//
// What llama-common gives for a conversation: the prompt; a grammar for calls of tools and where it
// begins to hold; which control tokens matter in the answer; and a parser of answers (chat.h,
// chat-auto-parser.h of llama.cpp). Formats that it does not know are found by rendering the
// template with different messages and comparing. A model that carries no template is talked to in
// ChatML, as llama-server does.
//
// A template is a program out of a file from anywhere, and the texts that it gets are anybody's. So
// what goes in is checked (chat_inputs.h), and what it may do is bounded (bounded_template.h).
// Nothing that llama-common throws gets out.
//
// Cost. A model's template is read at first use, 1 to 30 ms. A prompt takes 2 to 20 ms where
// llama-common finds out the format (once for each prompt, template_rendering.h; twice where
// reasoning is to stay in the content, or where tools stand beside a schema), and less where it
// knows it. It renders the conversation three times.
//
// Tested by chat_template_test.cc, chat_template_cost_test.cc.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "base/status.h"
#include "model/chat.h"

struct common_chat_templates;
struct llama_model;

namespace outrider::llama {

class TemplateFacts;
enum class TemplateTools : std::uint8_t;

// Immutable; any thread.
class ChatTemplate {
 public:
  // Reads nothing yet. `model` must outlive it.
  explicit ChatTemplate(const llama_model* model);
  ~ChatTemplate();

  // As Vocabulary::chat_prompt has it. BOS is left out where the tokenizer adds it. Where the
  // template knows no tools, they are described to the model in words, and earlier calls and their
  // results are texts, also where no call may follow (plain_tools.h). Where it knows a part of
  // what tools need, the rest is added (untold_tools.h). Where it refuses instructions in the
  // middle of the conversation, they are a user's, and where it refuses ids of calls, they are
  // others (retold.h).
  Result<ChatPrompt> prompt(const std::vector<ChatMessage>& messages,
                            const ChatOptions& options) const;

  // As the file has it, or ChatML's; empty: it cannot be used.
  std::string source() const;

  // Nothing where the file has no template, or one that cannot be used.
  ChatAbilities abilities() const;
  // All that llama-common found out about it, by its names; empty likewise.
  std::map<std::string, bool> caps() const;

 private:
  Result<const common_chat_templates*> templates() const;
  TemplateTools tools() const;
  bool knows_tools() const;
  Result<ChatPrompt> prompt_as_given(const std::vector<ChatMessage>& messages,
                                     const ChatOptions& options) const;
  Result<ChatPrompt> own_prompt(const std::vector<ChatMessage>& messages,
                                const ChatOptions& options) const;
  Result<ChatPrompt> prompt_with_plain_tools(const std::vector<ChatMessage>& messages,
                                             const ChatOptions& options) const;

  const llama_model* model_;
  mutable std::once_flag once_;
  mutable std::shared_ptr<const common_chat_templates> templates_;
  mutable Status status_;  // why there is none
  std::unique_ptr<const TemplateFacts> facts_;
};

}  // namespace outrider::llama
