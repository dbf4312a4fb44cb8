// MappedFile: a file's bytes, read-only, fetched by the system when they are touched.
#pragma once

#include <cstddef>
#include <span>
#include <string>

#include "base/status.h"

namespace outrider {

// Immutable; any thread. Movable; bytes() stays where it is.
class MappedFile {
 public:
  // Errors name the file: kNotFound, kInvalidArgument (no regular file), kInternal.
  static Result<MappedFile> open(const std::string& path);

  MappedFile(MappedFile&& other) noexcept;
  MappedFile& operator=(MappedFile&&) = delete;
  ~MappedFile();

  // The file that was opened, also after another one got its name. Whoever cuts that very file
  // short kills its readers (SIGBUS); saving by AtomicFile never does.
  std::span<const std::byte> bytes() const { return bytes_; }

 private:
  explicit MappedFile(std::span<const std::byte> bytes) : bytes_(bytes) {}

  std::span<const std::byte> bytes_;
};

}  // namespace outrider
