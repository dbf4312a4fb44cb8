// What a command has while it works: Ctrl-C as a request to end, a progress bar, and llama.cpp's
// own lines above it.
#pragma once

#include <string>
#include <vector>

#include <CLI/CLI.hpp>

#include "base/log.h"
#include "base/watcher.h"
#include "model/model_options.h"
#include "tools/progress.h"
#include "tools/signals.h"

namespace outrider::tools {

struct OutputArguments {
  bool json = false;
  std::string log_level = "off";
  int verbose = 0;  // how many -v
};

// Adds --json, --log-level and -v under "Output". `arguments` must outlive the parsing.
void add_output_options(CLI::App& app, OutputArguments& arguments);

// Writes llama.cpp's lines that the level asks for to stderr, above `bar`, which must outlive it.
// Empty when none are asked for.
LogSink log_sink(const OutputArguments& arguments, ProgressBar& bar);

struct Terminal {
  // Before any thread is started, like SignalWatch. Without `output`, llama.cpp's lines are lost.
  explicit Terminal(const OutputArguments& output = {}, const std::vector<int>& signals_too = {})
      : signals(signals_too), log(log_sink(output, progress)) {}

  SignalWatch signals;
  ProgressBar progress;
  LogSink log;

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
