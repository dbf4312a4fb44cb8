#include "llama/workers/tensor_cache.h"

#include <algorithm>
#include <cinttypes>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <functional>
#include <optional>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "base/fnv.h"

namespace outrider::llama {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kPiece = std::size_t{1} << 20;

// As ggml names the file: by all its bytes. Nothing: it cannot be read.
std::optional<std::string> name_by_hash(const fs::path& file) {
  std::ifstream in(file, std::ios::binary);
  std::vector<char> piece(kPiece);
  Fnv1a hash;
  while (in) {
    in.read(piece.data(), static_cast<std::streamsize>(piece.size()));
    hash.add(std::string_view(piece.data(), static_cast<std::size_t>(in.gcount())));
  }
  if (!in.eof()) return std::nullopt;
  char name[17];
  std::snprintf(name, sizeof name, "%016" PRIx64, hash.value());
  return name;
}

bool is_hash(const std::string& name) {
  return name.size() == 16 && name.find_first_not_of("0123456789abcdef") == std::string::npos;
}

// In any order.
Result<std::vector<fs::path>> tensors_of(const std::string& folder) {
  std::vector<fs::path> tensors;
  std::error_code error;
  for (fs::directory_iterator at(folder, error), end; !error && at != end; at.increment(error)) {
    std::error_code unknown;  // a link to nothing is no tensor
    if (is_hash(at->path().filename().string()) && at->is_regular_file(unknown)) {
      tensors.push_back(at->path());
    }
  }
  if (error) {
    return invalid_argument("cannot look through the folder '" + folder + "': " + error.message());
  }
  return tensors;
}

// One that another worker has removed meanwhile is no error.
Status remove_tensor(const fs::path& file, std::int64_t* removed) {
  std::error_code error;
  if (fs::remove(file, error)) ++*removed;
  if (!error) return Status();
  return invalid_argument("cannot remove the tensor '" + file.string() + "': " + error.message());
}

}  // namespace

Result<std::int64_t> remove_damaged_tensors(const std::string& folder) {
  const Result<std::vector<fs::path>> tensors = tensors_of(folder);
  if (!tensors.ok()) return tensors.status();
  std::int64_t removed = 0;
  for (const fs::path& file : *tensors) {
    const std::optional<std::string> hash = name_by_hash(file);
    if (!hash) return invalid_argument("cannot read the tensor '" + file.string() + "'");
    if (*hash == file.filename().string()) continue;
    OUTRIDER_RETURN_IF_ERROR(remove_tensor(file, &removed));
  }
  return removed;
}

Result<std::int64_t> remove_oldest_tensors(const std::string& folder, std::uint64_t most) {
  const Result<std::vector<fs::path>> tensors = tensors_of(folder);
  if (!tensors.ok()) return tensors.status();
  std::vector<std::pair<fs::file_time_type, fs::path>> oldest_last;
  for (const fs::path& file : *tensors) {
    std::error_code gone;
    const fs::file_time_type written = fs::last_write_time(file, gone);
    if (!gone) oldest_last.emplace_back(written, file);
  }
  std::sort(oldest_last.begin(), oldest_last.end(), std::greater<>());
  std::uint64_t kept = 0;
  std::int64_t removed = 0;
  bool full = false;
  for (const auto& [written, file] : oldest_last) {
    std::error_code gone;
    const std::uintmax_t bytes = fs::file_size(file, gone);
    if (gone) continue;
    // Behind the first that is too much all go: a small one would outlive those that came after it.
    full = full || bytes > most - kept;
    if (full) {
      OUTRIDER_RETURN_IF_ERROR(remove_tensor(file, &removed));
    } else {
      kept += bytes;
    }
  }
  return removed;
}

}  // namespace outrider::llama
