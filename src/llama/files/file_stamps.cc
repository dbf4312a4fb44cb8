#include "llama/files/file_stamps.h"

#include <chrono>
#include <filesystem>
#include <system_error>

#include "llama/files/gguf_header.h"

namespace outrider::llama {

std::string file_stamps(const std::string& path, const std::vector<std::string>& adapters) {
  Result<std::vector<std::string>> files = files_of_model(path);
  if (!files.ok()) return "";
  files->insert(files->end(), adapters.begin(), adapters.end());
  std::string stamps;
  for (const std::string& file : *files) {
    std::error_code error;
    const std::uintmax_t bytes = std::filesystem::file_size(file, error);
    if (error) return "";
    const std::filesystem::file_time_type changed = std::filesystem::last_write_time(file, error);
    if (error) return "";
    const auto ticks =
        std::chrono::duration_cast<std::chrono::nanoseconds>(changed.time_since_epoch());
    stamps += std::to_string(bytes) + ' ' + std::to_string(ticks.count()) + ';';
  }
  return stamps;
}

}  // namespace outrider::llama
