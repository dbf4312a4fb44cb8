// Makes llama-common's grammars of tool calls as narrow as a request asks for.
//
// With a call required, its grammars let any text come before the call, so that an answer may end,
// at max_tokens, without one. And where each call has its own marks (Hermes, Qwen), they let
// several follow each other whatever parallel_tool_calls says.
//
// A grammar is written from the same parser that reads answers (peg-parser.h of llama-common), rule
// by rule under names that the parser tells: free text is "until-" and the number of its node. So
// the parser says what a rule is for, and the rule is written anew. Where a format is made
// otherwise, nothing is changed, and the grammar is as wide as llama-common's.
//
// Tested by chat_grammar_test.cc, over the templates of real models.
#pragma once

#include "chat.h"
#include "model/chat.h"

namespace outrider::llama {

// `grammar`, which llama-common made with `params` for a conversation with tools. Throws what
// llama-common throws.
void narrow_to_calls(const common_chat_params& params, const ChatOptions& options,
                     ChatGrammar& grammar);

}  // namespace outrider::llama
