#include "store/store_writer.h"

#include <algorithm>
#include <cstring>

#include "store/atomic_file.h"
#include "store/crc32c.h"

namespace outrider {
namespace {

template <typename T>
std::span<const std::byte> bytes_of(const T& value) {
  return std::as_bytes(std::span<const T, 1>(&value, 1));
}

std::uint64_t aligned(std::uint64_t offset) {
  return (offset + kStoreAlignment - 1) / kStoreAlignment * kStoreAlignment;
}

Status check_name(const std::string& name) {
  if (name.empty() || name.size() >= kStoreNameBytes || name.find('\0') != std::string::npos) {
    return invalid_argument("a store file's names have 1 to " +
                            std::to_string(kStoreNameBytes - 1) + " bytes, not '" + name + "'");
  }
  return Status();
}

Status check_contents(const StoreContents& contents) {
  OUTRIDER_RETURN_IF_ERROR(check_name(contents.kind));
  if (contents.sections.size() > kStoreMaxSections) {
    return invalid_argument("a store file has at most " + std::to_string(kStoreMaxSections) +
                            " sections");
  }
  for (std::size_t i = 0; i < contents.sections.size(); ++i) {
    const SectionData& section = contents.sections[i];
    OUTRIDER_RETURN_IF_ERROR(check_name(section.name));
    for (std::size_t k = 0; k < i; ++k) {
      if (contents.sections[k].name == section.name) {
        return invalid_argument("a store file cannot hold two sections '" + section.name + "'");
      }
    }
    if (section.element_bytes == 0 || section.element_bytes > kStoreAlignment ||
        section.bytes.size() % section.element_bytes != 0) {
      return invalid_argument("section '" + section.name + "' does not hold whole elements");
    }
  }
  return Status();
}

// Writes on, and keeps a checksum of each block of what lies behind the header.
class BlockWriter {
 public:
  explicit BlockWriter(AtomicFile& file) : file_(file) {}

  Status write(std::span<const std::byte> bytes) {
    OUTRIDER_RETURN_IF_ERROR(file_.write(bytes));
    offset_ += bytes.size();
    while (!bytes.empty()) {
      const std::size_t n = std::min(bytes.size(), kStoreBlockBytes - in_block_);
      crc_ = crc32c(bytes.first(n), crc_);
      in_block_ += n;
      bytes = bytes.subspan(n);
      if (in_block_ == kStoreBlockBytes) end_block();
    }
    return Status();
  }

  Status pad_to(std::uint64_t offset) {
    constexpr std::array<std::byte, kStoreAlignment> kZeros{};
    return write(std::span(kZeros).first(static_cast<std::size_t>(offset - offset_)));
  }

  std::vector<std::uint32_t> take_checksums() {
    if (in_block_ > 0) end_block();
    return std::move(checksums_);
  }

 private:
  void end_block() {
    checksums_.push_back(crc_);
    crc_ = 0;
    in_block_ = 0;
  }

  AtomicFile& file_;
  std::uint64_t offset_ = sizeof(FileHeader);
  std::size_t in_block_ = 0;
  std::uint32_t crc_ = 0;
  std::vector<std::uint32_t> checksums_;
};

std::vector<SectionEntry> place_sections(const StoreContents& contents, std::uint64_t& end) {
  std::vector<SectionEntry> entries;
  end = sizeof(FileHeader);
  for (const SectionData& section : contents.sections) {
    SectionEntry entry{};
    std::memcpy(entry.name, section.name.data(), section.name.size());
    entry.offset = aligned(end);
    entry.element_bytes = section.element_bytes;
    entry.count = section.bytes.size() / section.element_bytes;
    end = entry.offset + section.bytes.size();
    entries.push_back(entry);
  }
  end = aligned(end);
  return entries;
}

FileHeader make_header(const StoreContents& contents, std::uint64_t index_offset) {
  FileHeader header{};
  std::memcpy(header.magic, kStoreMagic, sizeof(kStoreMagic));
  header.byte_order = kStoreByteOrder;
  header.version = kStoreVersion;
  std::memcpy(header.kind, contents.kind.data(), contents.kind.size());
  header.tokenizer_hash = contents.tokenizer.hash;
  header.n_vocab = static_cast<std::uint32_t>(contents.tokenizer.n_vocab);
  header.n_sections = static_cast<std::uint32_t>(contents.sections.size());
  header.index_offset = index_offset;
  const std::uint64_t n_blocks =
      (index_offset - sizeof(FileHeader) + kStoreBlockBytes - 1) / kStoreBlockBytes;
  header.file_bytes = index_offset + contents.sections.size() * sizeof(SectionEntry) +
                      n_blocks * sizeof(std::uint32_t) + sizeof(FileFooter);
  std::copy(contents.params.begin(), contents.params.end(), header.params);
  header.block_bytes = static_cast<std::uint32_t>(kStoreBlockBytes);
  header.crc = crc32c(bytes_of(header).first(offsetof(FileHeader, crc)));
  return header;
}

}  // namespace

Status save_store(const std::string& path, const StoreContents& contents, FileOps& ops) {
  OUTRIDER_RETURN_IF_ERROR(check_contents(contents));
  std::uint64_t index_offset = 0;
  const std::vector<SectionEntry> entries = place_sections(contents, index_offset);
  const FileHeader header = make_header(contents, index_offset);

  Result<AtomicFile> file = AtomicFile::create(path, ops);
  if (!file.ok()) return file.status();
  OUTRIDER_RETURN_IF_ERROR(file->write(bytes_of(header)));
  BlockWriter blocks(*file);
  for (std::size_t i = 0; i < entries.size(); ++i) {
    OUTRIDER_RETURN_IF_ERROR(blocks.pad_to(entries[i].offset));
    OUTRIDER_RETURN_IF_ERROR(blocks.write(contents.sections[i].bytes));
  }
  OUTRIDER_RETURN_IF_ERROR(blocks.pad_to(index_offset));
  const std::vector<std::uint32_t> checksums = blocks.take_checksums();

  const std::span<const std::byte> entry_bytes = std::as_bytes(std::span(entries));
  const std::span<const std::byte> checksum_bytes = std::as_bytes(std::span(checksums));
  OUTRIDER_RETURN_IF_ERROR(file->write(entry_bytes));
  OUTRIDER_RETURN_IF_ERROR(file->write(checksum_bytes));
  FileFooter footer{};
  footer.index_crc = crc32c(checksum_bytes, crc32c(entry_bytes));
  footer.header_crc = header.crc;
  footer.file_bytes = header.file_bytes;
  std::memcpy(footer.end_magic, kStoreEndMagic, sizeof(kStoreEndMagic));
  OUTRIDER_RETURN_IF_ERROR(file->write(bytes_of(footer)));
  return file->commit();
}

Status save_store(const std::string& path, const StoreContents& contents) {
  FileOps ops;
  return save_store(path, contents, ops);
}

}  // namespace outrider
