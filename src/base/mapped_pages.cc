#include "base/mapped_pages.h"

#if defined(__unix__) || defined(__APPLE__)
#include <sys/mman.h>
#endif
#include <cerrno>
#if defined(__linux__)
#include <unistd.h>

#include <cinttypes>
#include <cstdio>
#include <fstream>
#include <string>
#endif

namespace outrider {

#if defined(__linux__)

MappedPages mapped_pages_at(const void* data) {
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);) {
    MappedPages pages;
    char shared = '-';
    std::uint64_t inode = 0;
    // Begin-end, permissions, offset, device, inode, path.
    if (std::sscanf(line.c_str(), "%" SCNxPTR "-%" SCNxPTR " %*c%*c%*c%c %*s %*s %" SCNu64,
                    &pages.begin, &pages.end, &shared, &inode) == 4 &&
        pages.holds(data, 1)) {
      pages.of_file = shared == 's' && inode != 0;
      return pages;
    }
  }
  return {};
}

void give_back_pages(const MappedPages& pages, const void* data, std::size_t size) {
  if (!pages.of_file || !pages.holds(data, size)) return;
  const auto page = static_cast<std::uintptr_t>(sysconf(_SC_PAGESIZE));
  const auto at = reinterpret_cast<std::uintptr_t>(data);
  const std::uintptr_t begin = (at + page - 1) / page * page;
  const std::uintptr_t end = (at + size) / page * page;
  if (begin < end) (void)madvise(reinterpret_cast<void*>(begin), end - begin, MADV_DONTNEED);
}

#else

MappedPages mapped_pages_at(const void* /*data*/) { return {}; }

void give_back_pages(const MappedPages& /*pages*/, const void* /*data*/, std::size_t /*size*/) {}

#endif

int lock_pages(void* data, std::size_t size) {
#if defined(__unix__) || defined(__APPLE__)
  return mlock(data, size) == 0 ? 0 : errno;
#else
  (void)data;
  (void)size;
  return ENOSYS;
#endif
}

}  // namespace outrider
