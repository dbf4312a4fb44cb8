// FaultyFileOps: FileOps that fail, write less than asked, or kill the process, on command.
#pragma once

#include <cstddef>
#include <limits>

#include "store/file_ops.h"

namespace outrider::testing {

class FaultyFileOps : public FileOps {
 public:
  static constexpr int kNever = std::numeric_limits<int>::max();

  // Set before use. Calls are counted from 0, over all methods but remove() and close().
  int fail_at = kNever;     // this call fails with `reason` ...
  int reason = 5;           // EIO
  bool stay_broken = true;  // ... and so do all later ones
  int kill_at = kNever;  // the process dies (SIGKILL) within this call, a write after a part of it
  std::size_t most_per_write = std::numeric_limits<std::size_t>::max();  // short writes
  bool fail_close = false;  // close() fails with `reason`, having closed

  int calls() const { return calls_; }  // so far

  int create(const std::string& path) override;
  long write(int file, std::span<const std::byte> bytes) override;
  int sync(int file) override;
  int close(int file) override;
  int rename(const std::string& from, const std::string& to) override;
  int sync_folder(const std::string& folder) override;

 private:
  bool fails();

  int calls_ = 0;
};

}  // namespace outrider::testing
