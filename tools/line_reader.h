// Lines from a file descriptor, which another thread can interrupt.
#pragma once

#include <cstddef>
#include <string>

#include "base/status.h"

namespace outrider::tools {

class LineReader {
 public:
  enum class Kind {
    kLine,         // without its newline; the last one needs none
    kTooLong,      // a line of more bytes than the limit, which was passed over
    kEnd,          // of the input, or it failed: see status()
    kInterrupted,  // from now on always
  };

  // `descriptor` must stay open. Errors at creation show as kEnd and status().
  LineReader(int descriptor, std::size_t max_bytes);
  ~LineReader();
  LineReader(const LineReader&) = delete;
  LineReader& operator=(const LineReader&) = delete;

  // Waits for the next line. One thread.
  Kind next(std::string& line);

  // Ends the waiting. Any thread.
  void interrupt();

  const Status& status() const { return status_; }

 private:
  bool fill();

  int descriptor_;
  std::size_t max_bytes_;
  int wake_[2] = {-1, -1};  // a pipe: reading end, writing end
  std::string buffer_;      // read and not yet given out
  bool interrupted_ = false;
  bool ended_ = false;
  Status status_;
};

}  // namespace outrider::tools
