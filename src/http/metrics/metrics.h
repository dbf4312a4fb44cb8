// Metrics: what the server counts of its own: requests, and how long completions took. What
// runtimes count (tokens, drafts, slots) is theirs (serve/runtime_status.h).
//
// Any thread. Tested by metrics_test.cc.
#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>

#include "catalog/catalog.h"
#include "http/metrics/exposition.h"
#include "serve/completion_result.h"

namespace outrider::http {

class Metrics {
 public:
  // `endpoint`: a path of the table, or what stands for all others: clients must not be able to
  // make labels.
  void note_request(std::string_view endpoint, int status);
  // A request for a completion has its model, so many milliseconds after its begin.
  void note_model(const std::string& model, double model_ms);
  // `before_ms`: from the request's begin until that completion was started.
  void note_result(const std::string& model, const CompletionResult& result, double before_ms);

  void write(Exposition& out) const;

 private:
  struct Times {
    Histogram model;
    Histogram queue;
    Histogram first_token;
    Histogram per_token;
    Histogram whole;
  };

  mutable std::mutex mutex_;
  std::map<std::pair<std::string, int>, std::int64_t, std::less<>> requests_;
  std::map<std::string, Times> times_;  // by model
};

// Of each model by its name what it has counted since the start, and what the runtimes of open ones
// say of now. And of the process.
void write_models(Catalog& catalog, Exposition& out);
void write_process(Exposition& out);

}  // namespace outrider::http
