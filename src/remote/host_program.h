// Which program runs a model in a process of its own.
#pragma once

#include <string>

#include "base/status.h"

namespace outrider {

// The path of the command `outrider`, of the same build as this code where possible:
//   $OUTRIDER_HOST_PROGRAM; else the running program, if it is `outrider`; else `outrider` beside
//   the library or program that holds this code, or in ../bin from there; else on the PATH.
// Errors: kNotFound, saying what to do.
Result<std::string> find_host_program();

}  // namespace outrider
