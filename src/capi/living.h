// The instances that there are. A process may end without having destroyed them, and what they
// compute must not outlive the statics that it computes with.
#pragma once

#include "capi/instance.h"

namespace outrider::capi {

// From now on the process's exit shuts `instance` down. Throws std::bad_alloc, and then it does
// not.
void add_living(Instance* instance);

// No more. Waits while that is being done; fine for one that was never added.
void remove_living(Instance* instance) noexcept;

// Shuts all of them down; for the process's end.
void shut_down_living() noexcept;

}  // namespace outrider::capi
