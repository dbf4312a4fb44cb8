// A grammar for answers of two kinds: calls of tools, or content by a schema.
//
// llama-common makes a grammar for one of the two only, and leaves out the tools where both are
// asked for.
//
// Tested by chat_grammar_test.cc.
#pragma once

#include "model/chat.h"

namespace outrider::llama {

// What either of two grammars describes, from the answer's beginning. What the prompt has said of
// the one counts for the other, too.
// REQUIRES: both hold from the answer's beginning
ChatGrammar either(const ChatGrammar& first, const ChatGrammar& second);

}  // namespace outrider::llama
