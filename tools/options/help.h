// How --help looks: one option a paragraph, wrapped, with its default at the end.
//
// Tested by usage_test.cc and tests/cli_help_test.cc.
#pragma once

#include <cstddef>
#include <string>

#include <CLI/CLI.hpp>

namespace outrider::tools {

// How wide help is on the terminal at `descriptor`: as wide as that is, no wider than the
// environment variable COLUMNS says nor than 100 columns, and 80 where neither is known. At least
// 40, so that descriptions have some room.
std::size_t help_width(int descriptor);

// `text` in paragraphs that are filled up to `width` columns, as the manual page has them: what
// begins with two spaces is an example, and stays as it is. Ends in a newline.
std::string filled(const std::string& text, std::size_t width);

// Arguments stand with the options of their group; --help and --config come last.
class HelpFormatter : public CLI::Formatter {
 public:
  explicit HelpFormatter(std::size_t width) : width_(width) {}

  std::string make_help(const CLI::App* app, std::string name,
                        CLI::AppFormatMode mode) const override;
  std::string make_option(const CLI::Option* option, bool is_positional) const override;
  std::string make_usage(const CLI::App* app, std::string name) const override;
  std::string make_subcommand(const CLI::App* command) const override;

 private:
  std::string row(const std::string& left, const std::string& right) const;

  std::size_t width_;
};

}  // namespace outrider::tools
