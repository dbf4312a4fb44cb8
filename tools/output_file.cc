#include "tools/output_file.h"

#include <cstdint>
#include <filesystem>
#include <system_error>
#include <utility>

#include "store/atomic_file.h"
#include "store/store_file.h"

namespace outrider::tools {

namespace fs = std::filesystem;

std::function<Status(const std::string& path)> is_store(std::string kind) {
  return [kind = std::move(kind)](const std::string& path) {
    return StoreFile::open(path, kind).status();
  };
}

Status check_not_read(const OutputFile& output) {
  std::error_code error;
  for (const std::string& file : output.reads) {
    if (!fs::equivalent(output.path, file, error)) continue;
    return invalid_argument(output.option + " is '" + file +
                            "' itself, which this command reads; give another name");
  }
  return Status();
}

Status check_output_file(const OutputFile& output) {
  std::error_code error;
  OUTRIDER_RETURN_IF_ERROR(check_not_read(output));
  OUTRIDER_RETURN_IF_ERROR(check_writable(output.path).with_context(output.option));
  const std::uintmax_t bytes = fs::file_size(output.path, error);
  if (error || bytes == 0 || !output.check_old) return Status();  // mktemp makes empty ones
  const Status old = output.check_old(output.path);
  if (old.code() != StatusCode::kInvalidArgument) return Status();
  return invalid_argument(output.option + " would replace a file of another kind: " +
                          old.message() + "; remove it first, or give another name");
}

}  // namespace outrider::tools
