// The command `outrider model-host`, which is not for people: the process that runs a target for
// --isolate and --workers.
#pragma once

namespace outrider {

// Runs a model for the parent at the other end of `channel`, with rows in `memory`, both inherited
// descriptors, until the parent says goodbye or dies. Returns the exit code: 0 after a goodbye, 1
// when something failed (the reason is on stderr), 2 for descriptors that are not open.
int run_model_host(int channel, int memory);

}  // namespace outrider
