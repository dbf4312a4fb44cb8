#include "tools/completion_scripts.h"

#include <cassert>

#include "base/list_of.h"

namespace outrider::tools {
namespace {

// `text` with a backslash in front of each of `special`.
std::string escaped(const std::string& text, const std::string& special) {
  std::string result;
  for (const char c : text) {
    if (special.find(c) != std::string::npos) result += '\\';
    result += c;
  }
  return result;
}

// Inside single quotes of bash and zsh.
std::string in_quotes(const std::string& text) {
  std::string result;
  for (const char c : text) result += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return result;
}

std::vector<std::string> command_names(const CommandTable& table) {
  std::vector<std::string> names;
  for (const CommandRow& command : table.commands) names.push_back(command.name);
  return names;
}

// bash -------------------------------------------------------------------------------------------

constexpr const char* kBashHead = R"(# bash completion for outrider
_outrider() {
  local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD - 1]} command= words= i
  # "--rule=c" comes as three words.
  if [[ $cur == = ]]; then cur=
  elif [[ $prev == = ]]; then prev=${COMP_WORDS[COMP_CWORD - 2]}
  fi
  COMPREPLY=()
)";

constexpr const char* kBashTail = R"(  if [[ $words == @files ]]; then return; fi  # bash's own
  compopt +o default 2>/dev/null
  if [[ $words == @folders ]]; then
    mapfile -t COMPREPLY < <(compgen -d -- "$cur")
    compopt -o filenames 2>/dev/null
  elif [[ $words != @text ]]; then
    mapfile -t COMPREPLY < <(compgen -W "$words" -- "$cur")
  fi
}
complete -o default -F _outrider outrider
)";

std::string bash_value(const OptionRow& option) {
  switch (option.kind) {
    case ValueKind::kChoice:
      return joined(option.choices, " ");
    case ValueKind::kFile:
      return "@files";
    case ValueKind::kFolder:
      return "@folders";
    case ValueKind::kText:
    case ValueKind::kNone:
      break;
  }
  return "@text";
}

// A case for each option with a value. One whose value may be left out is asked for with "=" only.
std::string bash_values(const CommandRow& command) {
  std::string text;
  for (const OptionRow& option : command.options) {
    if (option.kind == ValueKind::kNone) continue;
    std::vector<std::string> patterns;
    for (const std::string& name : option.names) {
      patterns.push_back("'" + command.name + " " + name + (option.optional_value ? " =" : " ") +
                         "'" + (option.optional_value ? "" : "*"));
    }
    text += "    " + joined(patterns, " | ") + ") words='" + bash_value(option) + "' ;;\n";
  }
  return text;
}

// What may stand where no value is due: options behind a dash, else the first argument.
std::string bash_words(const CommandRow& command, const std::vector<std::string>& commands) {
  std::vector<std::string> options;
  for (const OptionRow& option : command.options) {
    options.insert(options.end(), option.names.begin(), option.names.end());
  }
  std::string first = command.name.empty() ? joined(commands, " ") : "@text";
  if (!command.arguments.empty()) first = bash_value(command.arguments.front());
  std::string text = "      '" + command.name + "')\n        if [[ $cur == -* ]]; then words='" +
                     joined(options, " ") + "'\n";
  const bool action = !command.arguments.empty() && !command.arguments.front().choices.empty();
  if (action) text += "        elif ((COMP_CWORD > i + 1)); then words=@files\n";
  return text + "        else words='" + first + "'\n        fi ;;\n";
}

std::string bash_script(const CommandTable& table) {
  const std::vector<std::string> names = command_names(table);
  std::string text = kBashHead;
  text += "  for ((i = 1; i < COMP_CWORD; ++i)); do\n    case ${COMP_WORDS[i]} in " +
          joined(names, " | ") +
          ")\n      command=${COMP_WORDS[i]}\n      break ;;\n    esac\n  done\n";
  text +=
      "  local equals=\n"
      "  if [[ ${COMP_WORDS[COMP_CWORD]} == = || ${COMP_WORDS[COMP_CWORD - 1]} == = ]]; then\n"
      "    equals==\n  fi\n";
  text += "  case \"$command $prev $equals\" in\n" + bash_values(table.program);
  for (const CommandRow& command : table.commands) text += bash_values(command);
  text += "    *)\n      case $command in\n" + bash_words(table.program, names);
  for (const CommandRow& command : table.commands) text += bash_words(command, names);
  return text + "      esac ;;\n  esac\n" + kBashTail;
}

// zsh --------------------------------------------------------------------------------------------

std::string zsh_value(const OptionRow& option) {
  const std::string label = escaped(in_quotes(option.unit), ":\\");
  switch (option.kind) {
    case ValueKind::kChoice:
      return ":" + label + ":(" + joined(option.choices, " ") + ")";
    case ValueKind::kFile:
      return ":" + label + ":_files";
    case ValueKind::kFolder:
      return ":" + label + ":_files -/";
    case ValueKind::kText:
      return ":" + label + ": ";
    case ValueKind::kNone:
      break;
  }
  return "";
}

