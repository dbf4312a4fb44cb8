// DrafterFile: what a drafter without a model looks things up in, as a client names it and as it is
// once open.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "base/status.h"
#include "draft/suffix_store.h"
#include "store/tokenizer_id.h"

namespace outrider {

// The drafters that take files.
inline constexpr std::array<std::string_view, 1> kFileDrafters = {"suffix"};

struct DrafterFile {
  std::string drafter;  // one of kFileDrafters
  std::string path;

  bool operator==(const DrafterFile&) const = default;
};

// Immutable; any thread. What is set depends on the drafter.
struct OpenedDrafterFile {
  DrafterFile file;
  std::shared_ptr<const SuffixStore> suffix;

  std::uint64_t file_bytes() const;  // mapped; only what is touched is in memory
  Status damage() const;             // that was found so far, see StoreFile::damage()
};

// kInvalidArgument, naming "--drafter", for one that takes no files.
Status check_file_drafter(std::string_view drafter);

// Maps the file and checks that it is for `tokenizer`. Errors, each naming the file: those of
// check_file_drafter, SuffixStore::open and StoreFile::check_tokenizer.
Result<OpenedDrafterFile> open_drafter_file(const DrafterFile& file, const TokenizerId& tokenizer);

}  // namespace outrider
