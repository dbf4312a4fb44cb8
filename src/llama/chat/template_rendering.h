// What llama-common makes of a conversation, at the least cost that its interface allows.
//
// It finds a format by rendering the template dozens of times, anew for each conversation that it
// is given, and cannot be told what it found before (docs/bugs.md): 8 ms for Qwen3's. So it is
// asked no more often than needed. What depends on the template alone is found out at first use and
// kept; where only the prompt is wanted, and llama-common has no code of its own for the template,
// no format is looked for.
//
// Tested by chat_template_cost_test.cc.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <string>

#include "chat.h"
#include "llama/chat/untold_tools.h"

namespace outrider::llama {

// All below need a TemplateBudget, and throw what llama-common throws. A format that cannot be
// found out is an error only where it matters: with tools and schemas.
common_chat_params apply_template(const common_chat_templates& templates,
                                  const common_chat_templates_inputs& inputs);

// Any thread. Two that ask first both find out, and find the same: nobody waits for a template that
// takes its 20 seconds. That nothing could be found out is not kept, for it may have been the time,
// or the memory, that ended.
class TemplateFacts {
 public:
  // Whether the template tells reasoning apart, so that it says what stands around the content.
  bool supports_thinking(const common_chat_templates& templates) const;

  // What it does of tools.
  TemplateTools tools(const common_chat_templates& templates) const;

  // The prompt of apply_template().
  std::string text_of(const common_chat_templates& templates,
                      const common_chat_templates_inputs& inputs) const;

 private:
  enum class Known : std::uint8_t { kNot, kFalse, kTrue };

  // Whether llama-common has code of its own for the template, which may change the messages before
  // they are rendered. Else the prompt is what the template makes of them.
  bool has_own_code(const common_chat_templates& templates, bool with_tools) const;

  mutable std::atomic<Known> supports_thinking_ = Known::kNot;
  mutable std::atomic<Known> has_lfm2_calls_ = Known::kNot;
  mutable std::array<std::atomic<Known>, 2> has_own_code_ = {};  // [with tools]
};

}  // namespace outrider::llama
