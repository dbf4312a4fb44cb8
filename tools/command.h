// A command: `outrider NAME ...`.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <CLI/CLI.hpp>

#include "base/status.h"
#include "json/json.h"
#include "model/vocabulary.h"
#include "tools/options/needs.h"
#include "tools/terminal.h"

namespace outrider::tools {

struct ModelArguments;

class Command {
 public:
  // `summary`: one line of `outrider --help`. `details`: printed below the options of its own
  // --help. Static storage.
  Command(const char* name, const char* summary, const char* details)
      : name_(name), summary_(summary), details_(details) {}
  virtual ~Command() = default;

  std::string name() const { return name_; }
  std::string summary() const { return summary_; }
  std::string details() const { return details_; }

  // Declares its options, whose values live in this object.
  virtual void add_options(CLI::App& app) = 0;

  // After parsing. Throws UsageError for values that do not go together.
  virtual void check() = 0;

  // What is wrong with its files, as far as that can be found before models are downloaded: reads
  // constraints and prompts (not from standard input), and looks whether outputs can be written.
  // Throws UsageError as check() does. Errors: as of run(). REQUIRES: check() has passed
  virtual Status prepare() { return Status(); }

  // What decides whether its options do anything. REQUIRES: check() has passed
  virtual OptionFacts facts() const { return {}; }

  // The models to be there before run() is called; null: none. Those of the hub are downloaded.
  virtual ModelArguments* models() { return nullptr; }

  // True when run() downloads them itself, since a signal's end means something else to it than to
  // others.
  virtual bool downloads_models() const { return false; }

  // False when no file of models() may be read in this process, since it may be damaged.
  virtual bool trusts_models() const { return true; }

  // False when it executes nothing of llama.cpp, so that any processor will do.
  virtual bool computes() const { return true; }

  // Does the work and returns the exit code. Errors: what failed, which is not said yet. Throws
  // UsageError as check() does. REQUIRES: prepare() has passed, models() are files, unless
  // downloads_models()
  virtual Result<int> run() = 0;
  // run(), with what failed on stderr. Where a signal ended it the exit code tells of that.
  // `command_line`: the call as it could be typed again.
  int run_and_tell(std::string command_line);

 protected:
  // For results that say how they were made.
  const std::string& command_line() const { return command_line_; }
  // From now on, until the command's own end, signals ask it to end (tools/terminal.h).
  Terminal& watch(const std::vector<int>& others = {}) {
    return terminal_.emplace(output_, others);
  }
  // The vocabulary of a GGUF file, of whose weights nothing is read. Errors name it; kCancelled
  // by a signal. No progress is shown afterwards. REQUIRES: watch() was called
  Result<std::shared_ptr<const Vocabulary>> read_vocabulary(const std::string& path);
  // A result on stdout, below no progress bar. Returns kDone. Errors: those of writing.
  Result<int> print(std::string_view text);
  // `object` with --json, else `table`.
  Result<int> print(const json::Json& object, const std::string& table);

  OutputArguments output_;  // for add_output_options(), where the command has them

 private:
  const char* name_;
  const char* summary_;
  const char* details_;
  std::string command_line_;
  std::optional<Terminal> terminal_;  // of watch()
};

std::unique_ptr<Command> make_run_command();
std::unique_ptr<Command> make_chat_command();
std::unique_ptr<Command> make_compare_command();
std::unique_ptr<Command> make_inspect_command();
std::unique_ptr<Command> make_ngram_command();
std::unique_ptr<Command> make_replay_command();
std::unique_ptr<Command> make_worker_command();
std::unique_ptr<Command> make_rpc_command();
std::unique_ptr<Command> make_serve_command();
std::unique_ptr<Command> make_suffix_command();
std::unique_ptr<Command> make_bench_command();
std::unique_ptr<Command> make_calibrate_command();
std::unique_ptr<Command> make_make_draft_command();
std::unique_ptr<Command> make_completion_command();
std::unique_ptr<Command> make_man_command();

// All of them, in the order of the help.
std::vector<std::unique_ptr<Command>> make_commands();

// The whole program, from the arguments to the exit code.
int run_command_line(int argc, const char* const* argv);

}  // namespace outrider::tools
