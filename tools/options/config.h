// Where option values come from, nearest first: the command line, the environment (--max-tokens is
// OUTRIDER_MAX_TOKENS), a TOML file (--config FILE or OUTRIDER_CONFIG), the defaults.
//
// In the file, keys are long option names without dashes in front ('_' serves as '-'). Keys above
// the first [table] hold for every command that has the option; those under [run] only for run, and
// win; [models.NAME] describes a model of a server (tools/options/model_tables.h). A key that no
// command knows is an error that names the line, not a silence.
#pragma once

#include <string>
#include <vector>

#include <CLI/CLI.hpp>

namespace outrider::tools {

// What help and manual say of it.
inline constexpr const char* kLayersHelp =
    "Every option can also be given as an environment variable (--max-tokens is "
    "OUTRIDER_MAX_TOKENS) or in a TOML file (max-tokens = 100): --config FILE or "
    "OUTRIDER_CONFIG=FILE.\n"
    "The command line wins over the environment, the environment over the file. A key above the "
    "first [table] holds for every command that has the option, one under [run] only for run.";

// Adds --config to `root` and the environment variables to `root` and its subcommands. Call it when
// all options are declared. `root` must outlive the parsing.
void add_layers(CLI::App& root);

// Where a value came from, the nearest last.
enum class Layer { kFile, kEnvironment, kTyped };

// Of an option, by its long name without dashes, that was given. REQUIRES: `command` was parsed
Layer layer_of(const CLI::App& command, const std::string& option);

// Whether the environment variable of "--port" is not meant as one: in all containers beside a
// service that is named outrider Kubernetes sets OUTRIDER_PORT to "tcp://10.0.0.1:80". It counts as
// not set.
bool is_service_link(const std::string& option);

// What stood in the file of --config, as it was read; empty where there was none. A file is read
// once, as it may be a pipe (`--config <(...)`). REQUIRES: add_layers(root), and it has been parsed
std::string config_text(const CLI::App& root);

// The arguments to parse, in CLI11's order (last first): `argv` without the program's name, with
// --config from the environment in front when the command line has none, and "--name=" split in two
// (CLI11 would take the next argument for its value), -hf and -hfd by their long names. What
// follows an option of `root`'s commands that takes a value is that value, whatever it looks like.
// A "--" behind the command goes, since what follows it are words. Throws UsageError for one that
// CLI11 would take for an option.
std::vector<std::string> arguments_to_parse(const CLI::App& root, int argc,
                                            const char* const* argv);

}  // namespace outrider::tools
