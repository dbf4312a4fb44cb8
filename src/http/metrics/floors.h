// Floors: the least time that a model's steps could take on this machine, for the page's cost
// curve.
//
// Measuring needs a second in which nothing else computes, so it is done once for a model, when it
// is asked for and no completion runs or waits; those that come meanwhile wait for it.
//
// Any thread. Tested by floors_test.cc.
#pragma once

#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "base/cost_point.h"
#include "serve/runtime.h"

namespace outrider::http {

class Floors {
 public:
  // By width; empty: there is none for this model (its layers are on other devices). Called with
  // the model idle, on its decode thread.
  using Measure = std::function<std::vector<CostPoint>(const Target& target)>;

  // Before the first find(). Without it nothing is known.
  void measure_with(Measure measure) { measure_ = std::move(measure); }

  // Nothing: not measured, and not to be measured now.
  std::optional<std::vector<CostPoint>> find(const std::string& model, Runtime& runtime);

 private:
  struct Known {
    std::string path;  // of the target: /rpc may put another one under the name
    std::vector<CostPoint> floor;
  };

  Measure measure_;
  std::mutex mutex_;  // guards known_, and lets one thread measure
  std::map<std::string, Known> known_;
};

}  // namespace outrider::http
