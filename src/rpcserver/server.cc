#include "rpcserver/server.h"

#include <functional>
#include <utility>

namespace outrider::rpcserver {
namespace {

using json::Json;

Status not_initialised() {
  return invalid_argument("nothing is loaded: call init or init_async first");
}

}  // namespace

Server::Call Server::enter(bool make) {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (entry_ == nullptr && make) {
    init_error_ = "out of memory";  // unless it goes well
    Result<std::unique_ptr<Session>> session = Session::create(loader_, so_far_);
    std::unique_ptr<Entry> entry = std::make_unique<Entry>();
    init_error_ = session.status().message();
    if (!session.ok()) return {};
    entry->session = *std::move(session);
    entry_ = std::move(entry);
  }
  if (entry_ == nullptr) return {};
  // Never waits: deinit() takes it for itself only once nobody can enter any more.
  return {entry_->session.get(), std::shared_lock<std::shared_mutex>(entry_->inside)};
}

int Server::init(const char* cmd) {
  const Call call = enter(/*make=*/true);
  if (call.session == nullptr) return 1;
  return call.session->init(cmd, /*draft_only=*/false, /*wait=*/true) ? 0 : 1;
}

void Server::init_async(const char* cmd, bool init_draft_model) {
  const Call call = enter(/*make=*/true);
  if (call.session != nullptr) call.session->init(cmd, init_draft_model, /*wait=*/false);
}

int Server::refuse_init(const Status& why) {
  const std::lock_guard<std::mutex> lock(mutex_);
  init_error_ = why.message();
  return 1;
}

template <typename Question>
std::string Server::ask(Question question, const char* text, Json without) {
  const Call call = enter(/*make=*/false);
  return json::encode(call.session == nullptr ? without
                                              : std::invoke(question, call.session, text));
}

std::string Server::tokenize(const char* request) {
  return ask(&Session::tokenize, request, failure(not_initialised()));
}

std::string Server::poll_system_status() {
  const Call call = enter(/*make=*/false);
  if (call.session != nullptr) return json::encode(call.session->status());
  SessionState nothing;
  const std::lock_guard<std::mutex> lock(mutex_);
  if (!init_error_.empty()) nothing.target_refusal = internal_error(init_error_);
  return json::encode(status_json(nothing, {}));
}

std::string Server::get_completion(const char* request) {
  return ask(&Session::complete, request, sync_failure(not_initialised()));
}

std::string Server::async_completion_init(const char* request) {
  return ask(&Session::start, request, failure(not_initialised()));
}

std::string Server::async_completion_poll(const char* which) {
  const Call call = enter(/*make=*/false);
  return json::encode(call.session == nullptr ? poll_without_session(which, so_far_)
                                              : call.session->poll(which));
}

std::string Server::async_completion_cancel(const char* which) {
  return ask(&Session::cancel, which, {{"success", true}});
}

void Server::deinit() {
  const std::lock_guard<std::mutex> one_at_a_time(ending_);  // until the session is freed
  std::unique_ptr<Entry> entry;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    entry = std::move(entry_);
    init_error_.clear();
  }
  if (entry == nullptr) return;
  entry->session->close();
  const std::unique_lock<std::shared_mutex> all_left(entry->inside);
}

}  // namespace outrider::rpcserver
