// What the tests of n-gram files, and of what they would have given, share.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "tests/cli_process.h"

namespace outrider::testing {

// A text that repeats itself.
inline std::string story(int times) {
  std::string text;
  for (int i = 0; i < times; ++i) {
    text += "The lighthouse keeper climbed the stairs for the " + std::to_string(i % 7) +
            "th time and lit the lamp. Once upon a time the sea was calm.\n";
  }
  return text;
}

// outrider ngram ARGUMENTS
inline CliResult ngram(const CliFolder& folder, std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), "ngram");
  return run_cli(folder.call(std::move(arguments)));
}

}  // namespace outrider::testing
