#include "rpcserver/server.h"

#include <utility>

namespace outrider::rpcserver {
namespace {

using json::Json;

Refusal not_initialised() {
  return {.error = "nothing is loaded: call init or init_async first", .field = ""};
}

// The status when there is no session.
Json empty_status(const std::string& error) {
  return {{"init_success", error.empty() ? 0 : -1},
          {"model_alias", ""},
          {"model", ""},
          {"loading_progress", 0.0},
          {"error", error.empty() ? Json() : Json(error)},
          {"warnings", Json::array()},
          {"notes", Json::array()},
          {"draft",
           {{"state", "absent"},
            {"model", ""},
            {"progress", 0.0},
            {"error", nullptr},
            {"waits_for_target", false}}},
          {"speculation",
           {{"drafters", Json::array()},
            {"exactness", nullptr},
            {"exactness_coverage", nullptr},
            {"exactness_reason", nullptr}}}};
}

}  // namespace

Server::Entry* Server::enter(bool make) {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (entry_ == nullptr && make) {
    init_error_ = "out of memory";  // unless it goes well
    Result<std::unique_ptr<Session>> session = Session::create(loader_, last_id_);
    std::unique_ptr<Entry> entry = std::make_unique<Entry>();
    init_error_ = session.status().message();
    if (!session.ok()) return nullptr;
    entry->session = *std::move(session);
    entry_ = std::move(entry);
  }
  if (entry_ != nullptr) ++entry_->calls;
  return entry_.get();
}

void Server::leave(Entry* entry) {
  if (entry == nullptr) return;
  const std::lock_guard<std::mutex> lock(mutex_);
  --entry->calls;
  if (entry->calls == 0) left_.notify_all();
}

int Server::init(const char* cmd) {
  const Call call(*this, enter(/*make=*/true));
  if (call.session() == nullptr) return 1;
  return call.session()->init(cmd, /*draft_only=*/false, /*wait=*/true) ? 0 : 1;
}

void Server::init_async(const char* cmd, bool init_draft_model) {
  const Call call(*this, enter(/*make=*/true));
  if (call.session() != nullptr) call.session()->init(cmd, init_draft_model, /*wait=*/false);
}

std::string Server::tokenize(const char* request) {
  const Call call(*this, enter(/*make=*/false));
  return json::encode(call.session() == nullptr ? failure(not_initialised())
                                                : call.session()->tokenize(request));
}

std::string Server::poll_system_status() {
  const Call call(*this, enter(/*make=*/false));
  if (call.session() != nullptr) return json::encode(call.session()->status());
  const std::lock_guard<std::mutex> lock(mutex_);
  return json::encode(empty_status(init_error_));
}

std::string Server::get_completion(const char* request) {
  const Call call(*this, enter(/*make=*/false));
  return json::encode(call.session() == nullptr ? sync_failure(not_initialised())
                                                : call.session()->complete(request));
}

std::string Server::async_completion_init(const char* request) {
  const Call call(*this, enter(/*make=*/false));
  return json::encode(call.session() == nullptr ? failure(not_initialised())
                                                : call.session()->start(request));
}

std::string Server::async_completion_poll(const char* which) {
  const Call call(*this, enter(/*make=*/false));
  if (call.session() != nullptr) return json::encode(call.session()->poll(which));
  return json::encode({{"success", true},
                       {"completion_updates", Json::array()},
                       {"finished", false},
                       {"prompt_processing_progress", 0.0}});
}

std::string Server::async_completion_cancel(const char* which) {
  const Call call(*this, enter(/*make=*/false));
  return json::encode(call.session() == nullptr ? Json{{"success", true}}
                                                : call.session()->cancel(which));
}

void Server::deinit() {
  std::unique_lock<std::mutex> lock(mutex_);
  std::unique_ptr<Entry> entry = std::move(entry_);
  init_error_.clear();
  if (entry != nullptr) {
    ++ending_;
    lock.unlock();
    entry->session->close();
    lock.lock();
    left_.wait(lock, [&entry] { return entry->calls == 0; });
    lock.unlock();
    entry.reset();
    lock.lock();
    --ending_;
    left_.notify_all();
  }
  left_.wait(lock, [this] { return ending_ == 0; });
}

}  // namespace outrider::rpcserver
