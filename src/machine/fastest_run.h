// How long work takes that several threads do at once.
#pragma once

#include <cstdint>
#include <functional>
#include <thread>

#include "base/status.h"

namespace outrider {

// Makes a thread that runs `body`, or throws.
using ThreadMaker = std::function<std::jthread(std::function<void()> body)>;

// The shortest of `times` runs of `work(thread)` on `n_threads` threads at once, both >= 1, in ms:
// from the first thread's begin to the last one's end. The threads are new for each run. `make`:
// for tests; empty: the system's. Errors: kResourceExhausted when there are not so many threads;
// of that run, none has done anything.
Result<double> fastest_run(std::int32_t n_threads, int times,
                           const std::function<void(std::int32_t)>& work,
                           const ThreadMaker& make = {});

// Milliseconds that this process has computed so far, all threads together: what other programs
// want of the cores changes it little.
double processor_ms();

}  // namespace outrider
