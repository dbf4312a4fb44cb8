// Server: answers requests for the models of a catalog: who may ask (access.h), which endpoint it
// is, and what is counted and logged. It knows no sockets (listener.h).
//
// Any thread; answer() waits as long as its endpoint does.
//
// Tested by server_test.cc.
#pragma once

#include <atomic>
#include <optional>
#include <string>
#include <string_view>

#include "catalog/catalog.h"
#include "http/access.h"
#include "http/access_log.h"
#include "http/exchange.h"
#include "http/floors.h"
#include "http/metrics.h"
#include "http/server_options.h"
#include "serve/completion_result.h"

namespace outrider::http {

class Server {
 public:
  // `catalog` must outlive this. REQUIRES: valid options, with all keys (read_api_keys())
  Server(const ServerOptions& options, Catalog& catalog);
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  // Never throws: what an endpoint throws is status 500 or 503.
  HttpReply answer(const HttpRequest& request) noexcept;

  // What answer() says to a request that is not let in, which the body does not matter for: so it
  // need not be read. Its own body is not written yet. Nothing: read it.
  std::optional<HttpReply> refuse(const HttpRequest& request) const;

  // The answer to what did not become a whole request, by HTTP's status for that.
  HttpReply answer_unread(const HttpRequest& request, int status) noexcept;

  const ServerOptions& options() const { return options_; }
  Catalog& catalog() { return catalog_; }
  const Metrics& metrics() const { return metrics_; }
  Floors& floors() { return floors_; }

  // Before the first request; null: no log. It must outlive this.
  void log_to(LineSink* sink) { log_ = sink; }

  // By its name or another one that it has; an empty one: the default model.
  std::optional<CatalogStatus> find_model(std::string_view name) const;
  // Of the model that answers to such a request, its own name: the default one's for an empty name,
  // and for an unknown one with any_model_name; else an unknown name as it is.
  std::string model_name(std::string_view asked) const;

  // New requests are refused from now on; those that wait for a model give up.
  void stop() { stopping_.store(true); }
  bool stopping() const { return stopping_.load(); }

  // A completion of that request has ended.
  void note_result(CallRecord& record, const CompletionResult& result);

 private:
  HttpReply route(const HttpRequest& request);
  bool is_open(const HttpRequest& request) const;  // needs no key
  std::optional<HttpReply> page_of(const HttpRequest& request) const;

  const ServerOptions options_;
  const Access access_;
  Catalog& catalog_;
  Metrics metrics_;
  Floors floors_;
  LineSink* log_ = nullptr;
  std::atomic<bool> stopping_{false};
};

}  // namespace outrider::http
