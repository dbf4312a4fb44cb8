// Pages of mapped files that are not needed any more.
#pragma once

#include <cstddef>
#include <cstdint>

namespace outrider {

// A mapping of this process. Empty: end is 0.
struct MappedPages {
  std::uintptr_t begin = 0;
  std::uintptr_t end = 0;
  bool of_file = false;  // shared with all who map the file; else what is written there is its own

  bool holds(const void* data, std::size_t size) const {
    const auto at = reinterpret_cast<std::uintptr_t>(data);
    return at >= begin && at < end && size <= end - at;
  }
};

// The mapping that `data` lies in, whatever it is of; empty where there is none, or the system does
// not tell. Reads a table of the system's: some 100 microseconds.
MappedPages mapped_pages_at(const void* data);

// Gives back the whole pages of [data, data + size) where `pages` are of a file and hold them all:
// they count no more as memory of the process, and what is read of them all the same comes from the
// file again. REQUIRES: `pages` is what mapped_pages_at() says; of a file, it has not been unmapped
// since.
void give_back_pages(const MappedPages& pages, const void* data, std::size_t size);

// Keeps [data, data + size) from being swapped out until it is unmapped. 0, or errno: most users
// may lock a few MiB only.
int lock_pages(void* data, std::size_t size);

}  // namespace outrider
