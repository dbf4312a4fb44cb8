// Service: answers the methods for a runtime. The C interface and `outrider rpc` use it.
//
// Any thread may call, also while others wait. stop() ends the waiting; calls after it are answered
// with an error. Call wait_idle() before the destructor, which REQUIRES that all calls have
// returned and no Use is left.
//
// Tested by methods_test.cc.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>

#include "api/json_rpc.h"
#include "api/methods.h"

namespace outrider::api {

class Service {
 public:
  // `runtime` must outlive this. `for_operators`: whether Method::for_operators may be called.
  // `gives_up` (may be empty: never): whether those who call have gone, which ends their waits as
  // stop() does; asked on the threads of the calls.
  explicit Service(Runtime& runtime, bool for_operators = true, std::function<bool()> gives_up = {})
      : runtime_(runtime), for_operators_(for_operators), gives_up_(std::move(gives_up)) {}
  Service(const Service&) = delete;
  Service& operator=(const Service&) = delete;

  // While one lives, wait_idle() waits: for calls, and for what uses the runtime beside them.
  class Use {
   public:
    explicit Use(Service& service);
    ~Use();
    Use(const Use&) = delete;
    Use& operator=(const Use&) = delete;

   private:
    Service& service_;
  };

  // JSON-RPC 2.0 (api/json_rpc.h); empty when there is nothing to answer. Throws nothing but
  // std::bad_alloc.
  std::string call(std::string_view request);
  // One method, for who answers requests itself. REQUIRES: a Use of the caller's, or no wait_idle()
  CallResult dispatch(std::string_view method, const json::Json& params);

  // Calls that wait end early: runs are cancelled and give what they have. New calls are refused.
  void stop() { stopping_.store(true); }

  // Returns when no call is running and there is no Use. REQUIRES: not from inside one
  void wait_idle();

 private:
  Runtime& runtime_;
  const bool for_operators_;
  const std::function<bool()> gives_up_;
  std::atomic<bool> stopping_{false};
  std::mutex mutex_;  // guards running_
  std::condition_variable idle_;
  std::int64_t running_ = 0;
};

}  // namespace outrider::api
