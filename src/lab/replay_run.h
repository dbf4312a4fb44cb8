// What `outrider replay` does: texts that were once said go through drafters that need no model,
// and what each step would have given is counted (lab/text_replay.h).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/status.h"
#include "draft/drafter_table.h"
#include "json/json.h"
#include "lab/cost_file.h"
#include "lab/replay_texts.h"
#include "lab/text_replay.h"
#include "run/harness.h"

namespace outrider::lab {

struct ReplayFile {
  OpenedDrafterFile opened;
  double load_ms = 0.0;
};

struct ReplayPlan {
  std::string drafter;            // as in --drafter
  DrafterPlan drafters;           // the same, of kTextDrafters
  std::vector<ReplayFile> files;  // that these read
  std::int32_t n_vocab = 0;       // of the texts' tokens
  std::int32_t width = 16;        // most tokens of a step
  DraftShape shape;
  // Tokens of the pieces that a plain text is cut into, each as if it were said by itself; 0: the
  // whole text. An incomplete piece at the end is left out. What a piece held goes into the
  // n-grams' dynamic cache (not into its file) for the next ones, whether a file began it or not.
  std::int32_t chunk = 0;
  std::optional<CostFile> costs;  // predicts the speed-up
};

struct ReplayResult {
  ReplayStats stats;
  std::size_t skipped = 0;          // tokens of an incomplete piece
  std::uint64_t context_bytes = 0;  // of what the drafters hold for the texts
  std::uint64_t learned_bytes = 0;  // of the dynamic cache, where pieces are learned
  std::optional<double> speedup;
};

// Errors: kInvalidArgument for texts too short to draft anything, and for costs that end below a
// step's width; kCancelled; a drafter's own. REQUIRES: a chunk is for plain texts only
Result<ReplayResult> run_replay(const ReplayPlan& plan, const ReplayTexts& texts,
                                const Watcher& watcher);

json::Json replay_json(const ReplayPlan& plan, const ReplayResult& result);
std::string replay_table(const ReplayPlan& plan, const ReplayResult& result);

}  // namespace outrider::lab
