// An operator new of a program's own (failing_new.cc), whose allocations can be made to fail.
#pragma once

#include <atomic>
#include <cstdint>

namespace outrider::failing_new {

// On this thread the nth allocation from now on fails; 0: none.
inline thread_local std::int64_t left_here = 0;
// Those that did, on all threads.
inline std::atomic<std::int64_t> failed{0};

// On this thread each array fails that is to throw where there is no memory.
inline thread_local bool no_arrays = false;
inline thread_local std::int64_t refused_arrays = 0;

}  // namespace outrider::failing_new
