// A text that a model has read, with the model's state of it, in a file.
//
// Idea. llama.cpp trusts a state that it is given: what is broken may end the process. So its bytes
// come with their length and a checksum of all (CRC-32C), and nothing of them reaches a model
// unless every byte is as it was written, by the same build, for the same model and settings. It
// finds accidents, not forgeries: the folder belongs to who runs the server.
//
//     "OUTRPRM1" | length of the rest | checksum of the rest | identity, tokens, state (target)
//                                                            | identity, tokens, state (draft)
//
// A file is written under another name and renamed, so it is whole or absent. Numbers are the
// machine's own: the identity names the machine. Tested by prompt_cache_test.cc with every byte
// changed and every length.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/status.h"
#include "base/types.h"

namespace outrider {

// What one model holds of a text. `identity` says which model, build and settings; empty: nothing.
struct SavedState {
  std::string identity;
  std::vector<Token> tokens;
  std::vector<std::uint8_t> bytes;
};

struct SavedPrompt {
  SavedState target;
  SavedState draft;  // of a beginning of the target's tokens
};

// Of the file that write_prompt() makes.
std::uint64_t bytes_of_prompt(const SavedPrompt& prompt);

// Errors: AtomicFile's (store/atomic_file.h).
Status write_prompt(const std::string& path, const SavedPrompt& prompt);

// Of the target, from the beginning of the file alone: to pass over those of others without their
// gigabytes. It is not checked against the checksum. Errors: load_saved_prompt()'s, but for the
// limit.
Result<std::string> load_prompt_identity(const std::string& path);

// Errors, naming the file: kNotFound, kInternal when it cannot be read; kDataLoss where it is not
// what was written; kInvalidArgument for another kind of file, or one of more than `most_bytes`.
Result<SavedPrompt> load_saved_prompt(const std::string& path, std::uint64_t most_bytes);

}  // namespace outrider
