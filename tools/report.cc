#include "tools/report.h"

#include <cstdio>

#include "base/one_line.h"
#include "store/atomic_file.h"
#include "tools/field_options.h"

namespace outrider::tools {

void print_error(std::string_view message, std::string_view hint) {
  std::fputs(("outrider: error: " + one_line(message) + "\n").c_str(), stderr);
  if (!hint.empty()) print_hint(hint);
}

void print_hint(std::string_view hint) {
  std::fputs(("outrider: hint: " + one_line(hint) + "\n").c_str(), stderr);
}

void print_warning(std::string_view message) {
  std::fputs(("outrider: warning: " + one_line(message) + "\n").c_str(), stderr);
}

void print_note(std::string_view message) {
  std::fputs(("outrider: " + one_line(message) + "\n").c_str(), stderr);
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
