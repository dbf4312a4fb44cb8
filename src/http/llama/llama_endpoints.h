// llama-server's own endpoints: completions, texts and tokens, what the server is, and 501 for what
// it does not do (embeddings, images, ...).
//
// GET /props -> {"default_generation_settings": {"n_ctx","params"}, "total_slots", "model_alias",
// "model_path", "modalities", "chat_template", "chat_template_caps", "bos_token", "eos_token",
// "build_info", ...}; POST /props is 501, as in llama-server without --props. GET /slots ->
// [{"id","n_ctx","speculative","is_processing"}], one for each; no prompts are told. Both take
// ?model=, and open no model. POST /slots/N is 501: see --prompt-cache.
//
// Tested by llama_endpoints_test.cc.
#pragma once

#include <span>

#include "http/endpoint/endpoint.h"

namespace outrider::http {

// In the order of the documentation. Static storage.
std::span<const Endpoint> llama_endpoints();

}  // namespace outrider::http
