// The manual page outrider(1), of a command table.
#pragma once

#include <string>

#include "tools/command_table.h"

namespace outrider::tools {

// In the language of man(7). The page has no date, so that two builds of a version give one page.
std::string man_page(const CommandTable& table);

}  // namespace outrider::tools
