// The command outrider-widen, as a function so that tests can call it.
#pragma once

namespace outrider::testing {

// Parses the arguments and widens. Returns the exit code: 0 done (or help was asked for), 1 failed
// with a message on stderr, 2 wrong usage. SIGINT and SIGTERM end it with 1 and leave no file.
int run_widen_command(int argc, const char* const* argv);

}  // namespace outrider::testing
