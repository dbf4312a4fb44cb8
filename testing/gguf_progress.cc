#include "testing/gguf_progress.h"

#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <utility>

namespace outrider::testing {

ProgressBar::ProgressBar(std::string title, bool quiet)
    : title_(std::move(title)), enabled_(!quiet && isatty(STDERR_FILENO) == 1) {}

ProgressBar::~ProgressBar() {
  if (percent_ >= 0) std::fprintf(stderr, "\r\033[K");
}

void ProgressBar::update(double fraction) {
  if (!enabled_) return;
  const int percent = static_cast<int>(std::lround(std::clamp(fraction, 0.0, 1.0) * 100.0));
  if (percent == percent_) return;
  percent_ = percent;
  constexpr int kWidth = 40;
  const int filled = percent * kWidth / 100;
  std::fprintf(stderr, "\r%s [%s%s] %3d %%", title_.c_str(),
               std::string(static_cast<std::size_t>(filled), '#').c_str(),
               std::string(static_cast<std::size_t>(kWidth - filled), ' ').c_str(), percent);
  std::fflush(stderr);
}

}  // namespace outrider::testing
