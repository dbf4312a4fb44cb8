// outrider-widen: a larger stand-in for a model, with the same text. See testing/widen.h.
#include "testing/widen_command.h"

int main(int argc, char** argv) { return outrider::testing::run_widen_command(argc, argv); }
