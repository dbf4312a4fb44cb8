#include <unistd.h>

#include <algorithm>
#include <exception>
#include <new>
#include <sstream>
#include <string>
#include <string_view>

#include "backend/model_host.h"
#include "base/build_commit.h"
#include "base/list_of.h"
#include "base/nearest.h"
#include "base/usable_processors.h"
#include "llama/base/processor.h"
#include "llama/files/model_file.h"
#include "tools/command.h"
#include "tools/fetch_models.h"
#include "tools/options/config.h"
#include "tools/options/help.h"
#include "tools/options/needs.h"
#include "tools/options/options.h"
#include "tools/options/shell_word.h"
#include "tools/options/usage.h"
#include "tools/report.h"
#include "tools/text_output.h"

namespace outrider::tools {
namespace {

constexpr const char* kSummary =
    "Makes local language models answer faster without changing what they say: a small draft model "
    "guesses ahead, the target model checks all guesses in one pass.";

constexpr const char* kExample =
    "Example:\n"
    "  outrider run -m target.gguf -d draft.gguf -p \"Once upon a time\" --stats\n\n"
    "'outrider COMMAND --help' lists a command's options.\n\nExit codes: ";

std::string version_text() {
  return "outrider " + with_commit(OUTRIDER_VERSION) + "\nllama.cpp " + OUTRIDER_LLAMA_COMMIT +
         "\nbuild " + OUTRIDER_BUILD;
}

// A CLI11 App that says what it does not know by exception, with its arguments.
void declare(CLI::App& root, const std::vector<std::unique_ptr<Command>>& commands) {
  root.formatter(std::make_shared<HelpFormatter>(help_width(STDOUT_FILENO)));
  root.get_formatter()->label("SUBCOMMAND", "COMMAND");
  root.set_help_flag("-h,--help", "print this help and exit");
  root.set_version_flag("--version", version_text(),
                        "print the versions of Outrider and llama.cpp, and how they were built");
  root.allow_extras();
  root.footer(kExample + std::string(kExitCodes));
  for (const std::unique_ptr<Command>& command : commands) {
    CLI::App* app = root.add_subcommand(command->name(), command->summary());
    app->group("Commands");
    app->allow_extras();
    command->add_options(*app);
    app->footer(command->details() + "\n\n" + kLayersHelp);
  }
  add_layers(root);
}

std::vector<const CLI::App*> parsed_commands(const CLI::App& root) {
  return root.get_subcommands([](const CLI::App* app) { return app->parsed() > 0; });
}

// Throws UsageError where the first argument should be a command and is none.
void check_command(const CLI::App& root, const std::vector<std::string>& names) {
  const std::vector<std::string> rest = root.remaining(/*recurse=*/true);
  if (!parsed_commands(root).empty() || rest.empty() || rest.front().starts_with('-')) return;
  const std::string near = nearest(rest.front(), names);
  const std::string see = "'outrider --help' shows how they are used";
  throw UsageError("unknown command '" + rest.front() + "'; commands are " + list_of(names),
                   near.empty() ? see : "did you mean " + near + "? " + see);
}

std::vector<std::string> names_of(const std::vector<std::unique_ptr<Command>>& commands) {
  std::vector<std::string> names;
  for (const std::unique_ptr<Command>& command : commands) names.push_back(command->name());
  return names;
}

Command& chosen_command(const CLI::App& root,
                        const std::vector<std::unique_ptr<Command>>& commands) {
  const std::vector<const CLI::App*> parsed = parsed_commands(root);
  const std::vector<std::string> rest = root.remaining(/*recurse=*/true);
  const std::vector<std::string> names = names_of(commands);
  check_command(root, names);
  if (parsed.empty() && rest.empty()) {
    throw UsageError("no command was given; commands are " + list_of(names),
                     "'outrider --help' shows how they are used");
  }
  if (parsed.empty()) throw unexpected_arguments(root, rest);
  if (parsed.size() > 1) {
    throw UsageError("two commands at once: " + parsed[0]->get_name() + " and " +
                     parsed[1]->get_name());
  }
  if (!rest.empty()) throw unexpected_arguments(*parsed.front(), rest);
  return **std::find_if(commands.begin(), commands.end(), [&](const auto& command) {
    return command->name() == parsed.front()->get_name();
  });
}

// The arguments as one line that a shell reads as the same arguments.
std::string typed(int argc, const char* const* argv) {
  std::string line = "outrider";
  for (int i = 1; i < argc; ++i) line += " " + shell_word(argv[i]);
  return line;
}

// Threads that take turns on a processor make a step many times as long.
void warn_of_threads(const ModelArguments& models) {
  const std::int32_t n = usable_processors();
  if (models.target.n_threads <= n) return;
  const std::string given = std::to_string(models.target.n_threads);
  print_warning(origin("--threads", given) + " is " + given + ", but " + std::to_string(n) +
                (n == 1 ? " processor" : " processors") +
                " may be used here; steps take longer with more threads");
}

// Throws UsageError for an option that was typed and does nothing here.
void warn_of_needs(const CLI::App& root, const Command& command) {
  const CLI::App& app = *root.get_subcommand(command.name());
  for (const std::string& warning : check_needs(app, command.facts())) print_warning(warning);
}

// --help and --version, but not of a command that is not there. Throws UsageError.
int print_help(const CLI::App& root, const std::vector<std::unique_ptr<Command>>& commands,
               const CLI::Success& call) {
  check_command(root, names_of(commands));
  std::ostringstream text;
  root.exit(call, text, text);
  TextOutput output(STDOUT_FILENO, /*color=*/false);
  output.write(text.str());
  return output.status().ok() ? kDone : fail(output.status());
}

// Throws UsageError.
int parse_and_run(CLI::App& root, const std::vector<std::unique_ptr<Command>>& commands, int argc,
                  const char* const* argv) {
  try {
    root.parse(arguments_to_parse(root, argc, argv));
  } catch (const CLI::Success& call) {
    return print_help(root, commands, call);
  }
  Command& command = chosen_command(root, commands);
  command.check();
  warn_of_needs(root, command);
  const Status processor = command.computes() ? llama::check_processor() : Status();
  if (!processor.ok()) return fail(processor);
  const Status prepared = command.prepare();
  if (!prepared.ok()) return fail(prepared);
  ModelArguments* const models = command.models();
  if (models != nullptr) warn_of_threads(*models);
  if (models != nullptr && !command.downloads_models()) {
    const int fetched = fetch_models(*models);
    if (fetched != kDone) return fetched;
    if (command.trusts_models()) {
      name_draft(*models);
      offer_draft(*models);
    }
  }
  return command.run_and_tell(typed(argc, argv));
}

// `outrider model-host CHANNEL MEMORY`: how a target in a process of its own is started. Not for
// people, so not among the commands; and no option may disturb it, wherever it is given.
int host_model(const char* const* argv) {
  try {
    return run_model_host(std::stoi(argv[2]), std::stoi(argv[3]));
  } catch (const std::exception& error) {
    print_error(std::string("model-host: ") + error.what());
    return kFailed;
  }
}

}  // namespace

int Command::run_and_tell(std::string command_line) {
  command_line_ = std::move(command_line);
  const Result<int> code = run();
  if (code.ok()) return *code;
  if (!terminal_) return fail(code.status());
  terminal_->progress.clear();
  return fail(code.status(), terminal_->signals);
}

Result<std::shared_ptr<const Vocabulary>> Command::read_vocabulary(const std::string& path) {
  Result<std::shared_ptr<llama::ModelFile>> file =
      llama::ModelFile::load_vocabulary(path, terminal_->load_hooks("reading the vocabulary"));
  terminal_->progress.clear();
  if (!file.ok()) return file.status();
  const Vocabulary& vocabulary = (*file)->text_vocabulary();
  return std::shared_ptr<const Vocabulary>(*std::move(file), &vocabulary);  // shares its life
}

Result<int> Command::print(std::string_view text) {
  if (terminal_) terminal_->progress.clear();
  TextOutput output(STDOUT_FILENO, /*color=*/false);
  output.write(text);
  OUTRIDER_RETURN_IF_ERROR(output.status());
  return kDone;
}

Result<int> Command::print(const json::Json& object, const std::string& table) {
  return print(output_.json ? json::encode(object) + "\n" : table);
}

std::vector<std::unique_ptr<Command>> make_commands() {
  std::vector<std::unique_ptr<Command>> commands;
  for (const auto make :
       {make_run_command, make_chat_command, make_compare_command, make_inspect_command,
        make_worker_command, make_serve_command, make_rpc_command, make_replay_command,
        make_ngram_command, make_suffix_command, make_calibrate_command, make_bench_command,
        make_make_draft_command, make_completion_command, make_man_command}) {
    commands.push_back(make());
  }
  return commands;
}

int run_command_line(int argc, const char* const* argv) {
  if (argc == 4 && std::string_view(argv[1]) == "model-host") return host_model(argv);
  const std::vector<std::unique_ptr<Command>> commands = make_commands();
  CLI::App root(kSummary, "outrider");
  // The last line of defence: what is thrown in spite of all is a bug or a lack of memory, and
  // still becomes a message and an exit code.
  try {
    declare(root, commands);
    return parse_and_run(root, commands, argc, argv);
  } catch (const CLI::ParseError& error) {
    const UsageError wrong = translate(error);
    print_error(wrong.what(), wrong.hint());
    return kWrongUsage;
  } catch (const std::bad_alloc&) {
    print_error("out of memory", "a smaller --ctx or a smaller model needs less");
  } catch (const std::exception& error) {
    print_error(std::string("unexpected failure: ") + error.what());
  }
  return kFailed;
}

}  // namespace outrider::tools
