// Bytes from a file descriptor, whose waiting another thread can interrupt.
#pragma once

#include <atomic>
#include <cstddef>
#include <span>

#include "base/status.h"

namespace outrider::tools {

class InputBytes {
 public:
  enum class Kind {
    kBytes,
    kEnd,          // of the input, or it failed: see status(); from now on always
    kInterrupted,  // until resume()
    kPoked,        // once for each poke(), or for several
  };

  // `descriptor` must stay open. Errors at creation show as kEnd and status().
  explicit InputBytes(int descriptor);
  ~InputBytes();
  InputBytes(const InputBytes&) = delete;
  InputBytes& operator=(const InputBytes&) = delete;

  // Waits for at least one byte; `n`: how many there are in `into` now. One thread.
  Kind read(std::span<char> into, std::size_t& n);

  // Ends the waiting, of the next read() too. Any thread.
  void interrupt();
  // Forgets the interruptions until now. The reading thread.
  void resume();
  // Has read() return once, so that its thread can look at something else. Any thread.
  void poke();

  const Status& status() const { return status_; }

 private:
  Kind fail(const char* what);
  void wake();

  int descriptor_;
  int wake_[2] = {-1, -1};  // a pipe: reading end, writing end
  std::atomic<bool> interrupted_{false};
  std::atomic<bool> poked_{false};
  bool ended_ = false;
  Status status_;
};

}  // namespace outrider::tools
