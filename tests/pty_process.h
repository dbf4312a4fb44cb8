// A command on a terminal of its own, as a person has it: what is typed goes through the terminal's
// line discipline, so Ctrl-C is a signal and Ctrl-D an end.
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>

#include "tests/cli_process.h"

namespace outrider::testing {

class PtyProcess {
 public:
  // Who has started it: the terminal's end itself, or a shell in between. Only what has a shell can
  // be stopped by Ctrl-Z. When it is, the shell takes the terminal back and writes "[stopped]", or
  // "[stopped in raw mode]" where the terminal was not left as it was found; with the next line
  // that is typed it lets it go on, as `fg` does.
  enum class By { kTerminal, kShell };

  // Starts the command of the call, whose input and callbacks do not count.
  explicit PtyProcess(const CliCall& call, By by = By::kTerminal);
  ~PtyProcess();  // kills what still runs
  PtyProcess(const PtyProcess&) = delete;
  PtyProcess& operator=(const PtyProcess&) = delete;

  // Keys: "\r" is Enter, "\x03" Ctrl-C, "\x04" Ctrl-D, "\x1a" Ctrl-Z.
  void type(const std::string& keys);

  // Reads until `text` stands in what came since the last expect(), and returns all up to its end.
  // Fails the test, and shows the screen, when the command ends before, or after a minute in which
  // nothing came.
  std::string expect(const std::string& text);

  // Reads until the command ends. Returns the exit code, or minus the signal's number. One that
  // says nothing for a minute is killed, and fails the test with what the screen shows.
  int wait();

  void resize(unsigned short rows, unsigned short columns);

  // All that it has written.
  const std::string& screen() const { return screen_; }
  pid_t pid() const { return pid_; }

 private:
  bool read_more();
  std::optional<int> wait_for_end();
  // The last lines of what it has written, escape sequences made visible.
  std::string shown() const;

  pid_t pid_ = -1;
  int terminal_ = -1;
  std::string screen_;
  std::size_t seen_ = 0;  // of it, by expect()
};

}  // namespace outrider::testing
