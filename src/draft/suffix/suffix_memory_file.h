// Remembered texts in a file, for the next start.
//
// A store file (store/store_format.h) of kind "remembered" with three sections:
//     spaces  {uint32 name_bytes, uint32 n_tokens} each, the one used last at the end
//     names   the namespaces' names, one behind the other
//     tokens  their texts, each with SuffixMemory::kTextEnd behind it, oldest first
// It holds the texts themselves: it is for those only who may read them.
//
// Tested by suffix_memory_file_test.cc.
#pragma once

#include <chrono>
#include <string>

#include "base/status.h"
#include "draft/suffix/suffix_memory.h"
#include "store/file_lock.h"
#include "store/tokenizer_id.h"

namespace outrider {

// Adds to the file what was added to `memory` since its mark_known(), so that nothing is lost where
// several write the same file, one after the other or at once, whoever ends first: each adds its
// own. A file that is not there is made of all of `memory`. It is locked by `path`.lock meanwhile,
// which stays; where it cannot be had within `patience` since another has replaced the file
// (FileLock::for_at_most()), kResourceExhausted with the lock's name.
// Errors: also those of load_memory() and save_store(), with the file as it was. But a damaged one
// becomes "<path>.damaged", in the place of the one before, and a new one is made: then the error
// is load_memory()'s, with that name.
Status add_to_file(const SuffixMemory& memory, const TokenizerId& tokenizer,
                   const std::string& path, std::chrono::milliseconds patience = kLockPatience);

// load_memory(), but a damaged file becomes "<path>.damaged", which the error says: so that
// nobody's texts go because of one bad read. Where the lock cannot be had within `patience` it
// keeps its name.
Status recall_memory(const std::string& path, const TokenizerId& tokenizer, SuffixMemory& memory,
                     std::chrono::milliseconds patience = kLockPatience);

// Replaces `path` atomically. Errors: those of save_store().
Status save_memory(const SuffixMemory& memory, const TokenizerId& tokenizer,
                   const std::string& path);

// Adds what the file holds to `memory`, whose bounds hold: of more than that, the oldest texts go.
// Errors, with `memory` as it was: those of StoreFile::open and check_tokenizer; kDataLoss for what
// no memory can hold.
Status load_memory(const std::string& path, const TokenizerId& tokenizer, SuffixMemory& memory);

}  // namespace outrider
