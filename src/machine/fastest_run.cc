#include "machine/fastest_run.h"

#include <algorithm>
#include <barrier>
#include <ctime>
#include <thread>
#include <vector>

#include "base/clock.h"

namespace outrider {

double fastest_run(std::int32_t n_threads, int times,
                   const std::function<void(std::int32_t)>& work) {
  // A clock of another thread would begin when that thread next gets a processor, which may be at
  // the end: one clock for all.
  double best = 0.0;
  for (int i = 0; i < times; ++i) {
    std::barrier start(n_threads);
    const Stopwatch watch;
    std::vector<double> begins(static_cast<std::size_t>(n_threads));
    std::vector<double> ends(begins.size());
    std::vector<std::jthread> threads;
    for (std::int32_t t = 0; t < n_threads; ++t) {
      threads.emplace_back([&, t] {
        start.arrive_and_wait();
        begins[static_cast<std::size_t>(t)] = watch.elapsed_ms();
        work(t);
        ends[static_cast<std::size_t>(t)] = watch.elapsed_ms();
      });
    }
    threads.clear();  // waits for them
    const double ms = *std::max_element(ends.begin(), ends.end()) -
                      *std::min_element(begins.begin(), begins.end());
    best = i == 0 ? ms : std::min(best, ms);
  }
  return best;
}

double processor_ms() { return 1000.0 * static_cast<double>(std::clock()) / CLOCKS_PER_SEC; }

}  // namespace outrider
