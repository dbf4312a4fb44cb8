#include "tools/whole_file.h"

#include <span>

#include "store/atomic_file.h"

namespace outrider::tools {

Status write_whole_file(const std::string& path, std::string_view contents) {
  FileOps ops;
  Result<AtomicFile> file = AtomicFile::create(path, ops);
  if (!file.ok()) return file.status();
  OUTRIDER_RETURN_IF_ERROR(file->write(std::as_bytes(std::span(contents))));
  return file->commit();
}

Status check_writable(const std::string& path) {
  FileOps ops;
  return AtomicFile::create(path, ops).status();
}

}  // namespace outrider::tools