// One spec of _arguments for each name: '(-m --model)--model=[the target]:FILE:_files'.
std::string zsh_options(const CommandRow& command) {
  std::string text;
  for (const OptionRow& option : command.options) {
    for (const std::string& name : option.names) {
      const bool is_long = name.size() > 2;
      const std::string joint = option.kind == ValueKind::kNone ? ""
                                : option.optional_value         ? (is_long ? "=-" : "-")
                                : is_long                       ? "="
                                                                : "+";
      text += " \\\n        '*" + name + joint + "[" +
              escaped(in_quotes(short_help(option)), "[]:") + "]" +
              (option.optional_value ? ":" : "") + zsh_value(option) + "'";
    }
  }
  return text;
}

std::string zsh_arguments(const CommandRow& command) {
  if (command.arguments.empty()) return "";
  const OptionRow& first = command.arguments.front();
  std::string text = " \\\n        '1" + zsh_value(first) + "'";
  const bool more = first.kind == ValueKind::kChoice || command.arguments.size() > 1;
  if (more) text += " \\\n        '*:FILE:_files'";
  return text;
}

std::string zsh_script(const CommandTable& table) {
  std::string text =
      "#compdef outrider\n# zsh completion for outrider\n_outrider() {\n"
      "  local curcontext=$curcontext state line\n  local -a commands\n"
      "  typeset -A opt_args\n  commands=(\n";
  for (const CommandRow& command : table.commands) {
    text += "    '" + command.name + ":" + escaped(in_quotes(command.summary), ":") + "'\n";
  }
  text += "  )\n  _arguments -C" + zsh_options(table.program) +
          " \\\n        '1:command:->command' '*::argument:->arguments'\n  case $state in\n"
          "  command) _describe -t commands command commands ;;\n  arguments)\n"
          "    curcontext=\"${curcontext%:*:*}:outrider-$words[1]:\"\n    case $words[1] in\n";
  for (const CommandRow& command : table.commands) {
    text += "    " + command.name + ")\n      _arguments -s" + zsh_options(command) +
            zsh_arguments(command) + " ;;\n";
  }
  return text +
         "    esac ;;\n  esac\n}\n"
         "if [[ $funcstack[1] == _outrider ]]; then _outrider \"$@\"; else compdef _outrider "
         "outrider; fi\n";
}

// fish -------------------------------------------------------------------------------------------

std::string fish_quoted(const std::string& text) { return "'" + escaped(text, "\\'") + "'"; }

std::string fish_value(const OptionRow& option) {
  switch (option.kind) {
    case ValueKind::kChoice:
      return (option.optional_value ? " -f -a '" : " -x -a '") + joined(option.choices, " ") + "'";
    case ValueKind::kFile:
      return " -r -F";
    case ValueKind::kFolder:
      return " -x -a '(__fish_complete_directories)'";
    case ValueKind::kText:
      return " -x";
    case ValueKind::kNone:
      break;
  }
  return "";
}

std::string fish_options(const CommandRow& command, const std::string& where) {
  std::string text;
  for (const OptionRow& option : command.options) {
    text += "complete -c outrider -n " + where;
    for (const std::string& name : option.names) {
      text += name.size() > 2 ? " -l " + name.substr(2) : " -s " + name.substr(1);
    }
    text += fish_value(option) + " -d " + fish_quoted(short_help(option)) + "\n";
  }
  return text;
}

std::string fish_script(const CommandTable& table) {
  const std::string names = joined(command_names(table), " ");
  std::string text =
      "# fish completion for outrider\ncomplete -c outrider -f\n"
      "set -l none 'not __fish_seen_subcommand_from " +
      names + "'\n";
  text += fish_options(table.program, "\"$none\"");
  for (const CommandRow& command : table.commands) {
    const std::string where = "'__fish_seen_subcommand_from " + command.name + "'";
    text += "complete -c outrider -n \"$none\" -a " + command.name + " -d " +
            fish_quoted(command.summary) + "\n" + fish_options(command, where);
    if (command.arguments.empty()) continue;
    const OptionRow& first = command.arguments.front();
    const std::string words = joined(first.choices, " ");
    if (!words.empty()) {
      text += "complete -c outrider -n '__fish_seen_subcommand_from " + command.name +
              "; and not __fish_seen_subcommand_from " + words + "' -a '" + words + "'\n";
    }
    const bool files = first.kind == ValueKind::kFile || command.arguments.size() > 1 ||
                       first.unit.find("FILE") != std::string::npos;
    if (files) text += "complete -c outrider -n " + where + " -F\n";
  }
  return text;
}

}  // namespace

const std::vector<std::string>& completion_shells() {
  static const std::vector<std::string> kShells = {"bash", "zsh", "fish"};
  return kShells;
}

std::string completion_script(const CommandTable& table, const std::string& shell) {
  if (shell == "bash") return bash_script(table);
  if (shell == "zsh") return zsh_script(table);
  assert(shell == "fish");
  return fish_script(table);
}

}  // namespace outrider::tools
