// NotKept: what a runtime could not write to its folders, for its status: whoever learns it at a
// target's end has nobody to tell.
//
// Any thread. Its mutex is taken last: a station may end with the runtime's held.
#pragma once

#include <algorithm>
#include <cstddef>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "base/status.h"
#include "serve/runtime_options.h"

namespace outrider {

class NotKept {
 public:
  static constexpr std::size_t kMost = 16;  // texts

  // The same text is noted once. What was noted first goes beyond the most. May throw
  // std::bad_alloc, with nothing changed.
  void note(const Status& why) {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (std::find(texts_.begin(), texts_.end(), why.message()) != texts_.end()) return;
    texts_.push_back(why.message());
    if (texts_.size() > kMost) texts_.erase(texts_.begin());
  }

  std::vector<std::string> texts() const {
    const std::lock_guard<std::mutex> lock(mutex_);
    return texts_;
  }

 private:
  mutable std::mutex mutex_;
  std::vector<std::string> texts_;  // the newest last
};

// `options` whose not_kept also notes it.
inline RuntimeOptions noting(RuntimeOptions options, std::shared_ptr<NotKept> notes) {
  options.not_kept = [notes = std::move(notes),
                      told = std::move(options.not_kept)](const Status& why) {
    if (told) told(why);
    notes->note(why);
  };
  return options;
}

}  // namespace outrider
