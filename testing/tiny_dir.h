// A folder for the files of one test.
#pragma once

#include <string>

namespace outrider::testing {

// Makes a folder of its own under the system's temporary one and removes it, with all that is in
// it, when destroyed. Aborts when it cannot be made: a test cannot go on without.
class TempDir {
 public:
  TempDir();
  ~TempDir();
  TempDir(const TempDir&) = delete;
  TempDir& operator=(const TempDir&) = delete;

  const std::string& path() const { return path_; }
  // The path of `name` in the folder; the file need not exist.
  std::string file(const std::string& name) const { return path_ + "/" + name; }

  // Number of files and folders in it; to show that nothing was left behind.
  int n_entries() const;

 private:
  std::string path_;
};

// All bytes of a file; aborts when it cannot be read.
std::string read_bytes(const std::string& path);
// Replaces a file; aborts when it cannot be written.
void write_bytes(const std::string& path, const std::string& bytes);

}  // namespace outrider::testing
