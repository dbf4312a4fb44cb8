// Which commit this program was made of.
//
// The command and the libraries have a definition of their own (cmake/build_commit.cmake), which
// the linker prefers to the weak one of build_commit.cc. Tests and tools keep that: a commit that
// every program knew would link them all anew. Tested by tests/build_test.py and tests/cli_test.cc.
#pragma once

#include <string>
#include <string_view>

namespace outrider {

// "a6c4c17ab012", or "a6c4c17ab012-modified" where what was compiled is not what that commit has.
// Empty: made of no checkout of git (a release's archive), or a program that is not installed.
// Static.
std::string_view build_commit() noexcept;

// "0.1.0 (commit a6c4c17ab012)", or "0.1.0" alone.
inline std::string with_commit(const std::string& version) {
  const std::string commit(build_commit());
  return commit.empty() ? version : version + " (commit " + commit + ")";
}

}  // namespace outrider
