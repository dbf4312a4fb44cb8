#include "tools/line_reader.h"

#include <array>

namespace outrider::tools {

// Reads more; false when there is nothing more to come.
bool LineReader::fill() {
  std::array<char, 65536> chunk;
  std::size_t n = 0;
  const InputBytes::Kind kind = bytes_.read(chunk, n);
  buffer_.append(chunk.data(), n);
  interrupted_ = kind == InputBytes::Kind::kInterrupted;
  ended_ = kind == InputBytes::Kind::kEnd;
  return kind == InputBytes::Kind::kBytes || kind == InputBytes::Kind::kPoked;
}

void LineReader::resume() {
  bytes_.resume();
  interrupted_ = false;
  buffer_.clear();
}

LineReader::Kind LineReader::next(std::string& line) {
  bool too_long = false;
  std::size_t searched = 0;
  for (;;) {
    const std::size_t newline = buffer_.find('\n', searched);
    if (newline != std::string::npos) {
      too_long = too_long || newline > max_bytes_;
      line = too_long ? std::string() : buffer_.substr(0, newline);
      buffer_.erase(0, newline + 1);
      return too_long ? Kind::kTooLong : Kind::kLine;
    }
    if (buffer_.size() > max_bytes_) {  // what belongs to it is passed over as it comes
      too_long = true;
      buffer_.clear();
    }
    searched = buffer_.size();
    if (!interrupted_ && !ended_ && fill()) continue;
    if (interrupted_) return Kind::kInterrupted;
    if (too_long) return Kind::kTooLong;
    if (buffer_.empty()) return Kind::kEnd;
    line.swap(buffer_);
    buffer_.clear();
    return Kind::kLine;
  }
}

}  // namespace outrider::tools
