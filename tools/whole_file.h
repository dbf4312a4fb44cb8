// Files that are there whole or not at all, for results of long work.
#pragma once

#include <string>
#include <string_view>

#include "base/status.h"

namespace outrider::tools {

// Replaces the contents of `path` in one step; on failure the old file stays. Errors name the file.
Status write_whole_file(const std::string& path, std::string_view contents);

// Whether that can begin, so that a mistake in a name is found before hours of work are. Changes
// nothing.
Status check_writable(const std::string& path);

}  // namespace outrider::tools
