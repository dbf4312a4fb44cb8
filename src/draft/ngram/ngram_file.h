// N-gram caches in files: our own format, which is checked, and saved whole or not at all.
//
// A store file (store/store_format.h) of kind "ngram" with these sections:
//     ngrams     {Token tokens[4]; uint32 n_followers} each, strictly rising
//     followers  {Token, uint32 count} each: the followers of the first n-gram, then of the next,
//                ...; the best one first, the others by rising token
//     ages       uint32 each, in files that texts are added to: the n-gram's place in the order in
//                which they came in, 0 the oldest. Files without it, of older versions too, have
//                that order by rising n-gram.
// params: shortest and longest n-gram, number of n-grams, number of followers, sum of all counts.
//
// Everything is checked when it is loaded: checksums, order, ids against the vocabulary, counts and
// sums. A file that differs in a byte from what was saved gives an error, never a part of a cache.
// llama.cpp's own files: draft/ngram/llama_ngram_file.h.
//
// Tested by ngram_file_test.cc (every truncation, every byte flipped, every field wrong) and
// ngram_adding_test.cc.
#pragma once

#include <chrono>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/status.h"
#include "draft/ngram/ngram_cache.h"
#include "store/file_lock.h"
#include "store/file_ops.h"
#include "store/tokenizer_id.h"

namespace outrider {

inline constexpr const char* kNgramStore = "ngram";  // the kind of its store

// Replaces `path` atomically; on error the old file stays. Errors: those of save_store();
// kInvalidArgument for an id outside the tokenizer's vocabulary.
Status save_ngrams(const NgramCache& cache, const TokenizerId& tokenizer, const std::string& path,
                   FileOps& ops);
Status save_ngrams(const NgramCache& cache, const TokenizerId& tokenizer, const std::string& path);

struct NgramFile {
  NgramCache cache;
  TokenizerId tokenizer;
};

// Errors name the file: kNotFound, kInvalidArgument (another kind of file), kUnsupported (another
// version or byte order), kDataLoss (damaged), kInternal.
Result<NgramFile> load_ngrams(const std::string& path);

// The same, and kInvalidArgument when the file is another tokenizer's.
Result<NgramCache> load_ngrams(const std::string& path, const TokenizerId& tokenizer);

// Counts `text`, all n-grams of it, into the file, which is made where it is missing, keeps to
// `most_bytes` (draft/ngram/ngram_limit.h) and says how old its n-grams are. Whoever else adds to
// it meanwhile, another process too, waits (store/file_lock.h, on `path` with ".lock" behind it).
// Errors, with the file as it was: those of load_ngrams() and save_ngrams(); kResourceExhausted
// where others have the lock and none of them replaces the file within `patience`, which is more
// for a large file (FileLock::for_at_most()).
Status add_to_ngrams(std::span<const Token> text, const TokenizerId& tokenizer,
                     const std::string& path, std::uint64_t most_bytes,
                     std::chrono::milliseconds patience = kLockPatience);

// All of `paths`, at least one, added up. Errors: load_ngrams()'s; kInvalidArgument for files of
// different tokenizers.
Result<NgramFile> merge_ngrams(const std::vector<std::string>& paths);

// The places of a cache's n-grams by rising n-gram. [cache.size()]
std::vector<std::uint32_t> sorted_ngrams(const NgramCache& cache);

}  // namespace outrider
