// Call: a request from its arrival until its answer is written or given up. Its end counts it and
// writes its line of the access log.
//
// One thread. Tested by server_test.cc.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "http/exchange/exchange.h"
#include "http/metrics/access_log.h"
#include "http/metrics/metrics.h"

namespace outrider::http {

class Call {
 public:
  // `endpoint`: what it is counted as. `metrics` and `log` (may be null) must outlive it.
  Call(const HttpRequest& request, std::string_view endpoint, Metrics& metrics, LineSink* log);
  ~Call();
  Call(const Call&) = delete;
  Call& operator=(const Call&) = delete;

  void set_status(int status) { entry_.status = status; }
  void add_bytes(std::size_t bytes) { entry_.bytes += static_cast<std::int64_t>(bytes); }

 private:
  const std::shared_ptr<CallRecord> record_;
  const std::string endpoint_;
  Metrics& metrics_;
  LineSink* const log_;
  AccessEntry entry_;
};

// The reply, whose end, sent or not, is the end of `call`.
HttpReply count_reply(std::shared_ptr<Call> call, const HttpRequest& request, HttpReply reply);

}  // namespace outrider::http
