// The C functions: one Server for the process, and the boundary that nothing is thrown across.
#include <rpcserver.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <string>
#include <thread>

#include "backend/llama_loader.h"
#include "base/process_end.h"
#include "llama/base/backend.h"
#include "llama/base/processor.h"
#include "rpcserver/server.h"

namespace outrider::rpcserver {
namespace {

constexpr const char* kNoMemory = R"({"success":false,"status":500,"error":"out of memory"})";

constexpr const char* kForked =
    R"({"success":false,"status":400,"error":"this process was forked from one that had called )"
    R"(init, whose threads are not here: fork before the first init, or start a new process with )"
    R"(exec"})";

FirstProcess user;  // that calls init

void end_session() noexcept;

// The API has no handle, so there is one of these. Never destroyed: threads that are still inside a
// function when the process ends find it whole. end_session() ends what it does.
struct Process {
  LlamaLoader loader{{.at_weights = [] { at_process_end(end_session); }}};
  Server server{loader};
};

Process& process() {
  static Process* const instance = new Process();
  return *instance;
}

// Not by the function of this name below: an app may have one of its own, which a shared library's
// calls would reach.
void end_session() noexcept {
  try {
    process().server.deinit();
  } catch (...) {  // a lock that the system refuses
  }
}

// Before a session: one that has loaded nothing yet is ended at exit too. Only after user.may(): a
// forked child must neither take these locks nor run end_session() at its exit.
Status prepare() {
  OUTRIDER_RETURN_IF_ERROR(llama::check_processor());
  llama::ensure_backend();
  at_process_end(end_session);
  return Status();
}

// The answer that there is no memory, made while there is some.
std::atomic<char*>& reserve() {
  static std::atomic<char*> block{nullptr};
  return block;
}

void fill_reserve() noexcept {
  if (reserve().load() != nullptr) return;
  char* const fresh = strdup(kNoMemory);
  char* nothing = nullptr;
  if (fresh != nullptr && !reserve().compare_exchange_strong(nothing, fresh)) std::free(fresh);
}

const char* no_memory() noexcept {
  char* block = reserve().exchange(nullptr);
  while (block == nullptr) {  // someone else had it; 60 bytes will be free again
    block = strdup(kNoMemory);
    if (block == nullptr) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return block;
}

// What the server answers, on the C heap.
template <typename... Text>
const char* answer(std::string (Server::*question)(Text...), Text... asked) noexcept {
  fill_reserve();
  if (user.is_another()) {
    const char* const told = strdup(kForked);
    return told == nullptr ? no_memory() : told;
  }
  try {
    const char* const copy = strdup((process().server.*question)(asked...).c_str());
    return copy == nullptr ? no_memory() : copy;
  } catch (...) {  // nothing in here throws but for want of memory or threads
    return no_memory();
  }
}

}  // namespace
}  // namespace outrider::rpcserver

namespace rpc = outrider::rpcserver;

extern "C" {

int init(const char* cmd) {
  if (!rpc::user.may()) return 1;
  try {
    rpc::Server& server = rpc::process().server;
    const outrider::Status prepared = rpc::prepare();
    return prepared.ok() ? server.init(cmd) : server.refuse_init(prepared);
  } catch (...) {
    return 1;
  }
}

void init_async(const char* cmd, bool init_draft_model) {
  if (!rpc::user.may()) return;
  try {
    rpc::Server& server = rpc::process().server;
    const outrider::Status prepared = rpc::prepare();
    if (!prepared.ok()) return (void)server.refuse_init(prepared);
    server.init_async(cmd, init_draft_model);
  } catch (...) {  // nothing to return; running out of memory is in the status
  }
}

const char* tokenize(const char* req_json) { return rpc::answer(&rpc::Server::tokenize, req_json); }

const char* poll_system_status() { return rpc::answer(&rpc::Server::poll_system_status); }

const char* get_completion(const char* req_json) {
  return rpc::answer(&rpc::Server::get_completion, req_json);
}

const char* async_completion_init(const char* req_json) {
  return rpc::answer(&rpc::Server::async_completion_init, req_json);
}

const char* async_completion_poll(const char* cmd_json) {
  return rpc::answer(&rpc::Server::async_completion_poll, cmd_json);
}

const char* async_completion_cancel(const char* req_json) {
  return rpc::answer(&rpc::Server::async_completion_cancel, req_json);
}

void deinit() {
  if (!rpc::user.is_another()) rpc::end_session();
}

void rpc_free(const char* text) { std::free(const_cast<char*>(text)); }

}  // extern "C"
