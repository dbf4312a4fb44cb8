// The commands and their options as rows, from the CLI11 tree that --help prints: what completions
// in shells and the manual page are made of. So they cannot lack an option.
#pragma once

#include <string>
#include <vector>

#include <CLI/CLI.hpp>

namespace outrider::tools {

enum class ValueKind { kNone, kText, kFile, kFolder, kChoice };

struct OptionRow {
  std::vector<std::string> names;  // "-m", "--model"; of an argument: none
  ValueKind kind = ValueKind::kNone;
  bool optional_value = false;  // "--color[=WHEN]"
  std::string unit;             // "FILE"; of an argument: its placeholder
  std::string help;
  std::string fallback;  // the default, as --help shows it
  std::string heading;
  std::vector<std::string> choices;  // for kChoice
};

struct CommandRow {
  std::string name;  // of the program itself: ""
  std::string summary;
  std::string details;
  std::vector<OptionRow> arguments;
  std::vector<OptionRow> options;  // in the order of --help, which is the last but --config
};

struct CommandTable {
  CommandRow program;
  std::vector<CommandRow> commands;
};

// `root` holds the program's commands, all options declared.
CommandTable command_table(CLI::App& root);

// The help up to the end of its first clause, for one line of a menu.
std::string short_help(const OptionRow& option);

}  // namespace outrider::tools
