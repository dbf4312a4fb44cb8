// Destroys instances for which outrider_destroy was called inside a callback, where the thread
// would wait for itself.
#pragma once

#include <memory>

#include "capi/instance.h"

namespace outrider::capi {

// Closes `instance` and ends it on another thread, as soon as there can be one: at once, or when
// this or end_waiting() is next called.
void end_in_background(std::unique_ptr<Instance> instance) noexcept;

// Ends those for which there was no thread, on this one. REQUIRES: not from a callback
void end_waiting() noexcept;

// Returns when all have ended; for the process's end.
void finish_background() noexcept;

}  // namespace outrider::capi
