// The command outrider-requantize, as a function so that tests can call it.
#pragma once

namespace outrider::testing {

// Parses the arguments and converts. Returns the exit code: 0 done (or help was asked for), 1
// failed with a message on stderr, 2 wrong usage.
int run_requantize_command(int argc, const char* const* argv);

}  // namespace outrider::testing
