#include "machine/fastest_run.h"

#include <algorithm>
#include <barrier>
#include <cstddef>
#include <ctime>
#include <exception>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.h"

namespace outrider {
namespace {

Result<double> run_once(std::int32_t n_threads, const std::function<void(std::int32_t)>& work,
                        const ThreadMaker& make) {
  // A clock of another thread would begin when that thread next gets a processor, which may be at
  // the end: one clock for all.
  std::barrier start(n_threads);
  const Stopwatch watch;
  const auto n = static_cast<std::size_t>(n_threads);
  std::vector<double> begins(n);
  std::vector<double> ends(n);
  bool given_up = false;  // written before the last one arrives, read behind that
  std::vector<std::jthread> threads;
  threads.reserve(n);
  try {
    for (std::int32_t t = 0; t < n_threads; ++t) {
      std::function<void()> body = [&, t] {
        start.arrive_and_wait();
        if (given_up) return;
        begins[static_cast<std::size_t>(t)] = watch.elapsed_ms();
        work(t);
        ends[static_cast<std::size_t>(t)] = watch.elapsed_ms();
      };
      threads.push_back(make ? make(std::move(body)) : std::jthread(std::move(body)));
    }
  } catch (const std::exception& error) {
    // Those that are there wait for the others, and are joined at the end.
    given_up = true;
    (void)start.arrive(static_cast<std::ptrdiff_t>(n - threads.size()));
    return resource_exhausted("there are only " + std::to_string(threads.size()) + " of " +
                              std::to_string(n_threads) +
                              " threads to measure with: " + error.what());
  }
  threads.clear();  // waits for them
  return *std::max_element(ends.begin(), ends.end()) -
         *std::min_element(begins.begin(), begins.end());
}

}  // namespace

Result<double> fastest_run(std::int32_t n_threads, int times,
                           const std::function<void(std::int32_t)>& work, const ThreadMaker& make) {
  double best = 0.0;
  for (int i = 0; i < times; ++i) {
    OUTRIDER_ASSIGN_OR_RETURN(const double ms, run_once(n_threads, work, make));
    best = i == 0 ? ms : std::min(best, ms);
  }
  return best;
}

double processor_ms() { return 1000.0 * static_cast<double>(std::clock()) / CLOCKS_PER_SEC; }

}  // namespace outrider
