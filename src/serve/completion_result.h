// What a runtime gives back for a completion: while it runs, and at its end.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "engine/request.h"
#include "model/chat.h"
#include "model/exactness.h"
#include "model/model_info.h"
#include "request/completion_request.h"

namespace outrider {

// Unique in a runtime, and in all that share RuntimeOptions::last_id; from 1 on.
using CompletionId = std::uint64_t;

// How a completion ended before its own end.
enum class EndedBy { kItself, kClient, kTimeout, kUnload, kShutdown };
inline std::string_view ended_by_name(EndedBy by) {
  constexpr std::string_view kNames[] = {"itself", "client", "timeout", "unload", "shutdown"};
  return kNames[static_cast<std::size_t>(by)];
}

// What became of a text that was to be remembered.
struct Remembered {
  std::string name_space;
  std::int64_t tokens = 0;  // of the text; 0: see `reason`
  std::string reason;       // why it is not remembered; empty: it is
};

// A completion and where it came from.
struct CompletionResult {
  Completion completion;
  Exactness exactness;
  KernelUse kernels;  // of the target
  std::string model;  // path of the target
  PromptStats prompt;
  EndedBy ended_by = EndedBy::kItself;
  double queued_ms = 0.0;                // from start() until it had a slot, or ended without one
  bool shifted = false;                  // the context was full and was shifted (shift_keep)
  std::optional<Remembered> remembered;  // of a request that named a namespace
  std::shared_ptr<const ChatReader> reader;  // of completion.text; null: there were no messages
};

struct StartedCompletion {
  CompletionId id = 0;
  PromptStats prompt;
  // Takes apart what is said, joined from its beginning; null: there were no messages.
  std::shared_ptr<const ChatReader> reader;
  // While a copy of it lives, the result is kept, however late it is fetched; without one for
  // RuntimeOptions::retention_ms.
  std::shared_ptr<const void> hold;
};

// A token of the text as clients see it.
struct SaidToken {
  Token id = kNoToken;
  std::string text;     // the bytes it adds; "" for control tokens that no reader looks for
  std::string_view by;  // "target", or the drafter whose guess it was; static storage
  bool cut = false;     // a stop text took all its bytes: it is none of the answer's
  std::optional<TokenLogprob> logprob;  // when they were asked for
};

struct PolledCompletion {
  std::vector<SaidToken> tokens;                   // since the last poll
  Guesses guesses;                                 // up to these
  bool finished = false;                           // true with `result`
  double prompt_progress = 0.0;                    // 0 to 1
  std::shared_ptr<const CompletionResult> result;  // once finished; all tokens are out then
};

}  // namespace outrider
