#include "tools/options/config.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdlib>
#include <istream>
#include <iterator>
#include <memory>
#include <string_view>

#include "base/list_of.h"
#include "base/nearest.h"
#include "tools/options/llama_names.h"
#include "tools/options/needs.h"
#include "tools/options/options.h"
#include "tools/options/toml.h"
#include "tools/options/usage.h"

namespace outrider::tools {
namespace {

const CLI::Option* find_option(const CLI::App& app, const std::string& key) {
  const CLI::Option* option = app.get_option_no_throw("--" + key);
  return option == app.get_help_ptr() ? nullptr : option;
}

bool set_in_environment(const std::string& key) {
  const char* value = std::getenv(environment_name(key).c_str());
  return value != nullptr && *value != '\0' && !is_service_link(key);
}

// Options of which one is given in place of another: the nearest replaces those that are further
// away, as it would its own value. "stdin" is the argument "-".
constexpr std::array<std::array<std::string_view, 3>, 5> kRivals = {
    {{"model", "hf-repo"},
     {"draft-model", "hf-repo-draft"},
     {"prompt", "file", "stdin"},
     {"grammar", "json-schema", "ignore-eos"},
     {"history", "no-history"}}};

// A switch that is off takes nobody's place.
bool is_off(const CLI::Option& option, std::string_view value) {
  constexpr std::array<std::string_view, 4> kOff = {"false", "0", "off", "no"};
  return option.get_expected_max() == 0 && std::find(kOff.begin(), kOff.end(), value) != kOff.end();
}

// The rivals of option `name` ("model") that the command has.
std::vector<const CLI::Option*> rivals_of(const CLI::App& command, const std::string& name) {
  std::vector<const CLI::Option*> found;
  for (const auto& rivals : kRivals) {
    if (std::find(rivals.begin(), rivals.end(), name) == rivals.end()) continue;
    for (const std::string_view other : rivals) {
      const std::string key(other);
      if (key.empty() || key == name) continue;
      const CLI::Option* option = find_option(command, key);
      if (option == nullptr) option = command.get_option_no_throw(key);
      if (option != nullptr) found.push_back(option);
    }
  }
  return found;
}

// Whether the command's own table names a rival of what stands at the top, which is further away.
bool is_replaced_by_table(const CLI::App& command, const TomlEntry& entry,
                          const std::vector<TomlEntry>& all) {
  if (!entry.table.empty()) return false;
  const std::vector<const CLI::Option*> rivals = rivals_of(command, entry.key);
  return std::any_of(rivals.begin(), rivals.end(), [&](const CLI::Option* rival) {
    return std::any_of(all.begin(), all.end(), [&](const TomlEntry& other) {
      return other.table == command.get_name() && rival->check_lname(other.key) &&
             (other.values.empty() || !is_off(*rival, other.values.front()));
    });
  });
}

// Whether something nearer than a config file stands in place of this option.
bool is_replaced(const CLI::App& command, const std::string& name) {
  const std::vector<const CLI::Option*> rivals = rivals_of(command, name);
  return std::any_of(rivals.begin(), rivals.end(), [](const CLI::Option* rival) {
    const std::vector<std::string>& names = rival->get_lnames();
    if (rival->count() > 0) return !is_off(*rival, rival->results().back());
    return !names.empty() && set_in_environment(names.front()) &&
           !is_off(*rival, std::getenv(environment_name(names.front()).c_str()));
  });
}

// Of an option that was typed, the rivals in the environment are as if they were not there.
void forget_rivals(const CLI::App& command, const CLI::Option& typed) {
  const std::vector<std::string>& names = typed.get_lnames();
  const std::string name = names.empty() ? typed.get_name(/*positional=*/true) : names.front();
  for (const CLI::Option* rival : rivals_of(command, name)) {
    if (rival->get_lnames().empty()) continue;
    (void)unsetenv(environment_name(rival->get_lnames().front()).c_str());
  }
}

// Reads our TOML for CLI11, and leaves out what something nearer has set.
class LayeredConfig : public CLI::Config {
 public:
  explicit LayeredConfig(CLI::App& root) : root_(root) {}

  std::string to_config(const CLI::App*, bool, bool, std::string) const override { return ""; }

