// Which program runs a model in a process of its own.
#pragma once

#include <string>

#include "base/status.h"

namespace outrider {

// The path of the command `outrider`, of the same build as this code where possible:
//   $OUTRIDER_HOST_PROGRAM; else the running program, if it is `outrider`; else `outrider` beside
//   the library or program that holds this code, or where host_program_near() looks; else on the
//   PATH.
// Errors: kNotFound, saying what to do.
Result<std::string> find_host_program();

// The command that was installed with the library or program `code`, a path: in its folder, or from
// there in bin (a Python wheel), ../bin (a prefix), ../../bin (a prefix with lib/<architecture>, as
// Debian has). Empty where there is none.
std::string host_program_near(const std::string& code);

}  // namespace outrider
