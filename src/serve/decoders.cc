#include "serve/decoders.h"

namespace outrider {

void Decoders::start(const StationPtr& station) {
  loops_.emplace_back(parts_, station);
  loops_.remove_if([](DecodeLoop& loop) {
    if (!loop.over()) return false;
    loop.join();
    return true;
  });
}

void Decoders::join() {
  for (DecodeLoop& loop : loops_) loop.join();
  loops_.clear();
}

}  // namespace outrider
