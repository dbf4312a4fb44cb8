// A progress bar on stderr for the command-line tools of this folder.
#pragma once

#include <string>

namespace outrider::testing {

// Draws only when stderr is a terminal and `quiet` is false; otherwise every call does nothing.
// Not thread-safe.
class ProgressBar {
 public:
  ProgressBar(std::string title, bool quiet);
  ~ProgressBar();  // clears the line, so that what follows starts on a clean one
  ProgressBar(const ProgressBar&) = delete;
  ProgressBar& operator=(const ProgressBar&) = delete;

  // `fraction` in [0, 1]; what is outside is clamped. Redraws only when the percentage changes.
  void update(double fraction);

 private:
  std::string title_;
  bool enabled_;
  int percent_ = -1;  // what the line shows, -1: nothing drawn yet
};

}  // namespace outrider::testing