  std::vector<CLI::ConfigItem> from_config(std::istream& input) const override {
    text_.assign(std::istreambuf_iterator<char>(input), {});
    Result<TomlFile> file = parse_toml(text_);
    if (!file.ok()) refuse(file.status().message());
    const std::vector<CLI::App*> chosen =
        root_.get_subcommands([](CLI::App* app) { return app->parsed() > 0; });
    std::vector<CLI::ConfigItem> result;
    if (chosen.empty()) return result;
    // CLI11 takes the first value that it gets: what is under the command's own table goes first.
    std::stable_partition(file->entries.begin(), file->entries.end(),
                          [](const TomlEntry& entry) { return !entry.table.empty(); });
    for (TomlEntry& entry : file->entries) {
      std::replace(entry.key.begin(), entry.key.end(), '_', '-');
    }
    CLI::App& command = *chosen.front();
    for (const TomlEntry& entry : file->entries) {
      if (is_of_models(entry)) continue;
      check_known(entry);
      const bool meant = entry.table.empty() || entry.table == command.get_name();
      if (!meant || find_option(command, entry.key) == nullptr) continue;
      if (set_in_environment(entry.key) || is_replaced(command, entry.key)) continue;
      if (is_replaced_by_table(command, entry, file->entries)) continue;
      check_values(*command.get_option("--" + entry.key), entry);
      result.push_back(
          {.parents = {command.get_name()}, .name = entry.key, .inputs = entry.values});
    }
    return result;
  }

  const std::string& text() const { return text_; }

 private:
  [[noreturn]] void refuse(const std::string& what, const std::string& hint = "") const {
    throw UsageError("config file '" + root_.get_config_ptr()->as<std::string>() + "', " + what,
                     hint);
  }

  [[noreturn]] void refuse(const TomlEntry& entry, const std::string& what,
                           const std::string& hint = "") const {
    refuse("line " + std::to_string(entry.line) + ": " + what, hint);
  }

  // Of [models.NAME], which tools/options/model_tables.h reads.
  bool is_of_models(const TomlEntry& entry) const {
    if (entry.table == kModelTables) {
      refuse(entry, "[models] holds tables, one for each model of a server: [models.NAME]");
    }
    return entry.table.rfind(std::string(kModelTables) + ".", 0) == 0;
  }

  void check_known(const TomlEntry& entry) const {
    std::vector<std::string> tables;
    std::vector<std::string> keys;
    for (const CLI::App* command : root_.get_subcommands({})) {
      tables.push_back(command->get_name());
      if (!entry.table.empty() && entry.table != command->get_name()) continue;
      if (find_option(*command, entry.key) != nullptr) return;
      for (const std::string& name : option_names(*command)) keys.push_back(name.substr(2));
    }
    if (!entry.table.empty() &&
        std::find(tables.begin(), tables.end(), entry.table) == tables.end()) {
      refuse(entry, "[" + entry.table + "] is no command", "tables are " + list_of(tables));
    }
    const std::string near = nearest(entry.key, keys);
    refuse(entry, "unknown option '" + entry.key + "'",
           near.empty() ? "" : "did you mean '" + near + "'?");
  }

  void check_values(CLI::Option& option, const TomlEntry& entry) const {
    const bool is_flag = option.get_expected_max() == 0;  // -v, too, which may be typed twice
    const bool many =
        !is_flag && option.get_multi_option_policy() == CLI::MultiOptionPolicy::TakeAll;
    if (!many && entry.values.size() != 1) refuse(entry, "'" + entry.key + "' takes one value");
    if (!is_flag) return;
    std::vector<std::string> words = choices_of(option);  // --color's
    if (words.empty()) words = {"true", "false"};         // a switch
    const std::string& given = entry.values[0];
    if (std::find(words.begin(), words.end(), given) != words.end()) return;
    refuse(entry, "'" + entry.key + "' is " + given + ", but must be " + list_of(words, " or "));
  }

