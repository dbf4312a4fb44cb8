#include "tools/chat/chat_commands.h"

#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include "base/list_of.h"
#include "base/nearest.h"
#include "base/wrap.h"
#include "tools/options/help.h"

namespace outrider::tools {
namespace {

using Argument = const std::string&;

Status show_help(ChatState& chat, Argument /*argument*/) {
  const std::string colors = wrap(chat.color_help(), 0, help_width(STDERR_FILENO));
  std::fputs((command_help() + colors + "\n").c_str(), stderr);
  return Status();
}

// No shell has seen it: ~/ is the home folder here, too.
std::string file_of(Argument text) {
  const char* const home = std::getenv("HOME");
  const bool in_home = text.starts_with("~/") && home != nullptr && *home != '\0';
  return in_home ? home + text.substr(1) : text;
}

Status end(ChatState& chat, Argument /*argument*/) {
  chat.end();
  return Status();
}

constexpr SlashCommand kCommands[] = {
    {"help", "", false, "this list", show_help},
    {"stats", "", false, "speed and guesses of the last answer and of the chat",
     [](ChatState& chat, Argument) { return chat.show_stats(); }},
    {"set", "NAME VALUE", false,
     "set a field of the requests, as in JSON or the options: /set temp 0.2; without VALUE: show "
     "it; VALUE default: as without it; alone: list what is set",
     [](ChatState& chat, Argument text) { return chat.set(text); }},
    {"system", "TEXT", false, "replace the system message; \"\" takes it away; alone: show it",
     [](ChatState& chat, Argument text) { return chat.set_system(text); }},
    {"save", "FILE", true, "write the conversation to FILE (JSON), a prompt file for compare, too",
     [](ChatState& chat, Argument text) { return chat.save(file_of(text)); }},
    {"load", "FILE", true, "go on with the conversation in FILE",
     [](ChatState& chat, Argument text) { return chat.load(file_of(text)); }},
    {"undo", "", false, "take the last question and its answer back",
     [](ChatState& chat, Argument) { return chat.undo(); }},
    {"retry", "", false, "answer the last question again",
     [](ChatState& chat, Argument) { return chat.retry(); }},
    {"clear", "", false, "forget the conversation, but the system message",
     [](ChatState& chat, Argument) { return chat.clear(); }},
    {"exit", "", false, "end (also /quit, Ctrl-D)", end},
};

constexpr const char* kKeys =
    "A message of several lines: end a line with \\, or put \"\"\" before and after it, or paste "
    "it.\n"
    "One that begins with /: put a space in front.\n"
    "Ctrl-C stops an answer; twice where nothing is typed, it ends the program.\n";

std::string trimmed(std::string_view text) {
  const std::size_t begin = text.find_first_not_of(" \t");
  if (begin == std::string_view::npos) return "";
  return std::string(text.substr(begin, text.find_last_not_of(" \t") - begin + 1));
}

Status unknown(const std::string& name) {
  std::vector<std::string> names;
  for (const SlashCommand& command : kCommands) names.push_back("/" + std::string(command.name));
  const std::string near = nearest("/" + name, names);
  return not_found("there is no command '/" + name + "'" +
                   (near.empty() ? "; " : "; did you mean " + near + "? ") + "commands are " +
                   list_of(names));
}

}  // namespace

std::span<const SlashCommand> slash_commands() { return kCommands; }

Status do_command(ChatState& chat, std::string_view line) {
  line.remove_prefix(1);
  const std::size_t blank = std::min(line.find_first_of(" \t"), line.size());
  std::string name(line.substr(0, blank));
  if (name == "quit") name = "exit";  // as other programs call it
  const std::string argument = trimmed(line.substr(blank));
  for (const SlashCommand& command : kCommands) {
    if (command.name != name) continue;
    if (command.needs_argument && argument.empty()) {
      return invalid_argument("/" + name + " needs its " + std::string(command.argument) + ": /" +
                              name + " " + std::string(command.argument));
    }
    if (command.argument.empty() && !argument.empty()) {
      return invalid_argument("/" + name + " takes nothing behind it, but got '" + argument + "'");
    }
    return command.act(chat, argument);
  }
  return unknown(name);
}

std::string command_help() {
  const std::size_t width = help_width(STDERR_FILENO);
  std::string text;
  for (const SlashCommand& command : kCommands) {
    std::string left = "/" + std::string(command.name);
    if (!command.argument.empty()) left += " " + std::string(command.argument);
    left.resize(std::max<std::size_t>(left.size() + 2, 18), ' ');
    text += left + wrap(std::string(command.help), left.size(), width) + "\n";
  }
  return text + wrap(kKeys, 0, width) + "\n";
}

}  // namespace outrider::tools
