#include "tools/options/help.h"

#include <sys/ioctl.h>

#include <algorithm>
#include <cstdlib>
#include <sstream>

#include "base/number_from.h"
#include "base/wrap.h"

namespace outrider::tools {
namespace {

constexpr std::size_t kColumn = 30;  // where descriptions begin
constexpr std::size_t kWidest = 100;
constexpr std::size_t kNarrowest = 40;
constexpr std::size_t kUsual = 80;

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

}  // namespace

std::size_t help_width(int descriptor) {
  std::size_t width = kWidest;
  bool known = false;
  const auto limit = [&](std::size_t columns) {
    if (columns == 0) return;  // a terminal that does not know its size
    width = std::min(width, columns);
    known = true;
  };
  winsize size = {};
  if (ioctl(descriptor, TIOCGWINSZ, &size) == 0) limit(size.ws_col);
  const char* const columns = std::getenv("COLUMNS");
  if (columns != nullptr) limit(number_from<std::uint32_t>(columns).value_or(0));
  return known ? std::max(width, kNarrowest) : kUsual;
}

std::string filled(const std::string& text, std::size_t width) {
  std::string result;
  std::string paragraph;
  const auto end_paragraph = [&] {
    if (!paragraph.empty()) result += wrap(paragraph, 0, width) + "\n";
    paragraph.clear();
  };
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    if (line.empty() || line.starts_with("  ")) {
      end_paragraph();
      result += line + "\n";
    } else {
      paragraph += (paragraph.empty() ? "" : " ") + line;
    }
  }
  end_paragraph();
  return result;
}

std::string HelpFormatter::row(const std::string& left, const std::string& right) const {
  std::string line = "  " + left;
  if (line.size() + 2 > kColumn) {
    line += "\n" + std::string(kColumn, ' ');
  } else {
    line.resize(kColumn, ' ');
  }
  return line + wrap(right, kColumn, width_) + "\n";
}

std::string HelpFormatter::make_help(const CLI::App* app, std::string name,
                                     CLI::AppFormatMode mode) const {
  std::string text = wrap(app->get_description(), 0, width_) + "\n" + make_usage(app, name);
  if (app->get_parent() == nullptr) text += make_subcommands(app, mode);
  return text + option_groups(*this, app) + "\n" + filled(app->get_footer(), width_);
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
