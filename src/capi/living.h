// The instances that there are. A process may end without having destroyed them, or while another
// thread does, and what they compute must not outlive the statics that it computes with.
#pragma once

#include "capi/instance.h"

namespace outrider::capi {

// From now on the process's exit shuts `instance` down. Throws std::bad_alloc, and then it does
// not.
void add_living(Instance* instance);

// `instance` is about to be destroyed, which the exit waits for: until remove_living(). Waits while
// it is being shut down. Fine for one that was never added, like the next.
void begin_destroying(Instance* instance) noexcept;
void remove_living(Instance* instance) noexcept;

// Shuts all of them down, and, with `wait`, waits for those that are being destroyed; for the
// process's end.
void shut_down_living(bool wait) noexcept;

}  // namespace outrider::capi
