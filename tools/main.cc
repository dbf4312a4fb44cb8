// outrider: speculative decoding on the command line.
#include "tools/command.h"

int main(int argc, char** argv) { return outrider::tools::run_command_line(argc, argv); }
