#include "serve/runtime_options.h"

#include <algorithm>
#include <string>

#include "draft/drafter_plan.h"
#include "draft/suffix_memory.h"

namespace outrider {
namespace {

Status out_of_range(const char* name, std::int64_t value, const std::string& range) {
  return invalid_argument(std::string("--") + name + " is " + std::to_string(value) +
                          ", but must be " + range);
}

Status check_added(const std::vector<AddedDrafter>& drafters) {
  if (drafters.size() > RuntimeOptions::kMaxAddedDrafters) {
    return invalid_argument("there are " + std::to_string(drafters.size()) +
                            " added drafters, but there can be at most " +
                            std::to_string(RuntimeOptions::kMaxAddedDrafters));
  }
  std::vector<std::string_view> names(kDrafterNames.begin(), kDrafterNames.end());
  for (const AddedDrafter& added : drafters) {
    const bool taken = std::find(names.begin(), names.end(), added.name) != names.end();
    if (taken || added.name.empty() || !added.make) {
      return invalid_argument("the added drafter '" + std::string(added.name) +
                              "' must have a name that no other has, and be one that can be made");
    }
    names.push_back(added.name);
  }
  return Status();
}

}  // namespace

Status validate(const RuntimeOptions& o) {
  if (o.slots < 1 || o.slots > 64) return out_of_range("slots", o.slots, "from 1 to 64");
  if (o.max_queue < 0) return out_of_range("max-queue", o.max_queue, "at least 0");
  if (o.prompt_chunk < 1) return out_of_range("prompt-chunk", o.prompt_chunk, "at least 1");
  if (o.retention_ms < 0) return out_of_range("retention-ms", o.retention_ms, "at least 0");
  OUTRIDER_RETURN_IF_ERROR(check_added(o.drafters));
  if (o.remember_tokens == 0) return Status();
  const std::int64_t least = SuffixMemory::kLeastTokens;
  const std::int64_t most = SuffixMemory::kMostTokens;
  if (o.remember_tokens < least || o.remember_tokens > most) {
    return out_of_range(
        "remember-tokens", o.remember_tokens,
        "0 (nothing), or from " + std::to_string(least) + " to " + std::to_string(most));
  }
  return Status();
}

}  // namespace outrider
