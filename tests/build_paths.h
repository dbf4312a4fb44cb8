// Where the build has put the programs that the tests run. The paths are known to one file only:
// as definitions for all of them they would keep ccache from finding the tests of another checkout.
#pragma once

#include <string>

namespace outrider::testing {

std::string outrider_binary();  // the command itself
std::string peer_path(
    const std::string& name);  // a program of llama.cpp's; `./dev peers` builds it
std::string commit_file();     // what cmake/build_commit.cmake made in this build
std::string example_path(const std::string& name);

}  // namespace outrider::testing