  CLI::App& root_;
  mutable std::string text_;  // CLI11 reads through a const function
};

void add_environment(CLI::App& app) {
  for (const std::string& name : option_names(app)) {
    if (!is_service_link(name)) app.get_option(name)->envname(environment_name(name));
  }
}

// Whether the next argument is the value of this one: "-p", "--prompt", but not "--prompt=x".
bool takes_next(const CLI::App& root, const std::string& argument) {
  std::vector<const CLI::App*> commands = root.get_subcommands({});
  commands.push_back(&root);  // --config
  return std::any_of(commands.begin(), commands.end(), [&](const CLI::App* command) {
    if (argument.size() < 2 || argument[0] != '-') return false;
    const CLI::Option* option = command->get_option_no_throw(argument);
    return option != nullptr && option->get_expected_min() > 0 && option->get_type_size() > 0;
  });
}

// llama.cpp's names of more than one letter behind one dash, which CLI11 would take for several.
// Throws UsageError for llama-server's other ones. `command`: whose option it would be.
std::string long_name(const CLI::App& command, const std::string& argument) {
  const std::string name = argument.substr(0, argument.find('='));
  const std::string rest = argument.substr(name.size());
  if (name == "-hf" || name == "-hfr") return "--hf-repo" + rest;
  if (name == "-hfd" || name == "-hfrd") return "--hf-repo-draft" + rest;
  const bool is_short = name.size() > 2 && name[0] == '-' && name[1] != '-';
  if (is_short && is_llamas(name)) throw unexpected_arguments(command, {name});
  return argument;
}

// Throws UsageError for what stands behind a "--" and would be taken for an option all the same.
void check_word(const std::string& argument) {
  if (argument.size() < 2 || argument[0] != '-') return;
  throw UsageError("'" + argument + "' stands behind --, but begins with a dash",
                   "a file of that name is ./" + argument);
}

// The command that the arguments name; the program where they name none.
const CLI::App& named_command(const CLI::App& root, int argc, const char* const* argv) {
  const std::vector<const CLI::App*> commands = root.get_subcommands({});
  for (int i = 1; i < argc; ++i) {
    for (const CLI::App* command : commands) {
      if (command->get_name() == argv[i]) return *command;
    }
  }
  return root;
}

// The option that `argument` begins ("-m", "--model=x", "-mx"); null: none of the command's.
const CLI::Option* typed_option(const CLI::App& command, const std::string& argument) {
  if (argument.size() < 2 || argument[0] != '-') return nullptr;
  const std::string name = argument.substr(0, argument.find('='));
  const CLI::Option* option = command.get_option_no_throw(name);
  if (option != nullptr || name.starts_with("--")) return option;
  return command.get_option_no_throw(name.substr(0, 2));
}

// `arguments`: those that are no values, from the command's name on.
void forget_what_is_replaced(const CLI::App& command, const std::vector<std::string>& arguments) {
  const std::vector<const CLI::Option*> positional =
      command.get_options([](const CLI::Option* option) { return option->get_positional(); });
  std::size_t n_words = 0;
  for (const std::string& argument : arguments) {
    const CLI::Option* option = typed_option(command, argument);
    const bool is_word = argument == "-" || argument.empty() || argument[0] != '-';
    if (is_word && n_words < positional.size()) option = positional[n_words++];
    const std::size_t sign = argument.find('=');
    const std::string value = sign == std::string::npos ? "" : argument.substr(sign + 1);
    if (option != nullptr && !is_off(*option, value)) forget_rivals(command, *option);
  }
}

}  // namespace

Layer layer_of(const CLI::App& command, const std::string& option) {
  if (was_typed(command, option)) return Layer::kTyped;
  return set_in_environment(option) ? Layer::kEnvironment : Layer::kFile;
}

bool is_service_link(const std::string& option) {
  const char* const value = std::getenv(environment_name(option).c_str());
  return value != nullptr && std::string_view(value).starts_with("tcp://");
}

void add_layers(CLI::App& root) {
  root.set_config("--config", "", "read options from this TOML file (see below)",
                  /*config_required=*/false)
      ->option_text(" FILE");
  root.config_formatter(std::make_shared<LayeredConfig>(root));
  // Only the command that is called reads the environment, so that a bad value of an option that it
  // does not have cannot stop it.
  for (CLI::App* command : root.get_subcommands({})) {
    command->fallthrough();
    command->preparse_callback([command](std::size_t) { add_environment(*command); });
  }
}

std::string config_text(const CLI::App& root) {
  const auto* const config = dynamic_cast<const LayeredConfig*>(root.get_config_formatter().get());
  return config == nullptr ? "" : config->text();
}

std::vector<std::string> arguments_to_parse(const CLI::App& root, int argc,
                                            const char* const* argv) {
  std::vector<std::string> arguments;
  bool has_config = false;
  bool is_value = false;
  std::vector<std::string> typed;  // of the command, without values
  bool is_behind = false;          // the command's name
  bool only_words = false;         // behind a "--"
  const CLI::App& command = named_command(root, argc, argv);
  for (int i = 1; i < argc; ++i) {
    const std::string argument = is_value ? argv[i] : long_name(command, argv[i]);
    has_config = has_config || argument == "--config" || argument.rfind("--config=", 0) == 0;
    const bool empty_value = !is_value && argument.size() > 3 && argument.rfind("--", 0) == 0 &&
                             argument.find('=') + 1 == argument.size();
    if (only_words) check_word(argument);
    if (is_behind && !is_value && !only_words && argument == "--") {
      only_words = true;
      continue;
    }
    if (is_behind && !is_value) typed.push_back(argument);
    is_behind = is_behind || (!is_value && argument == command.get_name());
    is_value = !is_value && takes_next(root, argument);
    arguments.push_back(empty_value ? argument.substr(0, argument.size() - 1) : argument);
    if (empty_value) arguments.push_back("");
  }
  forget_what_is_replaced(command, typed);
  const char* config = std::getenv("OUTRIDER_CONFIG");
  if (!has_config && config != nullptr && *config != '\0') {
    arguments.insert(arguments.begin(), {"--config", config});
  }
  std::reverse(arguments.begin(), arguments.end());
  return arguments;
}

}  // namespace outrider::tools
