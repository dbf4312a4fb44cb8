// Saving a store file (store/store_format.h).
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/status.h"
#include "store/file_ops.h"
#include "store/store_format.h"
#include "store/tokenizer_id.h"

namespace outrider {

// One array of the file. Borrows its bytes.
struct SectionData {
  std::string name;  // 1 to 15 bytes, unique in the file
  std::span<const std::byte> bytes;
  std::uint32_t element_bytes = 1;  // 1 to 64; divides bytes.size()
};

template <typename T>
SectionData make_section(std::string name, std::span<const T> elements) {
  return {.name = std::move(name),
          .bytes = std::as_bytes(elements),
          .element_bytes = static_cast<std::uint32_t>(sizeof(T))};
}

// Everything that a store file holds. Borrows the sections.
struct StoreContents {
  std::string kind;  // 1 to 15 bytes: "suffix", "ngram"
  TokenizerId tokenizer;
  std::array<std::uint64_t, kStoreParams> params{};
  std::vector<SectionData> sections;  // at most kStoreMaxSections
};

// Replaces `path` with a file that holds `contents`, atomically (store/atomic_file.h): on error the
// old file stays as it was. Errors: kInvalidArgument (names or sizes that the format cannot hold),
// and those of AtomicFile.
Status save_store(const std::string& path, const StoreContents& contents, FileOps& ops);
Status save_store(const std::string& path, const StoreContents& contents);

}  // namespace outrider
