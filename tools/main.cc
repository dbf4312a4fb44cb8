// outrider: speculative decoding on the command line.
#include "tools/command.h"

#include <cstdlib>

int main(int argc, char** argv) {
  // Should ggml abort after all, it must not start a debugger whose lines end up in the output.
  setenv("GGML_NO_BACKTRACE", "1", /*overwrite=*/0);
  return outrider::tools::run_command_line(argc, argv);
}
