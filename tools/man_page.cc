#include "tools/man_page.h"

#include <cctype>
#include <map>
#include <sstream>

#include "tools/options/config.h"
#include "tools/report.h"

namespace outrider::tools {
namespace {

// Text for troff: no backslash, dash or dot of ours is one of its own.
std::string plain(const std::string& text) {
  std::string result;
  for (const char c : text) {
    const bool line_start = result.empty() || result.back() == '\n';
    if (line_start && (c == '.' || c == '\'')) result += "\\&";
    if (c == '\\') {
      result += "\\e";
    } else if (c == '-') {
      result += "\\-";
    } else {
      result += c;
    }
  }
  return result;
}

// Lines that begin with spaces keep their columns; others are filled.
std::string paragraphs(const std::string& text) {
  std::string result;
  std::istringstream lines(text);
  std::string line;
  bool fixed = false;
  while (std::getline(lines, line)) {
    const bool indented = line.rfind("  ", 0) == 0;
    if (indented != fixed) result += indented ? ".nf\n" : ".fi\n";
    fixed = indented;
    result += line.empty() ? ".PP\n" : plain(line) + "\n";
  }
  if (fixed) result += ".fi\n";
  return result;
}

std::string option_entry(const OptionRow& option) {
  std::string text = ".TP\n";
  if (option.names.empty()) {
    text += "\\fI" + plain(option.unit) + "\\fR";
  } else {
    std::string names;
    for (const std::string& name : option.names) {
      names += (names.empty() ? "" : ", ") + ("\\fB" + plain(name) + "\\fR");
    }
    text += names;
    if (option.optional_value) {
      text += "[=\\fI" + plain(option.unit) + "\\fR]";
    } else if (option.kind != ValueKind::kNone) {
      text += " \\fI" + plain(option.unit) + "\\fR";
    }
  }
  text += "\n" + plain(option.help);
  if (option.help.empty() || option.help.back() != '.') text += ".";
  if (!option.fallback.empty()) text += " Default: " + plain(option.fallback) + ".";
  return text + "\n";
}

// The options of one heading.
struct Section {
  std::string heading;
  std::string entries;
};

std::vector<Section> sections(const CommandRow& command) {
  std::vector<Section> result;
  const auto add = [&result](const OptionRow& option) {
    for (Section& section : result) {
      if (section.heading != option.heading) continue;
      section.entries += option_entry(option);
      return;
    }
    result.push_back({.heading = option.heading, .entries = option_entry(option)});
  };
  for (const OptionRow& argument : command.arguments) {
    if (argument.names.empty()) add(argument);
  }
  for (const OptionRow& option : command.options) add(option);
  return result;
}

// What one command has word for word from another is said once.
std::string command_section(const CommandRow& command, std::map<std::string, std::string>& said) {
  std::string text = ".SS outrider " + plain(command.name);
  text += " [\\fIOPTIONS\\fR]";
  for (const OptionRow& argument : command.arguments) {
    text += " [\\fI" + plain(argument.unit) + "\\fR]";
  }
  std::string summary = command.summary;
  if (!summary.empty())
    summary[0] = static_cast<char>(std::toupper(static_cast<unsigned char>(summary[0])));
  text += "\n" + plain(summary) + ".\n.PP\n" + paragraphs(command.details);
  for (const Section& section : sections(command)) {
    text += ".PP\n.B " + plain(section.heading) + "\n";
    const auto [earlier, is_new] = said.emplace(section.entries, command.name);
    text += is_new ? section.entries
                   : ".TP\n\\&\nas for \\fBoutrider " + plain(earlier->second) + "\\fR.\n";
  }
  return text;
}

}  // namespace

std::string man_page(const CommandTable& table) {
  std::string text = ".TH OUTRIDER 1 \"\" \"outrider " OUTRIDER_VERSION "\" \"User Commands\"\n";
  text +=
      ".SH NAME\noutrider \\- speculative decoding for local language models\n"
      ".SH SYNOPSIS\n.B outrider\n\\fICOMMAND\\fR [\\fIOPTIONS\\fR]\n";
  text += ".SH DESCRIPTION\n" + plain(table.program.summary) + "\n.PP\n" +
          paragraphs(table.program.details);
  text += ".SH OPTIONS\n";
  for (const OptionRow& option : table.program.options) text += option_entry(option);
  text += ".SH COMMANDS\n";
  std::map<std::string, std::string> said;  // entries -> the command that has them
  for (const CommandRow& command : table.commands) text += command_section(command, said);
  text += ".SH ENVIRONMENT AND FILES\n" + paragraphs(kLayersHelp);
  text += ".SH EXIT STATUS\n" + plain(std::string(kExitCodes)) + "\n";
  return text;
}

}  // namespace outrider::tools
