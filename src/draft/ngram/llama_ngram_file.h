// llama.cpp's own files of n-gram caches (llama-lookup-create, -merge, llama-lookup's dynamic
// cache), read and written with checks.
//
// The format (common/ngram-cache.cpp, v0.5.0), in the byte order of the machine that wrote it, one
// record after the other until the file ends, in no order:
//     int32 tokens[4]    the n-gram, -1 behind it
//     int32 n            its followers
//     {int32 token; int32 count} [n]
// There is no magic, no length, no checksum and no word about the tokenizer. llama.cpp reads what
// it finds: a file cut within a record aborts the process, ids of 2^30 are taken, an n-gram's
// second record is dropped, and saving to a full disk exits with 0. Here each of these is an error
// that says where. What nobody can see is a file cut exactly between two records, and ids of
// another tokenizer that this one has, too: `outrider ngram import` says so.
//
// Tested by ngram_file_test.cc, against llama.cpp's own code by testing/llama_ngrams_test.cc, and
// against its programs by tests/peers_ngram_test.cc.
#pragma once

#include <cstdint>
#include <string>

#include "base/status.h"
#include "draft/ngram/ngram_cache.h"
#include "store/file_ops.h"

namespace outrider {

struct ImportedNgrams {
  NgramCache cache;
  std::uint64_t n_saturated = 0;  // counts above kMaxNgramCount, which became it
};

// Errors name the file and the byte: kNotFound; kDataLoss (empty, cut, ids outside 0 <= id <
// n_vocab, an n-gram or a follower twice, counts below 1); kInternal.
Result<ImportedNgrams> import_llama_ngrams(const std::string& path, std::int32_t n_vocab);

// Writes `cache` for llama.cpp, atomically; on error the old file stays. n-grams rise, an n-gram's
// best follower is its last. Errors: those of AtomicFile.
Status export_llama_ngrams(const NgramCache& cache, const std::string& path, FileOps& ops);
Status export_llama_ngrams(const NgramCache& cache, const std::string& path);

}  // namespace outrider
