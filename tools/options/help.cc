#include "tools/options/help.h"

#include <sstream>

namespace outrider::tools {
namespace {

constexpr std::size_t kColumn = 30;  // where descriptions begin
constexpr std::size_t kWidth = 100;

std::string row(const std::string& left, const std::string& right) {
  std::string line = "  " + left;
  if (line.size() + 2 > kColumn) {
    line += "\n" + std::string(kColumn, ' ');
  } else {
    line.resize(kColumn, ' ');
  }
  return line + wrap(right, kColumn, kWidth) + "\n";
}

// The options under their headings, in the order of their declaration.
std::string option_groups(const HelpFormatter& formatter, const CLI::App* app) {
  const std::string general = "Options";  // CLI11's name of the group that nobody chose
  std::string text;
  std::string last;
  for (const std::string& group : app->get_groups()) {
    std::string rows;
    for (const CLI::Option* option : app->get_options()) {
      if (option->get_group() != group) continue;
      rows +=
          formatter.make_option(option, option->get_positional() && option->get_lnames().empty());
    }
    if (group == general) {
      last = rows;
    } else if (!rows.empty()) {
      text += "\n" + group + ":\n" + rows;
    }
  }
  const CLI::App* root = app->get_parent();
  if (root != nullptr)
    last += formatter.make_option(root->get_config_ptr(), /*is_positional=*/false);
  return text + "\nGeneral:\n" + last;
}

// Those that fit keep their spaces: they are examples.
std::string wrap_long_lines(const std::string& text) {
  std::string result;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    result += (line.size() > kWidth ? wrap(line, 0, kWidth) : line) + "\n";
  }
  return result;
}

}  // namespace

std::string wrap(const std::string& text, std::size_t indent, std::size_t width) {
  const std::string next_line = "\n" + std::string(indent, ' ');
  std::string result;
  std::istringstream lines(text);
  std::string line;
  for (bool first_line = true; std::getline(lines, line); first_line = false) {
    if (!first_line) result += next_line;
    std::size_t column = indent;
    std::istringstream words(line);
    std::string word;
    for (bool first = true; words >> word; first = false) {
      if (!first && column + 1 + word.size() > width) {
        result += next_line;
        column = indent;
      } else if (!first) {
        result += " ";
        ++column;
      }
      result += word;
      column += word.size();
    }
  }
  return result;
}

std::string HelpFormatter::make_help(const CLI::App* app, std::string name,
                                     CLI::AppFormatMode mode) const {
  std::string text = wrap(app->get_description(), 0, kWidth) + "\n" + make_usage(app, name);
  if (app->get_parent() == nullptr) text += make_subcommands(app, mode);
  return text + option_groups(*this, app) + "\n" + wrap_long_lines(make_footer(app));
}

std::string HelpFormatter::make_option(const CLI::Option* option, bool is_positional) const {
  std::string left;
  if (is_positional) {
    left = option->get_type_name();
  } else {
    for (const std::string& name : option->get_snames()) left += "-" + name + ", ";
    if (left.empty()) left = "    ";
    for (const std::string& name : option->get_lnames()) left += "--" + name + ", ";
    left.resize(left.size() - 2);
    const std::string& unit = option->get_option_text();  // where CLI11 has no place for it
    left += unit.empty() && option->get_type_size() != 0 ? " " + option->get_type_name() : unit;
  }
  std::string right = option->get_description();
  if (option->get_type_size() != 0 && !option->get_default_str().empty()) {
    right += " [default: " + option->get_default_str() + "]";
  }
  return row(left, right);
}

std::string HelpFormatter::make_usage(const CLI::App* app, std::string name) const {
  if (app->get_parent() == nullptr) return "\nUsage: " + name + " COMMAND [OPTIONS]\n";
  std::string line = "\nUsage: outrider " + app->get_name() + " [OPTIONS]";
  for (const CLI::Option* option : app->get_options()) {
    if (!option->get_positional()) continue;
    const std::string& label = option->get_type_name();
    line += option->get_required() ? " " + label : " [" + label + "]";
  }
  return line + "\n";
}

std::string HelpFormatter::make_subcommand(const CLI::App* command) const {
  return row(command->get_name(), command->get_description());
}

}  // namespace outrider::tools
