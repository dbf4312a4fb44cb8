// The options that say what is printed.
#pragma once

#include <string>

#include <CLI/CLI.hpp>

#include "base/log.h"
#include "tools/progress.h"

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

}  // namespace outrider::tools
