// What a command has while it works: Ctrl-C as a request to end, a progress bar, and llama.cpp's
// own lines above it.
#pragma once

#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include <CLI/CLI.hpp>

#include "base/log.h"
#include "base/watcher.h"
#include "model/model_options.h"
#include "tools/signals.h"

namespace outrider::tools {

struct OutputArguments {
  bool json = false;
  std::string log_level = "off";
  int verbose = 0;  // how many -v
};

// Adds --json, --log-level and -v under "Output". `arguments` must outlive the parsing.
void add_output_options(CLI::App& app, OutputArguments& arguments);

// On stderr, only when that is a terminal, and drawn with nothing but carriage returns and spaces:
// there are no colours or other escape sequences for NO_COLOR to forbid. Any thread.
// What a bar shows, on one line of `columns` (0: unknown): where it is short, the title is cut, and
// where that leaves too little of it, there is no bar but the percents. A line that wraps could not
// be drawn over.
std::string progress_line(std::string_view title, double fraction, std::size_t columns);

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

struct Terminal {
  // Before any thread is started, like SignalWatch. Without `output`, llama.cpp's lines are lost.
  explicit Terminal(const OutputArguments& output = {}, const std::vector<int>& signals_too = {});

  SignalWatch signals;
  ProgressBar progress;
  LogSink log;  // llama.cpp's lines that are asked for, above the bar; empty: none are

  // For reading one file, and for an experiment; the terminal must outlive them.
  LoadHooks load_hooks(const std::string& title) {
    return {.progress = [this, title](double f) { progress.update(title, f); },
            .cancel = signals.flag(),
            .log = log};
  }
  Watcher watcher() {
    return {.progress = [this](const std::string& title, double f) { progress.update(title, f); },
            .interrupt = signals.flag()};
  }
};

}  // namespace outrider::tools
