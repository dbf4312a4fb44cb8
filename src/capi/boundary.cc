#include "capi/boundary.h"

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <new>

#include "base/process_end.h"
#include "capi/instances.h"
#include "capi/log.h"

namespace outrider::capi {
namespace {

constexpr const char* kNoMemory =
    R"({"jsonrpc":"2.0","id":null,"error":{"code":-32003,"message":"out of memory",)"
    R"("data":{"code":"resource_exhausted","field":null}}})";
constexpr const char* kUnexpected =
    R"({"jsonrpc":"2.0","id":null,"error":{"code":-32603,"message":"unexpected failure",)"
    R"("data":{"code":"internal","field":null}}})";
constexpr const char* kNoInstance =
    R"({"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"there is no instance: the )"
    R"(first argument is NULL","data":{"code":"invalid_request","field":null}}})";
constexpr const char* kNoRequest =
    R"({"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"there is no request: the )"
    R"(second argument is NULL","data":{"code":"invalid_request","field":null}}})";

constexpr const char* kForked =
    R"({"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"this process was forked from )"
    R"(the one that made the instance, whose threads are not here: fork before the first instance )"
    R"(is made, or start a new process with spawn or exec",)"
    R"("data":{"code":"invalid_request","field":null}}})";

constexpr const char* kForkedLate =
    "this process was forked from one that made an instance, whose threads are not here: fork "
    "before the first instance is made, or start a new process with spawn or exec";

FirstProcess maker;  // of instances

}  // namespace

bool refuse_forked(char** error) noexcept {
  if (maker.may()) return false;
  leave_error(error, kForkedLate);
  return true;
}

void leave_error(char** error, const char* message) noexcept {
  if (error != nullptr) *error = strdup(message);
}

Instance* create(const char* config_json, char** error,
                 std::unique_ptr<ModelLoader> loader) noexcept {
  if (error != nullptr) *error = nullptr;
  if (refuse_forked(error)) return nullptr;
  try {
    if (!in_callback()) end_waiting();
    Result<std::unique_ptr<Instance>> made =
        Instance::create(config_json == nullptr ? "" : config_json, std::move(loader));
    if (made.ok()) return made->release();
    leave_error(error, made.status().message().c_str());
  } catch (const std::bad_alloc&) {
    leave_error(error, "out of memory");
  } catch (const std::exception& e) {
    leave_error(error, e.what());
  } catch (...) {
    leave_error(error, "unexpected failure");
  }
  return nullptr;
}

void destroy(Instance* instance) noexcept {
  if (instance == nullptr || instance->is_forked_copy()) return;
  std::unique_ptr<Instance> owned(instance);
  if (in_callback()) return end_in_background(std::move(owned));
  owned.reset();
  end_waiting();
}

char* call(Instance* instance, const char* request_json) noexcept {
  if (instance == nullptr) return strdup(kNoInstance);
  if (request_json == nullptr) return strdup(kNoRequest);
  if (instance->is_forked_copy()) return strdup(kForked);
  try {
    char* const text = strdup(instance->call(request_json).c_str());
    return text != nullptr ? text : strdup(kNoMemory);
  } catch (const std::bad_alloc&) {
    return strdup(kNoMemory);
  } catch (...) {
    return strdup(kUnexpected);
  }
}

int subscribe(Instance* instance, EventFunction callback, void* user) noexcept {
  if (instance == nullptr || instance->is_forked_copy()) return EINVAL;
  try {
    instance->subscribe(callback, user);
    return 0;
  } catch (...) {
    return ENOMEM;
  }
}

void free_string(char* string) noexcept { std::free(string); }

}  // namespace outrider::capi
