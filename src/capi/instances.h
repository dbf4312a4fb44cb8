// The instances that there are, and those that end in the background: outrider_destroy was called
// for them inside a callback, where the thread would wait for itself.
//
// A process may end without having destroyed them, or while another thread does, and what they
// compute must not outlive the statics that it computes with.
#pragma once

#include <memory>

#include "capi/instance.h"

namespace outrider::capi {

// From now on the process's exit shuts `instance` down. Throws std::bad_alloc, and then it does
// not.
void add_living(Instance* instance);

// `instance` is about to be destroyed, which the exit waits for: until remove_living(). Waits while
// it is being shut down. Fine for one that was never added, like the next.
void begin_destroying(Instance* instance) noexcept;
void remove_living(Instance* instance) noexcept;

// Closes `instance` and ends it on another thread, as soon as there can be one: at once, or when
// this or end_waiting() is next called.
void end_in_background(std::unique_ptr<Instance> instance) noexcept;

// Ends those for which there was no thread, on this one. REQUIRES: not from a callback
void end_waiting() noexcept;

// For the process's end: returns when all that end in the background have ended.
void finish_background() noexcept;

// For the process's end: shuts all of them down, then keeps what they learned; with `wait`, waits
// for those that are being destroyed.
void shut_down_living(bool wait) noexcept;

}  // namespace outrider::capi
