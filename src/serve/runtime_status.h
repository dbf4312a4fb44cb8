// What a runtime says of its models, its drafters and itself: when it is asked, and as events.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "draft/base/lookup_drafter.h"
#include "draft/base/text_memory.h"
#include "engine/request.h"
#include "model/exactness.h"
#include "model/model_info.h"
#include "serve/completion_result.h"

namespace outrider {

enum class ModelRole { kTarget, kDraft };
enum class ModelState { kAbsent, kLoading, kReady, kFailed };

// Static storage.
inline std::string_view model_role_name(ModelRole role) {
  return role == ModelRole::kTarget ? "target" : "draft";
}
inline std::string_view model_state_name(ModelState state) {
  constexpr std::string_view kNames[] = {"absent", "loading", "ready", "failed"};
  return kNames[static_cast<std::size_t>(state)];
}

struct ModelStatus {
  ModelState state = ModelState::kAbsent;  // of the newest load; see `serving`
  std::string path;                        // of the newest load; empty: there was none
  double progress = 0.0;                   // 0 to 1
  Status error;                            // of the newest load, when it failed
  bool serving = false;           // one is at work (which a failed or running load does not change)
  std::string serving_path;       // its path
  std::optional<ModelInfo> info;  // of the one at work
  std::vector<std::string> notes;  // of the one at work
};

// Files of drafters that can be there at once.
inline constexpr std::size_t kMaxDrafterFiles = 64;

struct DrafterFileStatus {
  DrafterFile file;
  ModelState state = ModelState::kLoading;  // of the newest load; kFailed also when damage is found
  Status error;                             // when it failed
  bool serving = false;                     // one is at work (which a failed load does not change)
  std::uint64_t file_bytes = 0;             // of the one at work
  // That it takes: 0 for a store, which is mapped and not read as a whole.
  std::uint64_t memory_bytes = 0;
};

// What finished texts take (RuntimeOptions::remember_tokens), of the target at work.
using MemoryStatus = TextMemory::Stats;

// Of one that is there or could be.
struct DrafterStatus {
  std::string name;
  ModelState state = ModelState::kAbsent;
  bool attached = false;  // to the target at work
  std::string path;       // of the draft model; else empty
  Status error;           // of the draft model, when it failed
  // What it holds: for its sequences, of its files what is in memory as a whole, and what it
  // remembers; of a draft model the weights.
  std::uint64_t memory_bytes = 0;
  std::vector<DrafterFileStatus> files;  // in the order in which they came
  std::optional<MemoryStatus> memory;    // of one that remembers texts, when it is to
  DrafterStats totals;                   // over all requests that have ended
};

// SpeculationStats::by_depth over all requests: [depth - 1]; the last one also has what is deeper.
inline constexpr std::size_t kCountedDepths = 64;
using DepthTotals = std::array<DepthStats, kCountedDepths>;

// Since the start, over all requests.
struct RuntimeTotals {
  std::int64_t started = 0;
  std::int64_t finished = 0;       // in any way
  std::int64_t prompt_tokens = 0;  // evaluated
  std::int64_t cached_tokens = 0;  // reused
  // Of the answers. Beside emitted_tokens also those of a step that failed before all of its were
  // decided, which counts as no step.
  std::int64_t generated_tokens = 0;
  std::int64_t drafted_tokens = 0;
  std::int64_t accepted_tokens = 0;
  std::int64_t steps = 0;           // target evaluations that gave text
  std::int64_t emitted_tokens = 0;  // of these (SpeculationStats::emitted)
  DepthTotals by_depth{};

  // Those of another runtime, too.
  void add(const RuntimeTotals& other) {
    started += other.started;
    finished += other.finished;
    prompt_tokens += other.prompt_tokens;
    cached_tokens += other.cached_tokens;
    generated_tokens += other.generated_tokens;
    drafted_tokens += other.drafted_tokens;
    accepted_tokens += other.accepted_tokens;
    steps += other.steps;
    emitted_tokens += other.emitted_tokens;
    for (std::size_t i = 0; i < by_depth.size(); ++i) by_depth[i].add(other.by_depth[i]);
  }
};

struct RuntimeStatus : RuntimeTotals {
  ModelStatus target;
  ModelStatus draft;
  std::optional<Exactness> exactness;  // of the target at work
  std::int32_t n_ctx = 0;              // of one request; 0: no target
  std::int32_t slots = 0;
  std::int64_t running = 0;  // requests
  std::int64_t queued = 0;
  std::vector<DrafterStatus> drafters;  // in the order of kDrafterNames; added ones behind
  // What could not be written to the runtime's folders since its start, the newest last, each once.
  std::vector<std::string> not_kept;
};

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

// What those who subscribe are told. At most one of them is set; none: an event is lost.
struct RuntimeEvent {
  std::optional<ModelEvent> model = {};
  std::optional<DrafterEvent> drafter = {};
  std::optional<CompletionEvent> completion = {};
};

using EventCallback = std::function<void(const RuntimeEvent&)>;

}  // namespace outrider
