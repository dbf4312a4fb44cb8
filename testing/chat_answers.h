// Answers in the formats of real models' chat templates, and what they hold.
#pragma once

#include <string>
#include <vector>

#include "model/chat.h"

namespace outrider::testing {

struct ChatAnswer {
  std::string file;  // the template in llama.cpp's models/templates, without .jinja
  std::string text;  // behind the prompt
  ChatReply reply;
  bool tools = true;  // chat_answer_tools() were given
};

std::vector<ChatAnswer> chat_answers();
std::vector<ChatTool> chat_answer_tools();

}  // namespace outrider::testing
