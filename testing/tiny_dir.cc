#include "testing/tiny_dir.h"

#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <system_error>

namespace outrider::testing {
namespace {

[[noreturn]] void die(const char* what, const std::string& path) {
  std::fprintf(stderr, "test support: cannot %s '%s'\n", what, path.c_str());
  std::abort();
}

}  // namespace

TempDir::TempDir() {
  path_ = (std::filesystem::temp_directory_path() / "outrider-test-XXXXXX").string();
  if (mkdtemp(path_.data()) == nullptr) die("make the folder", path_);
}

TempDir::~TempDir() {
  std::error_code ignored;  // a folder that stays behind is no reason to fail
  std::filesystem::remove_all(path_, ignored);
}

int TempDir::n_entries() const {
  int n = 0;
  for (const std::filesystem::directory_entry& entry : std::filesystem::directory_iterator(path_)) {
    static_cast<void>(entry);
    ++n;
  }
  return n;
}

std::string read_bytes(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) die("read", path);
  return std::string(std::istreambuf_iterator<char>(file), {});
}

void write_bytes(const std::string& path, const std::string& bytes) {
  std::ofstream file(path, std::ios::binary | std::ios::trunc);
  file.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  if (!file.flush()) die("write", path);
}

}  // namespace outrider::testing
