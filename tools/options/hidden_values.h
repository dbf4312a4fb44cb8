// Values of options that other users of the machine must not read where it lists its processes
// (ps).
//
// Tested by hidden_values_test.cc.
#pragma once

#include <string_view>

namespace outrider::tools {

// Overwrites the values of `option` ("--api-key") with stars, where they stand: systems show the
// arguments as they are in memory. Until then they could be read, so a file is better.
void hide_values(int argc, char** argv, std::string_view option);

}  // namespace outrider::tools
