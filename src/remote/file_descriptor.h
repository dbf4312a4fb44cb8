// FileDescriptor: owns one, closes it once. Every descriptor of this layer is closed on exec.
#pragma once

#include <unistd.h>

#include <utility>

namespace outrider {

class FileDescriptor {
 public:
  FileDescriptor() = default;
  explicit FileDescriptor(int number) : number_(number) {}
  ~FileDescriptor() { reset(); }
  FileDescriptor(FileDescriptor&& other) noexcept : number_(other.release()) {}
  FileDescriptor& operator=(FileDescriptor&& other) noexcept {
    if (this == &other) return *this;
    reset();
    number_ = other.release();
    return *this;
  }

  int get() const { return number_; }
  bool valid() const { return number_ >= 0; }
  int release() { return std::exchange(number_, -1); }
  void reset() {
    if (valid()) close(release());
  }

 private:
  int number_ = -1;
};

}  // namespace outrider
