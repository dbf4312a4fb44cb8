#include "store/cache_folder.h"

#include <algorithm>
#include <cstddef>
#include <system_error>
#include <utility>
#include <vector>

#include "store/atomic_file.h"

namespace outrider {
namespace {

namespace fs = std::filesystem;

// Another process may remove files meanwhile: what is no longer there is passed over.
void remove_oldest_beyond(int n_most, const fs::path& written) {
  std::vector<std::pair<fs::file_time_type, fs::path>> others;
  std::error_code error;
  for (fs::directory_iterator at(written.parent_path(), error), end; !error && at != end;
       at.increment(error)) {
    if (at->path().extension() != written.extension() || at->path() == written) continue;
    std::error_code gone;
    const fs::file_time_type time = at->last_write_time(gone);
    if (!gone) others.emplace_back(time, at->path());
  }
  const auto n_kept = static_cast<std::size_t>(n_most - 1);
  if (others.size() <= n_kept) return;
  const auto first_kept = others.end() - static_cast<std::ptrdiff_t>(n_kept);
  std::nth_element(others.begin(), first_kept, others.end());
  for (auto it = others.begin(); it != first_kept; ++it) fs::remove(it->second, error);
}

}  // namespace

Status write_cache_file(const fs::path& file, std::string_view contents, FileOps& ops) {
  std::error_code error;
  fs::create_directories(file.parent_path(), error);  // the write tells what is wrong
  const bool is_new = !fs::exists(file, error);
  const Status written = write_whole_file(file.string(), contents, ops);
  if (written.ok() && is_new) remove_oldest_beyond(kMostCacheFiles, file);
  return written;
}

Status check_cache_file(const fs::path& file) {
  std::error_code error;
  fs::create_directories(file.parent_path(), error);  // the check tells what is wrong
  return check_writable(file.string());
}

Status write_cache_file(const fs::path& file, std::string_view contents) {
  FileOps ops;
  return write_cache_file(file, contents, ops);
}

}  // namespace outrider
