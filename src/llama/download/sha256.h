// The hash by which hubs name large files.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "base/status.h"

namespace outrider::llama {

// Of a file's bytes, 64 hexadecimal digits; nothing in a build without OpenSSL. About a second for
// 1 to 2 GB that are in memory. `progress`, asked every few MB, gets the bytes read; false ends it.
// Errors: kInternal (cannot be read), kCancelled.
Result<std::optional<std::string>> sha256_of(const std::string& path,
                                             const std::function<bool(std::uint64_t)>& progress);

}  // namespace outrider::llama
