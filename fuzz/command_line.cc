// Arguments, one a line, and behind an empty line a configuration file: parsed for all commands,
// none of which runs.
#include <memory>
#include <string>
#include <vector>

#include "fuzz/targets.h"
#include "testing/tiny_dir.h"
#include "tools/command.h"
#include "tools/options/config.h"
#include "tools/options/usage.h"

namespace outrider::fuzz {
namespace {

constexpr std::size_t kMostArguments = 32;

void parse(CLI::App& root, const std::vector<std::string>& arguments) {
  std::vector<const char*> argv = {"outrider"};
  for (const std::string& argument : arguments) argv.push_back(argument.c_str());
  try {
    root.parse(tools::arguments_to_parse(root, static_cast<int>(argv.size()), argv.data()));
  } catch (const CLI::Success&) {  // --help
  } catch (const tools::UsageError& error) {
    if (std::string(error.what()).empty()) violated("an error that says nothing");
  } catch (const CLI::ParseError& error) {
    static_cast<void>(tools::translate(error));
  }
}

}  // namespace

void command_line(Bytes input) {
  static const testing::TempDir folder;
  std::string_view lines = text(input);
  std::vector<std::string> arguments;
  while (!lines.empty() && arguments.size() < kMostArguments) {
    const std::string_view line = lines.substr(0, lines.find('\n'));
    lines.remove_prefix(std::min(lines.size(), line.size() + 1));
    if (line.empty()) break;
    // The file that is fuzzed is the one behind the empty line; no other one is read.
    const bool config = line.find("config") != line.npos;
    if (!config && line.find('\0') == line.npos) arguments.emplace_back(line);
  }
  const std::string file = folder.file("config.toml");
  testing::write_bytes(file, std::string(lines));
  arguments.insert(arguments.begin(), {"--config", file});
  const std::vector<std::unique_ptr<tools::Command>> commands = tools::make_commands();
  CLI::App root("fuzzed", "outrider");
  root.allow_extras();
  for (const std::unique_ptr<tools::Command>& command : commands) {
    CLI::App* const app = root.add_subcommand(command->name(), command->summary());
    app->allow_extras();
    command->add_options(*app);
  }
  tools::add_layers(root);
  parse(root, arguments);
}

}  // namespace outrider::fuzz
