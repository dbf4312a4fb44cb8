// Messages of the layers below in the command's words.
//
// They call a setting by its field, which every interface knows: the one that they are about
// (Status::field()), and those that they advise, as `flash_attn=on`, `(ctx)` or `prompt_cache`.
// Whoever typed an option reads that option instead: `--flash-attn on`, `(--ctx)`. Of a draft it is
// the draft's own: `--draft-ctx`.
//
//   a q8_0 cache for values needs flash attention; switch it on (flash_attn=on) or take f16
//   (cache_type_v=f16)
//     becomes, of a draft,
//   ...; switch it on (--flash-attn on) or take f16 (--draft-cache-type-v f16)
//
// What stands in quotes, names of files above all, stays as it is; so do words without an
// underscore that are neither in parentheses of their own nor in front of a '='.
//
// Tested by field_words_test.cc.
#pragma once

#include <string>
#include <string_view>

#include "base/status.h"
#include "serve/runtime.h"

namespace outrider::tools {

// The option of a field, of a model in this role: "ctx" -> "--ctx", "--draft-ctx"; "path" ->
// "--model", "--draft-model". An index goes: "stop[2]" -> "--stop". An option stays one.
std::string option_of(std::string_view field, ModelRole role = ModelRole::kTarget);

// Saying it twice changes nothing.
std::string in_options(std::string_view text, ModelRole role = ModelRole::kTarget);

// The same failure in these words, about no field any more. Ok stays ok.
Status in_options(const Status& status, ModelRole role);

}  // namespace outrider::tools
