// Decoders: the decode threads, one for each station at work (serve/decode_loop.h).
//
// A thread ends by itself when its station is released; it is joined when the next one is started,
// or at the runtime's end.
#pragma once

#include <list>

#include "serve/decode_loop.h"

namespace outrider {

class Decoders {
 public:
  explicit Decoders(RuntimeParts& parts) : parts_(parts) {}

  // A thread for `station`, which is among Stations::all() when the mutex is let go; else the
  // thread ends at once. With the mutex. May throw std::bad_alloc and std::system_error, with
  // nothing changed.
  void start(const StationPtr& station);

  // Waits until all have ended. REQUIRES: RuntimeShared::stop, without the mutex, and no start()
  // any more
  void join();

 private:
  RuntimeParts& parts_;
  std::list<DecodeLoop> loops_;  // guarded by the mutex
};

}  // namespace outrider
