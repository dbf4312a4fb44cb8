// RuntimeOptions: what the maker of a runtime chooses.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

#include "base/clock.h"
#include "base/field.h"
#include "base/status.h"
#include "draft/base/lookup_drafter.h"

namespace outrider {

// One more drafter, of whoever embeds these layers. It guesses for requests that name it.
struct AddedDrafter {
  std::string_view name;  // static storage; no other drafter's
  // Called by the loading thread for each target; may throw std::bad_alloc. What it makes (not
  // null, of this name) is the decode thread's and ends with the target.
  std::function<std::unique_ptr<LookupDrafter>(const LookupSettings&)> make;
};

struct RuntimeOptions {
  std::int32_t slots = 4;           // requests that run at once
  std::int32_t max_queue = 256;     // requests that wait, at most
  std::int32_t prompt_chunk = 128;  // prompt tokens of a step while other texts go on
  // Of the time, what one prompt takes while other texts go on, in the long run; 1: no limit.
  float prompt_share = 0.2f;
  bool reuse_prefix = true;            // keep the state of ended texts for prompts that begin alike
  std::int64_t retention_ms = 60'000;  // how long a finished result waits to be fetched
  // A completion that nobody holds (StartedCompletion::hold) and nobody polls for that long ends as
  // one that has run out of time. For servers: their clients may be gone without a word, and an
  // endless text would keep its slot and its model. Else clients need not poll: events tell them.
  bool end_unpolled = false;
  // Tokens of finished texts that the suffix drafter remembers, over all namespaces (a quarter of
  // them for one at most): 0: none; else from TextMemory::kLeastTokens to kMostTokens.
  std::int64_t remember_tokens = 0;
  // A folder in which they are kept over restarts, a file for each model; empty: nowhere.
  std::string remember_folder = {};
  // A folder in which what idle texts hold is kept over restarts (serve/prompt_cache.h); empty:
  // nowhere. Of all files in it, those written longest ago go beyond so many mebibytes.
  std::string prompt_cache = {};
  std::int64_t prompt_cache_mib = 2048;
  // Beside those of the table (draft/drafter_table.h). At most kMaxAddedDrafters.
  std::vector<AddedDrafter> drafters = {};
  static constexpr std::size_t kMaxAddedDrafters = 8;
  NowMs now_ms = {};  // of the steps; empty: the machine's clock
  // The last id that a completion got, of all runtimes that share it: an id never names another
  // one's completion. Null: the runtime counts by itself.
  std::shared_ptr<std::atomic<std::uint64_t>> last_id = nullptr;
  // Told at a target's end what could not be written to the folders above, with the field's name,
  // on the thread that ends it; and once for a target, on its decode thread, that its drafters'
  // experience could not: what a disk does not take is forgotten, and no call is there to say so.
  // RuntimeStatus::not_kept has it as well. Any number at once. Empty: nobody is told.
  std::function<void(const Status&)> not_kept = {};
};

// What interfaces let operators set, each with its name, range and help. Static storage.
std::span<const Field<RuntimeOptions>> runtime_fields();

// Errors: kInvalidArgument, about the field.
Status validate(const RuntimeOptions& options);

// Makes a folder where it is missing, for this user alone: it is for texts. Empty: nothing.
std::error_code make_private_folder(const std::string& path);

// Makes the folders that the options name. For whoever makes runtimes, once: a folder that is lost
// later on stops no model. Errors: validate()'s, before anything is made; kInvalidArgument about
// the field where a folder cannot be written to.
Status prepare_folders(const RuntimeOptions& options);

}  // namespace outrider
