// Scripts that complete the command line in shells, of a command table (tools/command_table.h).
// They hold all names themselves, so that a key's press starts no process.
#pragma once

#include <string>
#include <vector>

#include "tools/command_table.h"

namespace outrider::tools {

// "bash", "zsh", "fish".
const std::vector<std::string>& completion_shells();

// REQUIRES: `shell` is one of completion_shells()
std::string completion_script(const CommandTable& table, const std::string& shell);

}  // namespace outrider::tools
