// DrafterFile: what a drafter without a model looks things up in, as a client names it and as it is
// once open.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "base/status.h"
#include "draft/ngram/ngram_lookup.h"
#include "draft/suffix/suffix_store.h"
#include "store/tokenizer_id.h"

namespace outrider {

// The drafters that take files.
inline constexpr std::array<std::string_view, 2> kFileDrafters = {"suffix", "ngram-cache"};

// As which of its caches ngram-cache uses a file (draft/ngram/ngram_lookup.h). Each tier holds one
// file; both are only read.
inline constexpr std::array<std::string_view, 2> kFileTiers = {"static", "dynamic"};

struct DrafterFile {
  std::string drafter;  // one of kFileDrafters
  std::string path;
  // One of kFileTiers, for ngram-cache; empty for suffix, and for "whichever" where a file is named
  // that is there already.
  std::string tier = {};

  bool operator==(const DrafterFile&) const = default;
};

// REQUIRES: one of kFileTiers
NgramTier ngram_tier(std::string_view tier);

// Immutable; any thread. What is set depends on the drafter.
struct OpenedDrafterFile {
  DrafterFile file;
  std::shared_ptr<const SuffixStore> suffix;  // mapped; only what is touched is in memory
  std::shared_ptr<const NgramCache> ngrams;   // read as a whole
  std::uint64_t file_bytes = 0;

  std::uint64_t memory_bytes() const;  // that it takes beside the mapping
  Status damage() const;               // that was found so far, see StoreFile::damage()
};

// kInvalidArgument, naming "--drafter", for one that takes no files, and naming "--tier" for a tier
// that the drafter does not have. An empty tier is fine.
Status check_file_drafter(const DrafterFile& file);

// Maps or reads the file and checks that it is for `tokenizer`. Errors, each naming the file: those
// of check_file_drafter, SuffixStore::open, load_ngrams and StoreFile::check_tokenizer.
Result<OpenedDrafterFile> open_drafter_file(const DrafterFile& file, const TokenizerId& tokenizer);

}  // namespace outrider
