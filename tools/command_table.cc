#include "tools/command_table.h"

#include <algorithm>

#include "tools/options/config.h"
#include "tools/options/options.h"

namespace outrider::tools {
namespace {

bool contains(const std::string& text, const char* part) {
  return text.find(part) != std::string::npos;
}

ValueKind kind_of(const OptionRow& row, bool is_switch) {
  if (!row.choices.empty()) return ValueKind::kChoice;
  if (is_switch) return ValueKind::kNone;
  if (contains(row.unit, "FOLDER") || contains(row.unit, "DIR")) return ValueKind::kFolder;
  if (contains(row.unit, "FILE") || contains(row.unit, ".gguf")) return ValueKind::kFile;
  return ValueKind::kText;
}

OptionRow option_row(CLI::Option& option, bool is_argument) {
  OptionRow row;
  if (!is_argument) {
    for (const std::string& name : option.get_snames()) row.names.push_back("-" + name);
    for (const std::string& name : option.get_lnames()) row.names.push_back("--" + name);
  }
  const std::string& text = option.get_option_text();  // where CLI11 has no place for the unit
  row.choices = choices_of(option);
  row.optional_value = text.rfind("[=", 0) == 0;
  const bool is_switch = row.optional_value || option.get_expected_max() == 0;
  row.unit = text.empty() ? (is_switch ? "" : option.get_type_name()) : text;
  row.unit.erase(0, row.unit.find_first_not_of(" [="));
  if (row.optional_value) row.unit.erase(std::min(row.unit.find(']'), row.unit.size()));
  row.help = option.get_description();
  if (!is_switch) row.fallback = option.get_default_str();
  row.heading = option.get_group();
  row.kind = kind_of(row, is_switch);
  return row;
}

// What is said of all commands alike is not a command's.
std::string own_details(const CLI::App& app) {
  std::string text = app.get_footer();
  const std::size_t common = text.find(kLayersHelp);
  if (common != std::string::npos) text.erase(common);
  text.erase(text.find_last_not_of(" \n") + 1);
  return text;
}

CommandRow command_row(CLI::App& app, CLI::App& root) {
  CommandRow row{.name = &app == &root ? "" : app.get_name(),
                 .summary = app.get_description(),
                 .details = own_details(app),
                 .arguments = {},
                 .options = {}};
  std::vector<OptionRow> last;
  for (CLI::Option* option : app.get_options([](const CLI::Option*) { return true; })) {
    if (option->get_positional()) row.arguments.push_back(option_row(*option, true));
    if (option->get_lnames().empty() && option->get_snames().empty()) continue;
    OptionRow added = option_row(*option, false);
    const bool general = option == app.get_help_ptr() || option == root.get_config_ptr() ||
                         added.heading == "Options";
    (general ? last : row.options).push_back(std::move(added));
  }
  if (&app != &root) last.push_back(option_row(*root.get_config_ptr(), false));
  for (OptionRow& option : last) {
    option.heading = "General";
    row.options.push_back(std::move(option));
  }
  return row;
}

}  // namespace

CommandTable command_table(CLI::App& root) {
  CommandTable table{.program = command_row(root, root), .commands = {}};
  for (CLI::App* command : root.get_subcommands([](CLI::App*) { return true; })) {
    table.commands.push_back(command_row(*command, root));
  }
  return table;
}

std::string short_help(const OptionRow& option) {
  const std::string end = ".;:,(";
  std::string text = option.help;
  for (std::size_t i = 1; i < text.size(); ++i) {
    const bool clause = end.find(text[i]) != std::string::npos &&
                        (i + 1 == text.size() || text[i + 1] == ' ' || text[i] == '(');
    if (clause && i > 8) {
      text.erase(i);
      break;
    }
  }
  text.erase(text.find_last_not_of(' ') + 1);
  return text;
}

}  // namespace outrider::tools
