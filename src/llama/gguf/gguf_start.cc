#include "llama/gguf/gguf_start.h"

#include <array>
#include <cctype>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string_view>
#include <system_error>

#include "base/escaped_bytes.h"

namespace outrider::gguf {
namespace {

constexpr std::string_view kMagic = "GGUF";

std::string printable(std::string_view bytes) {
  std::string text;
  for (const char c : bytes) {
    const unsigned char byte = static_cast<unsigned char>(c);
    if (std::isprint(byte) && byte != '"' && byte != '\\') {
      text += c;
    } else {
      append_escaped(text, byte);
    }
  }
  return text;
}

Status unreadable(const std::string& path, const std::string& what, const std::string& reason) {
  return invalid_argument("cannot " + what + " " + in_quotes(path) + ": " + reason);
}

Status check_is_file(const std::string& path) {
  if (path.empty()) return invalid_argument("no model file given; give a GGUF file");
  std::error_code error;
  const std::filesystem::file_status status = std::filesystem::status(path, error);
  if (!std::filesystem::exists(status)) {
    if (error && error != std::errc::no_such_file_or_directory &&
        error != std::errc::not_a_directory) {
      return unreadable(path, "look at", error.message());
    }
    return not_found("there is no file " + in_quotes(path) + "; give a GGUF model file");
  }
  if (std::filesystem::is_directory(status)) {
    return invalid_argument(in_quotes(path) + " is a folder; give the GGUF file in it");
  }
  if (!std::filesystem::is_regular_file(status)) {
    return invalid_argument(in_quotes(path) + " is not a regular file; give a GGUF model file");
  }
  return Status();
}

}  // namespace

std::string in_quotes(const std::string& path) { return "'" + path + "'"; }

Result<std::uint64_t> size_of_gguf(const std::string& path) {
  OUTRIDER_RETURN_IF_ERROR(check_is_file(path));
  std::error_code error;
  const std::uint64_t size = std::filesystem::file_size(path, error);
  if (error) return unreadable(path, "look at", error.message());
  std::ifstream file(path, std::ios::binary);
  if (!file) return unreadable(path, "read", std::strerror(errno));
  std::array<char, kMagic.size()> bytes{};
  file.read(bytes.data(), bytes.size());
  const std::string_view begin(bytes.data(), static_cast<std::size_t>(file.gcount()));
  if (size == 0) {
    return invalid_argument(in_quotes(path) + " is empty; give a llama.cpp model in GGUF format");
  }
  if (begin != kMagic) {
    return invalid_argument(in_quotes(path) + " is not a GGUF file (starts with \"" +
                            printable(begin) + "\"); give a llama.cpp model in GGUF format");
  }
  return size;
}

}  // namespace outrider::gguf
