// StoreFile: a store file open for reading (store/store_format.h), mapped, not read as a whole.
//
// What is guaranteed, whatever the file holds:
//  - open() checks the header, the footer, the section table and the table of checksums, in time
//    that grows with the file's 4 KiB blocks by 3 ns each (80 MB: 0.06 ms). A file that is cut,
//    longer, another kind's, another version's, another byte order's or another tokenizer's is
//    refused; nothing is loaded in part.
//  - A section's bytes may be used behind a touch() that returned true: then their blocks are those
//    that were saved. The first touch of a block reads it and sums it up, later ones cost a
//    comparison. verify() touches all.
//  - Damage found on touching is remembered and told by damage(): the user of the file stops using
//    it and says so.
// Checksums are no proof against a forged file: values are checked against their ranges by whoever
// reads them.
//
// Tested by store_file_test.cc: every truncation, every byte flipped.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "store/mapped_file.h"
#include "store/store_format.h"
#include "store/tokenizer_id.h"

namespace outrider {

// Immutable but for what it remembers of checked blocks; any thread. Neither copied nor moved:
// open() returns it on the heap.
class StoreFile {
 public:
  // Errors name the file and what is wrong: kNotFound, kInvalidArgument (no store file, or another
  // kind), kUnsupported (another version or byte order), kDataLoss (damaged), kInternal.
  static Result<std::unique_ptr<StoreFile>> open(const std::string& path, std::string_view kind);

  StoreFile(const StoreFile&) = delete;
  StoreFile& operator=(const StoreFile&) = delete;

  const std::string& path() const { return path_; }
  const TokenizerId& tokenizer() const { return tokenizer_; }
  std::uint64_t param(std::size_t i) const { return header_.params[i]; }
  std::size_t file_bytes() const { return file_.bytes().size(); }

  // kInvalidArgument, with both, unless the file is for `tokenizer`.
  Status check_tokenizer(const TokenizerId& tokenizer) const;

  // The section of this name. Its elements may be read only behind touch(). Valid as long as this.
  // Errors: kDataLoss when there is none with elements of this size.
  template <typename T>
  Result<std::span<const T>> section(std::string_view name) const {
    static_assert(alignof(T) <= kStoreAlignment);
    const SectionEntry* entry = find(name);
    if (entry == nullptr || entry->element_bytes != sizeof(T)) return no_section(name);
    return std::span(reinterpret_cast<const T*>(file_.bytes().data() + entry->offset),
                     static_cast<std::size_t>(entry->count));
  }

  // True when the blocks that hold `part`, a part of a section, are undamaged.
  template <typename T>
  bool touch(std::span<const T> part) const {
    if (part.empty()) return true;
    const std::size_t begin = static_cast<std::size_t>(
        reinterpret_cast<const std::byte*>(part.data()) - file_.bytes().data());
    const std::size_t first = block_of(begin);
    const std::size_t last = block_of(begin + part.size_bytes() - 1);
    for (std::size_t block = first; block <= last; ++block) {
      if (states_[block].load(std::memory_order_relaxed) != kGood && !check_block(block)) {
        return false;
      }
    }
    return true;
  }

  // Touches every block. kDataLoss for the first damaged one.
  Status verify() const;

  // kDataLoss when some touch() found damage so far; else ok.
  Status damage() const;

 private:
  static constexpr std::uint8_t kGood = 1;  // 0: not read yet

  StoreFile(std::string path, MappedFile file);
  Status read_header(std::string_view kind);
  Status read_footer();
  Status read_index();
  Status check_entry(const SectionEntry& entry, std::uint64_t earliest) const;
  Status damaged(std::string_view what) const;
  Status no_section(std::string_view name) const;
  const SectionEntry* find(std::string_view name) const;
  std::span<const std::byte> block_bytes(std::size_t block) const;
  bool check_block(std::size_t block) const;

  static std::size_t block_of(std::size_t offset) {
    return (offset - sizeof(FileHeader)) / kStoreBlockBytes;
  }

  std::string path_;
  MappedFile file_;
  FileHeader header_{};
  TokenizerId tokenizer_;
  std::vector<SectionEntry> entries_;
  const std::byte* checksums_ = nullptr;  // uint32 [n_blocks_], unaligned
  std::size_t n_blocks_ = 0;
  std::unique_ptr<std::atomic<std::uint8_t>[]> states_;  // [n_blocks_]
  mutable std::atomic<std::int64_t> damaged_block_{-1};  // the first that was found
};

}  // namespace outrider
