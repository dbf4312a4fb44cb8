// Pages of mapped files that are not needed any more.
#pragma once

#include <cstddef>
#include <cstdint>

namespace outrider {

// Where a file is mapped, shared with all who map it. Empty: end is 0.
struct MappedFile {
  std::uintptr_t begin = 0;
  std::uintptr_t end = 0;

  bool holds(const void* data, std::size_t size) const {
    const auto at = reinterpret_cast<std::uintptr_t>(data);
    return at >= begin && at < end && size <= end - at;
  }
};

// The mapping that `data` lies in; empty where it is memory of another kind, or the system does not
// tell. Reads a table of the system's: some 100 microseconds.
MappedFile mapped_file_at(const void* data);

// Gives back the whole pages of [data, data + size), which `file` holds: they count no more as
// memory of the process, and what is read of them all the same comes from the file again. REQUIRES:
// `file` is what mapped_file_at() says, and has not been unmapped since.
void give_back_pages(const MappedFile& file, const void* data, std::size_t size);

}  // namespace outrider
