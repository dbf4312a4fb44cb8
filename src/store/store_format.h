// The layout of a store file: one container for everything that drafters keep in files.
//
//     FileHeader        128 bytes: what it is, for which tokenizer, how large; its own checksum
//     sections          arrays, each at a multiple of 64 bytes, zeros between them
//     SectionEntry[]    where each section lies
//     uint32 crc[]      one checksum for each 4 KiB block of what lies between header and entries
//     FileFooter        24 bytes: checksum of the entries and of crc[], the size once more
//
// All integers have the byte order of the machine that wrote the file, which it names; another
// machine's file is refused. Every byte of the file is under some checksum or compared with its
// only legal value. A version number is never used twice: a change of this layout, or of what a
// kind's sections mean, makes a new one.
#pragma once

#include <cstddef>
#include <cstdint>

namespace outrider {

inline constexpr char kStoreMagic[8] = {'O', 'R', 'S', 'T', 'O', 'R', 'E', '\n'};
inline constexpr char kStoreEndMagic[8] = {'\n', 'E', 'N', 'D', 'S', 'T', 'O', 'R'};
inline constexpr std::uint32_t kStoreByteOrder = 0x01020304;
inline constexpr std::uint32_t kStoreVersion = 1;
inline constexpr std::size_t kStoreBlockBytes = 4096;
inline constexpr std::size_t kStoreAlignment = 64;
inline constexpr std::size_t kStoreMaxSections = 64;
inline constexpr std::size_t kStoreNameBytes = 16;  // of a kind or section, a final zero included
inline constexpr std::size_t kStoreParams = 6;

struct FileHeader {
  char magic[8];
  std::uint32_t byte_order;
  std::uint32_t version;
  char kind[kStoreNameBytes];  // zeros behind the name
  std::uint64_t tokenizer_hash;
  std::uint32_t n_vocab;
  std::uint32_t n_sections;
  std::uint64_t index_offset;  // of the first SectionEntry; a multiple of kStoreAlignment
  std::uint64_t file_bytes;
  std::uint64_t params[kStoreParams];  // the kind's own: orders, counts, ...
  std::uint32_t block_bytes;
  std::uint32_t reserved[2];  // 0
  std::uint32_t crc;          // of all bytes before this one
};
static_assert(sizeof(FileHeader) == 128);

struct SectionEntry {
  char name[kStoreNameBytes];
  std::uint64_t offset;  // from the beginning of the file; sections rise and do not overlap
  std::uint64_t count;   // elements
  std::uint32_t element_bytes;
  std::uint32_t reserved;  // 0
};
static_assert(sizeof(SectionEntry) == 40);

struct FileFooter {
  std::uint32_t index_crc;   // of entries and block checksums
  std::uint32_t header_crc;  // FileHeader::crc once more: header and footer are of one save
  std::uint64_t file_bytes;
  char end_magic[8];
};
static_assert(sizeof(FileFooter) == 24);

}  // namespace outrider
