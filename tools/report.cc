#include "tools/report.h"

#include <unistd.h>

#include <cstdio>

#include "tools/field_options.h"
#include "tools/text_output.h"

namespace outrider::tools {

std::string one_line(std::string_view text) {
  std::string line(text);
  while (!line.empty() && line.back() == '\n') line.pop_back();
  for (char& c : line) {
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7F) c = ' ';
  }
  return line;
}

void print_error(std::string_view message, std::string_view hint) {
  std::string text = "outrider: error: " + one_line(message) + "\n";
  if (!hint.empty()) text += "outrider: hint: " + one_line(hint) + "\n";
  std::fputs(text.c_str(), stderr);
}

void print_warning(std::string_view message) {
  std::fputs(("outrider: warning: " + one_line(message) + "\n").c_str(), stderr);
}

int fail(const Status& status) {
  print_error(option_message(status));
  return kFailed;
}

int fail(const Status& status, const SignalWatch& signals) {
  const int code = fail(status);
  return signals.raised() ? signals.exit_code() : code;
}

int print_result(std::string_view text) {
  TextOutput output(STDOUT_FILENO, /*color=*/false);
  output.write(text);
  return output.status().ok() ? kDone : fail(output.status());
}

}  // namespace outrider::tools
