#include "llama/workers/tensor_cache.h"

#include <cinttypes>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <optional>
#include <string_view>
#include <system_error>
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

}  // namespace

Result<std::int64_t> remove_damaged_tensors(const std::string& folder) {
  std::int64_t removed = 0;
  std::error_code error;
  for (fs::directory_iterator at(folder, error), end; !error && at != end; at.increment(error)) {
    const std::string name = at->path().filename().string();
    std::error_code unknown;  // a link to nothing is no tensor
    if (!is_hash(name) || !at->is_regular_file(unknown)) continue;
    const std::optional<std::string> hash = name_by_hash(at->path());
    if (!hash) return invalid_argument("cannot read the tensor '" + at->path().string() + "'");
    if (*hash == name) continue;
    if (fs::remove(at->path(), error)) ++removed;
    if (error) break;
  }
  if (error) {
    return invalid_argument("cannot look through the folder '" + folder + "': " + error.message());
  }
  return removed;
}

}  // namespace outrider::llama
