// How --help looks: one option a paragraph, wrapped, with its default at the end.
#pragma once

#include <string>

#include <CLI/CLI.hpp>

namespace outrider::tools {

// Arguments stand with the options of their group; --help and --config come last.
class HelpFormatter : public CLI::Formatter {
 public:
  std::string make_help(const CLI::App* app, std::string name,
                        CLI::AppFormatMode mode) const override;
  std::string make_option(const CLI::Option* option, bool is_positional) const override;
  std::string make_usage(const CLI::App* app, std::string name) const override;
  std::string make_subcommand(const CLI::App* command) const override;
};

// `text` broken at spaces into lines of at most `width` columns, all but the first indented by
// `indent` spaces (which count). Newlines in `text` stay.
std::string wrap(const std::string& text, std::size_t indent, std::size_t width);

}  // namespace outrider::tools
