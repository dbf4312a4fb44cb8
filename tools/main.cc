// outrider: speculative decoding on the command line.
#include <cstdlib>
#include <string>
#include <vector>

#include "tools/command.h"
#include "tools/options/hidden_values.h"
#include "tools/standard_streams.h"

int main(int argc, char** argv) {
  outrider::tools::open_closed_streams();
  // Should ggml abort after all, it must not start a debugger whose lines end up in the output.
  setenv("GGML_NO_BACKTRACE", "1", /*overwrite=*/0);
  const std::vector<std::string> arguments(argv, argv + argc);
  outrider::tools::hide_values(argc, argv, "--api-key");
  std::vector<const char*> given;
  for (const std::string& argument : arguments) given.push_back(argument.c_str());
  return outrider::tools::run_command_line(argc, given.data());
}
