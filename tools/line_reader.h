// Lines from a file descriptor, which another thread can interrupt.
#pragma once

#include <cstddef>
#include <string>

#include "base/status.h"
#include "tools/input_bytes.h"

namespace outrider::tools {

class LineReader {
 public:
  enum class Kind {
    kLine,         // without its newline; the last one needs none
    kTooLong,      // a line of more bytes than the limit, which was passed over
    kEnd,          // of the input, or it failed: see status()
    kInterrupted,  // from now on always, until resume()
  };

  // `descriptor` must stay open. Errors at creation show as kEnd and status().
  LineReader(int descriptor, std::size_t max_bytes) : bytes_(descriptor), max_bytes_(max_bytes) {}

  // Waits for the next line. One thread.
  Kind next(std::string& line);

  // Ends the waiting. Any thread.
  void interrupt() { bytes_.interrupt(); }
  // Forgets the interruption, and what was read and not given out. The reading thread.
  void resume();

  const Status& status() const { return bytes_.status(); }

 private:
  bool fill();

  InputBytes bytes_;
  std::size_t max_bytes_;
  std::string buffer_;  // read and not yet given out
  bool interrupted_ = false;
  bool ended_ = false;
};

}  // namespace outrider::tools
