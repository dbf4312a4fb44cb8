// RuntimeEvent: what a runtime tells those who subscribe.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "serve/completion_result.h"
#include "serve/runtime_status.h"

namespace outrider {

struct ModelEvent {
  ModelRole role = ModelRole::kTarget;
  ModelStatus status;
};

struct DrafterEvent {
  DrafterFileStatus file;
  bool attached = true;  // false: it was taken away
};

struct CompletionEvent {
  CompletionId id = 0;
  std::vector<SaidToken> tokens;
  std::shared_ptr<const CompletionResult> result;  // with the last one; else null
};

// Exactly one of them is set.
struct RuntimeEvent {
  std::optional<ModelEvent> model = {};
  std::optional<DrafterEvent> drafter = {};
  std::optional<CompletionEvent> completion = {};
};

using EventCallback = std::function<void(const RuntimeEvent&)>;

}  // namespace outrider
