// For tests over sockets: the fixture's server, listening on a free port of this machine.
#pragma once

#include <memory>
#include <string>
#include <thread>

#include "http/fixture_test.h"
#include "http/listener.h"
#include "testing/socket_client.h"

namespace outrider::http {

class ListeningTest : public ServerTest {
 protected:
  ~ListeningTest() override { end(); }

  void listen(ServerOptions options = {}, const testing::FakeFile& target = {.chat = true},
              const RuntimeOptions& runtime = {.slots = 2, .max_queue = 4}) {
    options.port = 0;
    start(options, target, runtime);
    server_->log_to(log_);
    // Tests look at whether the last words are written, not at how soon.
    Result<std::unique_ptr<Listener>> listener =
        Listener::create(*server_, /*last_words_ms=*/60'000);
    ASSERT_TRUE(listener.ok()) << listener.status().message();
    listener_ = std::move(*listener);
    thread_ = std::thread([this] { ended_ = listener_->run(); });
  }

  void end() {
    if (!thread_.joinable()) return;
    listener_->stop();
    thread_.join();
  }

  testing::SocketClient connect() const { return testing::SocketClient(listener_->port()); }
  testing::RawReply ask_over_socket(std::string_view method, std::string_view path,
                                    std::string_view body = "",
                                    std::string_view headers = "") const {
    return connect().ask(method, path, body, headers);
  }

  // Requests that have or wait for a slot.
  std::int64_t open_requests() const {
    const RuntimeStatus status = runtime_->status();
    return status.running + status.queued;
  }

  LineSink* log_ = nullptr;  // before listen(); until end()
  std::unique_ptr<Listener> listener_;
  std::thread thread_;
  Status ended_;
};

}  // namespace outrider::http
