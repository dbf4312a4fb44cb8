// What an `outrider *` points to: a loader, a runtime on it, and the service that clients call.
#pragma once

#include <atomic>
#include <memory>
#include <string>
#include <string_view>

#include "api/service.h"
#include "base/process_end.h"
#include "serve/loader.h"
#include "serve/runtime.h"

namespace outrider::capi {

using EventFunction = void (*)(void* user, const char* event_json);

class Instance {
 public:
  // `config`: see include/outrider.h. Errors: kInvalidArgument with the field ("slots",
  // "model.ctx"), and those of what the runtime does with it.
  static Result<std::unique_ptr<Instance>> create(std::string_view config,
                                                  std::unique_ptr<ModelLoader> loader);

  // Ends everything: see outrider_destroy. Not from a callback.
  ~Instance();
  Instance(const Instance&) = delete;
  Instance& operator=(const Instance&) = delete;

  // JSON-RPC 2.0. Throws nothing but std::bad_alloc. Any thread.
  std::string call(std::string_view request);

  // See outrider_subscribe. Throws nothing but std::bad_alloc. Any thread.
  void subscribe(EventFunction callback, void* user);

  // From now on no callback is made and no call taken; those that wait return. Any thread.
  void close();

  // Closes, and ends what is loaded and computed; see Runtime::shut_down(). Any thread but a
  // callback's.
  void shut_down();
  // Runtime::keep_learned(), behind it.
  void keep_learned();

  // This process is a forked child of the one that made it: its threads are not here, and locks may
  // be held for ever.
  bool is_forked_copy() const { return process_ != process_id(); }

  // For the list of those that end in the background (capi/instances.h).
  Instance* next = nullptr;

 private:
  explicit Instance(std::unique_ptr<ModelLoader> loader) : loader_(std::move(loader)) {}

  std::unique_ptr<ModelLoader> loader_;
  // Outlives the runtime, whose threads may be inside a client's callback that calls.
  std::unique_ptr<api::Service> service_;
  std::unique_ptr<Runtime> runtime_;
  std::atomic<bool> closed_{false};
  const long process_ = process_id();
};

}  // namespace outrider::capi
