// outrider-requantize: another weight type for a GGUF model. See testing/requantize.h.
#include "testing/requantize_command.h"

int main(int argc, char** argv) { return outrider::testing::run_requantize_command(argc, argv); }
