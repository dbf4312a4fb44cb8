// A progress bar on stderr, and the lines that want to stand above it.
#pragma once

#include <mutex>
#include <string>
#include <string_view>

namespace outrider::tools {

// Draws only when stderr is a terminal, and with nothing but carriage returns and spaces: there are
// no colours or other escape sequences for NO_COLOR to forbid. Any thread.
class ProgressBar {
 public:
  ProgressBar();
  ~ProgressBar();  // clears the line, so that what follows starts on a clean one
  ProgressBar(const ProgressBar&) = delete;
  ProgressBar& operator=(const ProgressBar&) = delete;

  // `fraction` in [0, 1]; what is outside is clamped. Redraws only when something visible changes.
  void update(std::string_view title, double fraction);

  // Takes the bar away; the next update() draws it again.
  void clear();

  // Writes a line of text to stderr, above the bar.
  void print(std::string_view line);

 private:
  void clear_locked();

  std::mutex mutex_;
  bool enabled_;
  std::string shown_;  // what stands on the line; empty: nothing
};

}  // namespace outrider::tools
