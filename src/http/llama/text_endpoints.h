// Endpoints about texts and tokens, as llama-server has them. Each takes "model", too.
//
// Tested by text_endpoints_test.cc.
#pragma once

#include "http/endpoint/endpoint.h"

namespace outrider::http {

// POST /tokenize {"content": a string, or an array of strings and ids, "add_special": false,
// "parse_special": true, "with_pieces": false} -> {"tokens": ids, or [{"id","piece"}]}. A piece is
// a string, or its bytes where these are no whole characters.
HttpReply tokenize(ServerState& server, const HttpRequest& request);

// POST /detokenize {"tokens"} -> {"content"}, control tokens by their names.
HttpReply detokenize(ServerState& server, const HttpRequest& request);

// POST /apply-template, the fields of a chat -> {"prompt"}.
HttpReply apply_template(ServerState& server, const HttpRequest& request);

// POST /v1/chat/completions/input_tokens, the fields of a chat -> {"input_tokens","object":
// "response.input_tokens"}, how many they are.
HttpReply count_chat_tokens(ServerState& server, const HttpRequest& request);

// POST /v1/responses/input_tokens, the fields of a response -> the same.
HttpReply count_response_tokens(ServerState& server, const HttpRequest& request);

}  // namespace outrider::http
