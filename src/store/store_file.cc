#include "store/store_file.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "store/crc32c.h"

namespace outrider {
namespace {

template <typename T>
T read_at(std::span<const std::byte> bytes, std::size_t offset) {
  T value;
  std::memcpy(&value, bytes.data() + offset, sizeof(T));
  return value;
}

// A name padded with zeros, at least one of them.
bool is_name(const char (&name)[kStoreNameBytes]) {
  const char* end = std::find(name, name + kStoreNameBytes, '\0');
  return end != name && end != name + kStoreNameBytes &&
         std::all_of(end, name + kStoreNameBytes, [](char c) { return c == '\0'; });
}

std::string_view name_of(const char (&name)[kStoreNameBytes]) { return std::string_view(name); }

}  // namespace

StoreFile::StoreFile(std::string path, MappedFile file)
    : path_(std::move(path)), file_(std::move(file)) {}

Result<std::unique_ptr<StoreFile>> StoreFile::open(const std::string& path, std::string_view kind) {
  Result<MappedFile> mapped = MappedFile::open(path);
  if (!mapped.ok()) return mapped.status();
  std::unique_ptr<StoreFile> file(new StoreFile(path, *std::move(mapped)));
  OUTRIDER_RETURN_IF_ERROR(file->read_header(kind));
  OUTRIDER_RETURN_IF_ERROR(file->read_footer());
  OUTRIDER_RETURN_IF_ERROR(file->read_index());
  return file;
}

Status StoreFile::damaged(std::string_view what) const {
  return data_loss("'" + path_ + "' is damaged: " + std::string(what) +
                   "; nothing of it is used. Build it again");
}

Status StoreFile::no_section(std::string_view name) const {
  return damaged("it has no section '" + std::string(name) + "' as this version writes it");
}

Status StoreFile::read_header(std::string_view kind) {
  const std::span<const std::byte> bytes = file_.bytes();
  if (bytes.size() < sizeof(kStoreMagic) ||
      std::memcmp(bytes.data(), kStoreMagic, sizeof(kStoreMagic)) != 0) {
    return invalid_argument("'" + path_ + "' is no store file of Outrider's");
  }
  if (bytes.size() < sizeof(FileHeader) + sizeof(FileFooter)) return damaged("it is cut short");
  header_ = read_at<FileHeader>(bytes, 0);
  if (header_.byte_order != kStoreByteOrder) {
    if (header_.byte_order != 0x04030201) return damaged("its header is not what was saved");
    return unsupported("'" + path_ +
                       "' was written on a machine with the other byte order; build it here");
  }
  // The checksum is at the same place in every version.
  if (crc32c(bytes.first(offsetof(FileHeader, crc))) != header_.crc) {
    return damaged("its header is not what was saved");
  }
  if (header_.version != kStoreVersion) {
    return unsupported("'" + path_ + "' has version " + std::to_string(header_.version) +
                       " of the format, this program reads " + std::to_string(kStoreVersion) +
                       "; build it again");
  }
  if (header_.file_bytes != bytes.size()) {
    return damaged("it has " + std::to_string(bytes.size()) + " bytes, not " +
                   std::to_string(header_.file_bytes));
  }
  if (!is_name(header_.kind)) return damaged("its kind has no name");
  if (name_of(header_.kind) != kind) {
    return invalid_argument("'" + path_ + "' is a store of kind '" +
                            std::string(name_of(header_.kind)) + "', not '" + std::string(kind) +
                            "'");
  }
  if (header_.n_vocab > 0x7FFFFFFFu || header_.block_bytes != kStoreBlockBytes ||
      header_.reserved[0] != 0 || header_.reserved[1] != 0) {
    return damaged("its header has values that cannot be");
  }
  tokenizer_ = {.hash = header_.tokenizer_hash,
                .n_vocab = static_cast<std::int32_t>(header_.n_vocab)};
  return Status();
}

Status StoreFile::read_footer() {
  const std::span<const std::byte> bytes = file_.bytes();
  const FileFooter footer = read_at<FileFooter>(bytes, bytes.size() - sizeof(FileFooter));
  if (std::memcmp(footer.end_magic, kStoreEndMagic, sizeof(kStoreEndMagic)) != 0 ||
      footer.file_bytes != bytes.size() || footer.header_crc != header_.crc) {
    return damaged("its end is not what was saved");
  }
  const std::size_t end = bytes.size() - sizeof(FileFooter);
  if (header_.n_sections > kStoreMaxSections || header_.index_offset < sizeof(FileHeader) ||
      header_.index_offset > end || header_.index_offset % kStoreAlignment != 0) {
    return damaged("its section table lies outside");
  }
  const std::size_t index = static_cast<std::size_t>(header_.index_offset);
  n_blocks_ = (index - sizeof(FileHeader) + kStoreBlockBytes - 1) / kStoreBlockBytes;
  const std::size_t wanted =
      header_.n_sections * sizeof(SectionEntry) + n_blocks_ * sizeof(std::uint32_t);
  if (end - index != wanted) return damaged("its section table has the wrong size");
  if (crc32c(bytes.subspan(index, wanted)) != footer.index_crc) {
    return damaged("its section table is not what was saved");
  }
  return Status();
}

Status StoreFile::check_entry(const SectionEntry& entry, std::uint64_t earliest) const {
  const std::uint64_t size = entry.element_bytes;
  if (!is_name(entry.name) || entry.reserved != 0 || size == 0 || size > kStoreAlignment) {
    return damaged("its section table has values that cannot be");
  }
  if (entry.offset < earliest || entry.offset > header_.index_offset ||
      entry.offset % kStoreAlignment != 0 ||
      entry.count > (header_.index_offset - entry.offset) / size) {
    return damaged("section '" + std::string(name_of(entry.name)) + "' lies outside");
  }
  return Status();
}

Status StoreFile::read_index() {
  const std::span<const std::byte> bytes = file_.bytes();
  std::size_t at = static_cast<std::size_t>(header_.index_offset);
  std::uint64_t earliest = sizeof(FileHeader);
  for (std::uint32_t i = 0; i < header_.n_sections; ++i, at += sizeof(SectionEntry)) {
    const SectionEntry entry = read_at<SectionEntry>(bytes, at);
    OUTRIDER_RETURN_IF_ERROR(check_entry(entry, earliest));
    if (find(name_of(entry.name)) != nullptr) return damaged("two sections have one name");
    earliest = entry.offset + entry.count * entry.element_bytes;
    entries_.push_back(entry);
  }
  checksums_ = bytes.data() + at;
  states_ = std::make_unique<std::atomic<std::uint8_t>[]>(n_blocks_);
  return Status();
}

const SectionEntry* StoreFile::find(std::string_view name) const {
  for (const SectionEntry& entry : entries_) {
    if (name_of(entry.name) == name) return &entry;
  }
  return nullptr;
}

Status StoreFile::check_tokenizer(const TokenizerId& tokenizer) const {
  if (tokenizer == tokenizer_) return Status();
  return invalid_argument("'" + path_ + "' was built for another tokenizer (" +
                          describe(tokenizer_) + "; this model's: " + describe(tokenizer) +
                          "); build it with this model's vocabulary");
}

std::span<const std::byte> StoreFile::block_bytes(std::size_t block) const {
  const std::size_t begin = sizeof(FileHeader) + block * kStoreBlockBytes;
  const std::size_t end = static_cast<std::size_t>(header_.index_offset);
  return file_.bytes().subspan(begin, std::min(kStoreBlockBytes, end - begin));
}

bool StoreFile::check_block(std::size_t block) const {
  std::uint32_t saved = 0;
  std::memcpy(&saved, checksums_ + block * sizeof(saved), sizeof(saved));
  if (crc32c(block_bytes(block)) == saved) {
    states_[block].store(kGood, std::memory_order_relaxed);
    return true;
  }
  std::int64_t none = -1;
  damaged_block_.compare_exchange_strong(none, static_cast<std::int64_t>(block));
  return false;
}

Status StoreFile::verify() const {
  for (std::size_t block = 0; block < n_blocks_; ++block) {
    if (!check_block(block)) break;
  }
  return damage();
}

Status StoreFile::damage() const {
  const std::int64_t block = damaged_block_.load();
  if (block < 0) return Status();
  const std::size_t offset =
      sizeof(FileHeader) + static_cast<std::size_t>(block) * kStoreBlockBytes;
  return damaged("the 4 KiB from byte " + std::to_string(offset) + " on are not what was saved");
}

}  // namespace outrider
