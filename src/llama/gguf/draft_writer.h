// Makes a draft model out of a model file: other weight types, fewer tokens, fewer layers.
//
// The result is an ordinary GGUF file, which llama.cpp loads like any other; that its vocabulary is
// smaller, draft/translated bridges, as it does for models of another family. What was done is
// written into its metadata, under outrider.draft.
//
// Tested by draft_writer_test.cc.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "base/status.h"
#include "base/types.h"

namespace outrider::gguf {

// The metadata key in front of what a recipe notes: "outrider.draft.source".
inline constexpr const char* kDraftKeys = "outrider.draft.";

struct DraftRecipe {
  // Of all matrices whose rows allow it, ggml's name: "q4_0"; empty: each as it is.
  std::string type;
  std::vector<Token> tokens;         // that are left, rising; empty: all
  std::vector<std::int32_t> layers;  // likewise, from 0
  // Noted in the file as kDraftKeys + first.
  std::vector<std::pair<std::string, std::string>> notes;
};

struct DraftWriting {
  std::int32_t n_threads = 1;                 // >= 1
  const std::atomic<bool>* cancel = nullptr;  // while true it ends; null: never
  std::function<void(double)> progress = {};  // 0 to 1, from the calling thread; may be empty
};

// Whether a recipe may have it. Error: kInvalidArgument, with the types that there are.
Status check_draft_type(const std::string& type);

// What can be made of a file, without its weights.
struct DraftSource {
  std::int32_t n_tokens = 0;
  std::int32_t n_layers = 0;
  std::uint64_t bytes = 0;  // of the file
  Status cuts_tokens;       // why its vocabulary cannot be cut, or ok
  Status cuts_layers;       // why no layers can be left out, or ok
  std::string type;         // ggml's name, where all matrices have one; else empty
};

// Errors: kNotFound, kInvalidArgument, kDataLoss for a file that is none; kUnsupported for one part
// of several.
Result<DraftSource> read_draft_source(const std::string& path);

// Writes what `recipe` makes of `source` to `path`, whole or not at all; an old file there is
// replaced. The same arguments give the same bytes, whatever the threads. Errors:
// read_draft_source()'s and its reasons; kInvalidArgument for a type that there is not, for ids out
// of range or not rising, and where both are the same file; kResourceExhausted where the disk is
// full; kCancelled. On failure nothing is left behind.
Status write_draft(const std::string& source, const std::string& path, const DraftRecipe& recipe,
                   const DraftWriting& how = {});

}  // namespace outrider::gguf
