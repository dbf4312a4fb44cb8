// Files that save work and may be lost: what was measured, compared and learned. One for each key.
#pragma once

#include <filesystem>
#include <string_view>

#include "base/status.h"
#include "store/file_ops.h"

namespace outrider {

// Files that a folder keeps; the largest has a few thousand bytes.
inline constexpr int kMostCacheFiles = 1'000;

// Writes `file` as write_whole_file does, and makes its folder. A new file beyond kMostCacheFiles
// with its extension takes the place of the one that was written longest ago, so that settings, new
// builds and models that are gone do not fill the folder. Errors: those of write_whole_file; what
// cannot be removed stays.
Status write_cache_file(const std::filesystem::path& file, std::string_view contents);
Status write_cache_file(const std::filesystem::path& file, std::string_view contents, FileOps& ops);

// Makes the file's folder, and sees whether a file can be written there. Errors: those of
// check_writable().
Status check_cache_file(const std::filesystem::path& file);

}  // namespace outrider
