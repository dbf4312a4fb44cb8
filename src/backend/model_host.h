// The main function of the host: the process that runs an isolated target, or one with workers. It
// is started as `outrider model-host`, an internal command. What it answers: remote/serve_model.h.
#pragma once

namespace outrider {

// Runs a model for the parent at the other end of `channel`, with rows in `memory`, both inherited
// descriptors, until the parent says goodbye or dies. Returns the exit code: 0 after a goodbye, 1
// when something failed (the reason is on stderr), 2 for descriptors that are not open.
int run_model_host(int channel, int memory);

}  // namespace outrider
