// How a runtime serves: what the operator sets, for all requests.
#pragma once

#include <cstdint>
#include <span>

#include "base/field.h"
#include "base/status.h"

namespace outrider {

struct RuntimeOptions {
  std::int32_t slots = 4;              // requests that run at once
  std::int32_t max_queue = 256;        // requests that wait, at most
  std::int32_t prompt_chunk = 128;     // prompt tokens of a step while other texts go on
  bool reuse_prefix = true;            // keep the state of ended texts for prompts that begin alike
  std::int64_t retention_ms = 60'000;  // how long a finished result waits to be fetched
  // Tokens of finished texts that the suffix drafter remembers, over all namespaces (a quarter of
  // them for one at most): 0: none; else from SuffixMemory::kLeastTokens to kMostTokens.
  std::int64_t remember_tokens = 0;
};

// Each with its name, range and help. Static storage.
std::span<const Field<RuntimeOptions>> runtime_fields();

// Errors: kInvalidArgument, about the field.
Status validate(const RuntimeOptions& options);

}  // namespace outrider
