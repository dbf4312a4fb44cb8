#include "llama/kernels/compute_threads.h"

#include <algorithm>
#include <atomic>

namespace outrider::llama {
namespace {

// The team that computes for this thread; null: OpenMP's.
threads::Team*& current() {
  static thread_local threads::Team* team = nullptr;
  return team;
}

std::atomic<std::int64_t>& n_graphs() {
  static std::atomic<std::int64_t> n{0};
  return n;
}

}  // namespace

std::int64_t graphs_by_own_threads() { return n_graphs().load(std::memory_order_relaxed); }

std::int64_t graphs_on_fewer_threads() { return threads::Team::n_narrowed(); }

ComputeThreads::ComputeThreads(threads::Teams& teams, threads::Cores cores)
    : team_(teams, cores), before_(current()) {
  current() = &*team_;
}

ComputeThreads::~ComputeThreads() { current() = before_; }

bool has_own_threads() {
#if defined(OUTRIDER_OWN_THREADS)
  return true;
#else
  return false;
#endif
}

#if defined(OUTRIDER_OWN_THREADS)

// What GCC makes of `#pragma omp` (libgomp's ABI, libgomp_g.h): __wrap_NAME is called where ggml
// calls NAME, and __real_NAME is OpenMP's own.
// NOLINTBEGIN(bugprone-reserved-identifier,readability-identifier-naming)
extern "C" {

using GompWork = void (*)(void*);

void __real_GOMP_parallel(GompWork work, void* data, unsigned n_threads, unsigned flags);
void __real_GOMP_barrier();
bool __real_GOMP_single_start();
int __real_omp_get_thread_num();
int __real_omp_get_num_threads();

// `#pragma omp parallel num_threads(n)`; 0: as many as OpenMP would take, which ggml never asks for
// while it computes a graph.
void __wrap_GOMP_parallel(GompWork work, void* data, unsigned n_threads, unsigned flags) {
  // Within a run, whose place is all that can be told, the caller works alone.
  if (threads::Team::here() != nullptr) return threads::Team::run_alone(work, data);
  if (current() == nullptr || n_threads == 0) {
    return __real_GOMP_parallel(work, data, n_threads, flags);
  }
  n_graphs().fetch_add(1, std::memory_order_relaxed);
  const unsigned most = threads::Team::kMostThreads;
  current()->run(static_cast<int>(std::min(n_threads, most)), work, data);
}

void __wrap_GOMP_barrier() {
  if (threads::Team::here() == nullptr) return __real_GOMP_barrier();
  threads::Team::meet();
}

// `#pragma omp single`: one thread does it, and a barrier follows.
bool __wrap_GOMP_single_start() {
  const threads::Team::Member* here = threads::Team::here();
  return here == nullptr ? __real_GOMP_single_start() : here->index == 0;
}

int __wrap_omp_get_thread_num() {
  const threads::Team::Member* here = threads::Team::here();
  return here == nullptr ? __real_omp_get_thread_num() : here->index;
}

int __wrap_omp_get_num_threads() {
  const threads::Team::Member* here = threads::Team::here();
  return here == nullptr ? __real_omp_get_num_threads() : here->n;
}

}  // extern "C"
// NOLINTEND(bugprone-reserved-identifier,readability-identifier-naming)

#endif

}  // namespace outrider::llama
