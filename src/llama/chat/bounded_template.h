// A model's chat template, read so that what it does when it runs is bounded (template_budget.h).
//
// llama-common runs a template while it reads it, to find out what it can. So it first gets it with
// a statement in front that ends it at once; what it made of the source (it corrects some that are
// known to be wrong) is then parsed here, bounded, and put into its place.
//
// Tested by bounded_template_test.cc.
#pragma once

#include <cstdint>
#include <memory>

#include "base/status.h"
#include "chat.h"
#include "llama/chat/template_budget.h"

namespace outrider::llama {

// Bytes of all texts in `inputs`.
std::uint64_t input_bytes(const common_chat_templates_inputs& inputs);

// Of a model that has none: ChatML's. Errors: kUnsupported for one that cannot be read, is too
// much, or does not come to an end while it is read.
Result<std::shared_ptr<const common_chat_templates>> read_templates(const llama_model* model);

// The one that llama-common renders a conversation with.
const common_chat_template& template_for(const common_chat_templates& templates, bool with_tools);

}  // namespace outrider::llama
