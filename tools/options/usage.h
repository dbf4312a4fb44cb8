// Wrong usage (exit code 2): what the user typed, or put into the environment or a config file, is
// not what the command takes.
#pragma once

#include <string>
#include <vector>

#include <CLI/CLI.hpp>

namespace outrider::tools {

// Thrown while options are parsed and checked, caught in main only: CLI11 reports by exceptions,
// and this travels with its own.
class UsageError : public CLI::ParseError {
 public:
  // `message`: "--width is '0', but must be ..."; `hint`: one further line, may be empty.
  explicit UsageError(const std::string& message, std::string hint = "")
      : CLI::ParseError("UsageError", message, /*exit_code=*/2), hint_(std::move(hint)) {}

  const std::string& hint() const { return hint_; }

 private:
  std::string hint_;
};

// What `app` has no place for, at least one, becomes a UsageError that names it and the nearest
// option.
UsageError unexpected_arguments(const CLI::App& app, const std::vector<std::string>& arguments);

// One of CLI11's own errors in our words; a UsageError as it is.
UsageError translate(const CLI::ParseError& error);

}  // namespace outrider::tools
