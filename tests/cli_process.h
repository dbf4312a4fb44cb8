// Runs the real command `outrider` as a child process, on tiny models in a folder of the test's
// own.
#pragma once

#include <sys/types.h>

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "json/json.h"

namespace outrider::testing {

struct CliCall {
  std::vector<std::string> arguments;              // after the program's name
  std::map<std::string, std::string> environment;  // on top of PATH, HOME, ...; no OUTRIDER_*
  std::string input;                               // of standard input
  bool terminal = false;    // stdout and stderr are one terminal; read as `out`
  std::string stdout_to;    // a file to write to instead of reading it
  std::vector<int> closed;  // descriptors, of 0 to 2, that the command is started without

  // Standard input stays open, and SIGINT is sent once all of `input` has been read.
  bool interrupt_when_read = false;

  // Called whenever the child has written; `out` and `err` are all of it so far. Returns false to
  // close the reading end of stdout.
  std::function<bool(pid_t child, const std::string& out, const std::string& err)> on_output;
};

struct CliResult {
  int exit_code = -1;  // -1: ended by `signal`
  int signal = 0;
  std::string out;
  std::string err;

  // stdout as one JSON object and nothing else. Fails the test when it is not.
  json::Json object() const;
};

// For a child that was just forked: becomes the command, its descriptors as they are.
[[noreturn]] void become_cli(const CliCall& call);

// Waits for the child to end. Children that take longer than five minutes are killed, so that a
// hang is a failure.
CliResult run_cli(const CliCall& call);

// Nothing on stdout, one error line that begins with `message`, and at most one hint, which holds
// `hint`, on stderr.
void expect_message(const CliResult& result, int exit_code, const std::string& message,
                    const std::string& hint = "");

// A folder that is removed with everything in it. Verdicts of the probe are cached in it too.
class CliFolder {
 public:
  CliFolder();
  ~CliFolder();
  CliFolder(const CliFolder&) = delete;
  CliFolder& operator=(const CliFolder&) = delete;

  std::string path(const std::string& name) const { return root_ + "/" + name; }

  // Writes a file and returns its path.
  std::string write(const std::string& name, const std::string& contents) const;

  // A call whose cache lies in this folder and whose probe is short.
  CliCall call(std::vector<std::string> arguments) const;

 private:
  std::string root_;
};

// The call, its probe free to run to the end: for tests of the verdict, which a short probe on a
// busy machine leaves at "exact up to width 4".
CliCall whole_probe(CliCall call);

std::string read_file(const std::string& path);

// A pair of tiny quantised models, written once per process: the draft agrees with the target in
// about half of all positions.
struct CliModels {
  CliFolder folder;
  std::string target;
  std::string draft;
  std::string other;  // the target's tokens at other ids
  std::string wordy;  // a target whose tokens the draft mostly has not
};
const CliModels& cli_models();

}  // namespace outrider::testing
