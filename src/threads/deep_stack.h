// For code of others that recurses once for each character of what it reads.
#pragma once

#include <cstddef>
#include <functional>

#include "base/status.h"

namespace outrider {

// Calls `work`, which must not throw, on a thread whose stack has `bytes` at least, and waits for
// its end. Memory is taken only as far as the stack grows. Errors: kResourceExhausted when there is
// no such thread; then `work` was not called.
Status call_with_stack(std::size_t bytes, const std::function<void()>& work);

}  // namespace outrider
