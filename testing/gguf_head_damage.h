// Trained heads that do not fit their target, each with what llama.cpp v0.5.0 does with it.
//
// Made from the tiny heads, each with one thing changed. A loader must refuse all of them before
// llama.cpp evaluates anything: some end the process, some go on and guess from memory that is not
// theirs. gguf_head_damage_test.cc holds what is said of each, in a process of its own.
#pragma once

#include <string>
#include <vector>

#include "base/status.h"
#include "testing/llama_heads.h"

namespace outrider::testing {

enum class BadHeadEffect {
  kRefused,  // llama.cpp gives no model, no context, or says why it will not use the head
  kAborts,   // SIGABRT, at load, when the context is made, or at the first batch
  kSilent,   // it runs; its guesses are none, or made of what is not there
};

struct BadHead {
  std::string what;  // "a tap above the target's layers"
  LlamaHeadKind kind = LlamaHeadKind::kEagle3;
  std::string target_path;
  std::string head_path;  // empty for kMtp
  BadHeadEffect effect = BadHeadEffect::kRefused;
};

// Writes all of them into the folder `folder`.
Result<std::vector<BadHead>> write_bad_heads(const std::string& folder);

}  // namespace outrider::testing
