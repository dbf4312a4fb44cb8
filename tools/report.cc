#include "tools/report.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <cstdio>

#include "base/one_line.h"
#include "base/wrap.h"
#include "store/atomic_file.h"
#include "tools/options/options.h"

namespace outrider::tools {
namespace {

// A terminal would break it inside of words. What is no terminal, a program's pipe, gets one line.
std::string fitted(const std::string& line) {
  winsize size = {};
  if (isatty(STDERR_FILENO) != 1 || ioctl(STDERR_FILENO, TIOCGWINSZ, &size) != 0) return line;
  return line.size() <= size.ws_col || size.ws_col == 0 ? line : wrap(line, 2, size.ws_col);
}

void put_line(const std::string& kind, std::string_view text) {
  std::fputs((fitted("outrider: " + kind + one_line(text)) + "\n").c_str(), stderr);
}

}  // namespace

void print_error(std::string_view message, std::string_view hint) {
  put_line("error: ", message);
  if (!hint.empty()) print_hint(hint);
}

void print_hint(std::string_view hint) { put_line("hint: ", hint); }
void print_warning(std::string_view message) { put_line("warning: ", message); }
void print_note(std::string_view message) { put_line("", message); }

void print_text(std::string_view text) {
  const bool shown = isatty(STDERR_FILENO) == 1;
  std::fputs((shown ? terminal_text(text) : std::string(text)).c_str(), stderr);
}

void print_not_kept(const Status& why) {
  print_warning("what was learned cannot be kept: " + option_message(why));
}

int fail(const Status& status) {
  print_error(option_message(status));
  return kFailed;
}

int fail(const Status& status, const SignalWatch& signals) {
  const int code = fail(status);
  return signals.raised() ? signals.exit_code() : code;
}

Status check_output(const std::string& option, const std::optional<std::string>& path) {
  return path ? check_writable(*path).with_context(option) : Status();
}

}  // namespace outrider::tools
