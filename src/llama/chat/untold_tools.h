// Tools for models whose chat template does a part of what they need. llama-common knows the form
// of their calls nonetheless, so grammar and reader are its own (plain_tools.h is for the others).
//
//   writes earlier calls, tells the model of no tools    DeepSeek V3.1, R1 Distill Qwen
//   tells the model of tools, writes no earlier calls    LFM2
//
// What the template leaves out is put into texts of messages: a description of the tools into the
// system message, an earlier call into the assistant's, in LFM2's form:
//
//   <|tool_call_start|>[get_weather(city="Paris", days=2)]<|tool_call_end|>
//
// Tested by untold_tools_test.cc.
#pragma once

#include <cstdint>

#include "chat.h"
#include "llama/chat/chat_inputs.h"
#include "model/chat.h"

namespace outrider::llama {

// What a template does of tools.
enum class TemplateTools : std::uint8_t {
  kNone,           // nothing that is of use, or calls have no form that llama-common knows
  kAll,            //
  kNoDescription,  // it writes earlier calls alone
  kNoCalls,        // it tells of tools alone, and calls have LFM2's form
};

// Of a template that tells of tools and writes no calls, whether these have LFM2's form: it is
// asked for a prompt with a tool. Needs a TemplateBudget, and throws what llama-common throws.
bool has_lfm2_calls(const common_chat_templates& templates);

// Puts what the template leaves out into the messages of `inputs`, which are made of `options`.
void add_untold_tools(TemplateTools tools, const ChatOptions& options, ChatInputs& inputs);

}  // namespace outrider::llama
