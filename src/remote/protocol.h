// What a process and the child that runs its model say to each other.
//
//      child                               parent
//      hello {version}                 ->
//                                      <-  open {what, how}
//      progress, log ...               ->                      while it loads
//      opened {status, report}         ->
//                                      <-  map {n_floats}      the rows' memory has its size now
//      done {status, state}            ->
//                                      <-  evaluate, commit, truncate or share, one at
//                                          a time
//      log ...                         ->
//      done {status, state}            ->                      `state`: length and room of all
//                                      <-  bye, or its end closes
//
// map, evaluate, commit, truncate and share have numbers, each the next one; done has that of what
// it answers. So a parent that an exception kept from taking an answer does not take it for the
// next.
//
// Rows of logits lie in the shared memory (remote/shared_memory.h), one after the other, in the
// order of items and of their new nodes. Its flag ends the loading, then an evaluation.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/log.h"
#include "base/status.h"
#include "model/exactness.h"
#include "model/language_model.h"
#include "model/model_info.h"
#include "model/model_options.h"
#include "remote/wire.h"

namespace outrider {

// To be raised with every change of what follows.
inline constexpr std::uint32_t kProtocolVersion = 4;

enum class MessageKind : std::uint32_t {
  kHello = 1,
  kOpen,
  kProgress,
  kLog,
  kOpened,
  kMap,
  kEvaluate,
  kCommit,
  kTruncate,
  kShare,
  kDone,
  kBye,
};

// What to open. Beside ModelOptions, what only the opener knows (backend/llama_loader.h has the
// same fields with their meaning).
struct OpenRequest {
  ModelOptions model;
  bool speculation = true;
  double probe_budget_ms = 0.0;
  std::optional<std::string> cache_folder;
};

// What was opened.
struct OpenReport {
  Capabilities capabilities;
  Exactness exactness;
  std::vector<std::string> notes;
  ModelInfo info;
};

enum class LoadPhase : std::uint32_t { kLoading, kProbing };

struct SequenceState {
  Pos length = 0;
  std::int32_t room = 0;
};

// One item of an evaluation, with its own memory.
struct OwnedItem {
  SeqId seq = 0;
  std::vector<Token> prefix;
  std::optional<TokenTree> tree;
  NodeId first_new = 0;

  EvalItem view() const {
    return {.seq = seq, .prefix = prefix, .tree = tree ? &*tree : nullptr, .first_new = first_new};
  }
};

// Each pair: what is put is what is read; a reader that has failed leaves nonsense behind, so ask
// it before the result is used.
void put(WireWriter& to, const Status& status);
void put(WireWriter& to, const OpenRequest& request);
void put(WireWriter& to, const OpenReport& report);
void put(WireWriter& to, const EvalItem& item);
void put(WireWriter& to, std::span<const SequenceState> states);
Status read_status(WireReader& from);
OpenRequest read_open_request(WireReader& from);
OpenReport read_report(WireReader& from);
OwnedItem read_item(WireReader& from);
std::vector<SequenceState> read_states(WireReader& from);

// Rows that an evaluation may have at most, and floats in all of them.
std::uint64_t most_rows(const Capabilities& capabilities);
std::uint64_t most_floats(const Capabilities& capabilities);

}  // namespace outrider
