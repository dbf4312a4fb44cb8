// Whose threads compute ggml's graphs on the processor: Outrider's (src/threads) where they can be.
//
// ggml has its own threads or OpenMP's, and both spin at every one of the several hundred barriers
// of a graph: beside another process that wants the cores, they spin for its time slices. Where
// ggml is compiled for GCC's OpenMP, the five functions of it that a graph calls are directed to
// this layer by the linker (cmake/own_threads.cmake; ggml's source stays as it is). They go on to
// OpenMP unless a ComputeThreads lives on the calling thread, so whatever else in the process uses
// OpenMP, an app that Outrider is linked into among it, is not touched.
#pragma once

#include <cstdint>
#include <memory>

#include "threads/teams.h"

namespace outrider::llama {

// Whether this build directs ggml to Outrider's threads.
bool has_own_threads();

// Graphs of the process that they have computed. Any thread.
std::int64_t graphs_by_own_threads();

// Those of them that took fewer threads than asked for, since others had the cores. Any thread.
std::int64_t graphs_on_fewer_threads();

// While it lives, what ggml computes on the calling thread is computed by a team of `teams`.
// Several may live on one thread, the last one counts. `cores`: kLeft where the bits of what is
// computed do not depend on the number of threads, or do not matter. llama.cpp's attention cuts
// single rows into as many pieces as there are threads.
class ComputeThreads {
 public:
  explicit ComputeThreads(threads::Teams& teams, threads::Cores cores = threads::Cores::kAsked);
  ~ComputeThreads();
  ComputeThreads(const ComputeThreads&) = delete;
  ComputeThreads& operator=(const ComputeThreads&) = delete;

 private:
  threads::Teams::Borrowed team_;
  threads::Team* before_;
};

}  // namespace outrider::llama
