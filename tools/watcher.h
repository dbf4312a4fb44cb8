// Who looks on when a command experiments: the progress bar, and whoever presses Ctrl-C.
#pragma once

#include <string>

#include "lab/harness.h"
#include "tools/progress.h"
#include "tools/signals.h"

namespace outrider::tools {

// Both must outlive the experiment.
inline lab::Watcher watcher(ProgressBar& bar, const SignalWatch& signals) {
  return {.progress = [&bar](const std::string& title, double f) { bar.update(title, f); },
          .interrupt = signals.flag()};
}

}  // namespace outrider::tools
