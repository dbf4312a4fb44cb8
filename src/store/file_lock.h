// FileLock: one at a time, of all processes and threads that lock the same path: for a file that is
// read, changed and replaced.
#pragma once

#include <string>

namespace outrider {

class FileLock {
 public:
  // Waits until nobody else has it. `path` is made where it is not there, and stays: it is not the
  // file that is replaced, but one beside it. Where it cannot be made or locked, nothing is locked.
  explicit FileLock(const std::string& path);
  ~FileLock();
  FileLock(const FileLock&) = delete;
  FileLock& operator=(const FileLock&) = delete;

 private:
  int file_ = -1;
};

}  // namespace outrider
