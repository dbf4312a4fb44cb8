// FileLock: one at a time, of all processes and threads that lock the same path: for a file that is
// read, changed and replaced.
#pragma once

#include <chrono>
#include <functional>
#include <string>

#include "base/status.h"

namespace outrider {

// How long to wait for a file that others write, too, since the last of them has replaced it: who
// has the lock may be stopped (Ctrl-Z, a paused container), and whoever ends waits for this.
inline constexpr std::chrono::milliseconds kLockPatience{10'000};

class FileLock {
 public:
  // Between two attempts; false gives up. May sleep.
  using KeepWaiting = std::function<bool()>;

  // Waits until nobody else has it: `keep_waiting` is called as long as somebody has. When that
  // gives up, nothing is locked, and gave_up() says so. `path` is made where it is not there, and
  // stays: it is not the file that is replaced, but one beside it. Where it cannot be made or
  // locked, nothing is locked, either.
  explicit FileLock(const std::string& path,
                    const KeepWaiting& keep_waiting = for_at_most(kLockPatience, ""));
  ~FileLock();
  FileLock(const FileLock&) = delete;
  FileLock& operator=(const FileLock&) = delete;

  // True: somebody else still had it when `keep_waiting` gave up.
  bool gave_up() const { return gave_up_; }

  // As `keep_waiting`: sleeps between attempts, and gives up after `patience`. `replaced`: the file
  // that those who have the lock replace, or empty. Each time that it was replaced meanwhile, the
  // wait begins anew: however many are in front, none of them is stopped. A large one takes longer
  // to read and to write: each 8 MiB of it are a second more.
  static KeepWaiting for_at_most(std::chrono::milliseconds patience,
                                 const std::string& replaced = "");

 private:
  int file_ = -1;
  bool gave_up_ = false;
};

// The error where FileLock(`lock`) gave up, so that `path` cannot be written: kResourceExhausted.
Status locked_by_another(const std::string& path, const std::string& lock);

}  // namespace outrider
