// Server: answers requests for the models of a catalog: who may ask (access.h), which endpoint it
// is, and what is counted and logged. It knows no sockets (listener.h).
//
// Any thread; answer() waits as long as its endpoint does.
//
// Tested by server_test.cc.
#pragma once

#include <memory>
#include <optional>
#include <string_view>

#include "catalog/catalog.h"
#include "http/access/access.h"
#include "http/access/server_options.h"
#include "http/endpoint/server_state.h"
#include "http/exchange/exchange.h"
#include "http/metrics/access_log.h"
#include "http/metrics/call.h"

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

  // What the endpoints see.
  ServerState& state() { return state_; }
  const ServerOptions& options() const { return state_.options(); }

  // Before the first request; null: no log. It must outlive this.
  void log_to(LineSink* sink) { log_ = sink; }

 private:
  HttpReply route(const HttpRequest& request);
  // `endpoint`: what it is counted as.
  std::shared_ptr<Call> begin_call(const HttpRequest& request, std::string_view endpoint);
  bool is_open(const HttpRequest& request) const;  // needs no key
  std::optional<HttpReply> page_of(const HttpRequest& request) const;

  ServerState state_;
  const Access access_;
  LineSink* log_ = nullptr;
};

}  // namespace outrider::http
