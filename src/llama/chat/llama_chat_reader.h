// Reads answers by llama-common's parsers.
#pragma once

#include <memory>

#include "chat.h"
#include "model/chat.h"

namespace outrider::llama {

// `continued`: the prompt ended with the beginning of the answer, which is not read again. Throws
// what llama-common throws.
std::shared_ptr<const ChatReader> make_chat_reader(const common_chat_params& params,
                                                   bool continued);

}  // namespace outrider::llama
