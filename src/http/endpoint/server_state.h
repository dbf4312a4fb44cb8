// ServerState: what the server's endpoints see of it: the options, the models, and what is counted.
//
// Any thread.
//
// Tested by server_test.cc.
#pragma once

#include <atomic>
#include <string>
#include <string_view>

#include "catalog/catalog.h"
#include "http/access/server_options.h"
#include "http/metrics/access_log.h"
#include "http/metrics/floors.h"
#include "http/metrics/metrics.h"
#include "serve/completion_result.h"

namespace outrider::http {

class ServerState {
 public:
  // `catalog` must outlive this.
  ServerState(const ServerOptions& options, Catalog& catalog)
      : options_(options), catalog_(catalog) {}
  ServerState(const ServerState&) = delete;
  ServerState& operator=(const ServerState&) = delete;

  const ServerOptions& options() const { return options_; }
  Catalog& catalog() { return catalog_; }
  Metrics& metrics() { return metrics_; }
  Floors& floors() { return floors_; }

  // Of the model that answers to such a request, its own name: the default one's for an empty name,
  // and for an unknown one with any_model_name; else an unknown name as it is.
  std::string model_name(std::string_view asked) const;

  // New requests are refused from now on; those that wait for a model give up.
  void stop() { stopping_.store(true); }
  bool stopping() const { return stopping_.load(); }

  // The model of that request's completions is open.
  void note_model(CallRecord& record, const std::string& model);
  // A completion of that request has ended, which was started so long after the request's begin.
  void note_result(CallRecord& record, const CompletionResult& result, double before_ms);

 private:
  const ServerOptions options_;
  Catalog& catalog_;
  Metrics metrics_;
  Floors floors_;
  std::atomic<bool> stopping_{false};
};

}  // namespace outrider::http
