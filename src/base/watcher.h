// Watcher: who looks on at work that takes a while, and may end it.
#pragma once

#include <atomic>
#include <functional>
#include <string>

namespace outrider {

struct Watcher {
  // What goes on, and how far it is, 0 to 1; empty: nobody wants to know. From any thread.
  std::function<void(const std::string& title, double fraction)> progress = {};
  // Raised when the work shall end; null: never.
  const std::atomic<bool>* interrupt = nullptr;

  bool interrupted() const { return interrupt != nullptr && interrupt->load(); }
  void update(const std::string& title, double fraction) const {
    if (progress) progress(title, fraction);
  }
};

}  // namespace outrider
