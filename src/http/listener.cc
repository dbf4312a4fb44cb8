#include "http/listener.h"

#include <malloc.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <condition_variable>
#include <cstring>
#include <exception>
#include <memory>
#include <mutex>
#include <string>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include <cpp-httplib/httplib.h>

#include "http/access/access.h"
#include "http/connection/client_watch.h"
#include "http/connection/connection_stream.h"
#include "http/connection/connections.h"
#include "http/exchange/error_reply.h"

namespace outrider::http {
namespace {

// What the system keeps for a client that does not read; twice that with its own bookkeeping.
// Beyond it the thread waits, and the completion's tokens wait in the runtime.
constexpr int kUnreadBytes = 128 << 10;

// `watch` may be null.
void write_reply(HttpReply reply, const httplib::Request& from, httplib::Response& to,
                 std::shared_ptr<ClientWatch> watch) {
  to.status = reply.status;
  for (auto& [name, value] : reply.headers) to.set_header(name, value);
  if (!reply.stream) {
    if (reply.status != 204) to.set_content(std::move(reply.body), reply.content_type);
    return;
  }
  const auto provide = [stream = std::move(reply.stream), watch = std::move(watch)](
                           std::size_t, httplib::DataSink& sink) {
    if (watch != nullptr) watch->begin_answer();
    bool alive = true;
    const bool whole = stream([&](std::string_view bytes) {
      alive = alive && sink.write(bytes.data(), bytes.size());
      return alive;
    });
    // Without the last chunk the client knows that something is missing.
    if (!whole || !alive) return false;
    sink.done();
    return true;
  };
  if (from.version == "HTTP/1.0") {
    // It knows no chunks (RFC 9112, 6.1): the connection's end is the stream's, asked to stay or
    // not.
    to.set_header("Connection", "close");
    to.set_content_provider(reply.content_type, provide);
  } else {
    to.set_chunked_content_provider(reply.content_type, provide);
  }
}

// Room for the body at once: a string that grows holds the text twice for a while.
std::size_t room_for_body(const httplib::Request& from, std::int64_t most) {
  if (from.has_header("Transfer-Encoding")) return static_cast<std::size_t>(most);
  return from.get_header_value_u64("Content-Length");  // not above `most`: see refuse_unread()
}

// glibc raises its limits with the largest block that was freed, to 32 MiB: a body then comes out
// of its thread's own heap, whose end goes back to the system from 64 MiB on, and malloc_trim()
// does not look at that end. So each of the threads that read at once kept a body's memory. With
// limits that stay, blocks of 4 MiB and more are the system's own and go back when they are freed.
// (Smaller ones are not: a list of all of a vocabulary's tokens is made for each token that is
// said.)
void keep_large_blocks_apart() {
#ifdef __GLIBC__
  constexpr int kLarge = 4 << 20;
  ::mallopt(M_MMAP_THRESHOLD, kLarge);
  ::mallopt(M_TRIM_THRESHOLD, kLarge);
#endif
}

// What a large body was made into goes back to the system, and not only to this thread's next one.
void give_memory_back(std::size_t body_bytes) {
#ifdef __GLIBC__
  constexpr std::size_t kLarge = 1 << 20;
  if (body_bytes >= kLarge) ::malloc_trim(0);
#else
  (void)body_bytes;
#endif
}

// As cpp-httplib compares them with a socket's peer: text by text.
std::vector<std::string> names_of_proxies(const ServerOptions& options) {
  std::vector<std::string> names;
  for (const std::string& address : options.trusted_proxies) {
    for (std::string& name : spellings_of(address)) names.push_back(std::move(name));
  }
  return names;
}

// A reply to what cpp-httplib never saw as a request.
std::string bytes_of(const HttpReply& reply) {
  std::string bytes =
      "HTTP/1.1 " + std::to_string(reply.status) + " " + httplib::status_message(reply.status) +
      "\r\nContent-Type: " + reply.content_type +
      "\r\nContent-Length: " + std::to_string(reply.body.size()) + "\r\nConnection: close\r\n";
  for (const auto& [name, value] : reply.headers) bytes += name + ": " + value + "\r\n";
  return bytes + "\r\n" + reply.body;
}

// Connections are files.
ConnectionLimits limits_of(const ServerOptions& options) {
  const std::size_t wanted = static_cast<std::size_t>(options.max_connections);
  return connections_within(wanted, allow_files(wanted));
}

// cpp-httplib's server with our connections: their threads, limits and end.
class HttpServer : public httplib::Server {
 public:
  HttpServer(http::Server& server, Connections& connections, ClientWatches& watches)
      : server_(server), connections_(connections), watches_(watches) {}

 private:
  bool process_and_close_socket(socket_t socket) override {
    std::string last_words;
    bool added = false;
    try {
      added = connections_.add(socket);
      last_words = added ? serve(socket) : refusal(socket);
    } catch (const std::exception&) {  // out of memory: this connection ends
    }
    if (added) connections_.remove(socket);
    write_and_close(socket, last_words);
    return added;
  }

  std::string refusal(socket_t socket) {
    HttpRequest request;
    request.remote = names_of(socket).remote;
    return bytes_of(server_.answer_unread(request, 503));
  }

  // Returns what is left to be written before it is closed.
  std::string serve(socket_t socket) {
    const ServerOptions& o = server_.options();
    const SocketNames names = names_of(socket);
    ConnectionStream stream(socket, 1000 * o.read_timeout_s, 1000 * o.write_timeout_s);
    std::int32_t wait_ms = 1000 * o.read_timeout_s;
    while (stream.wait_for_request(wait_ms)) {
      wait_ms = 1000 * o.keep_alive_s;
      connections_.set_answering(socket, true);
      stream.begin_request();
      bool closed = false;
      bool ok = false;
      ClientWatches::Entry entry(watches_);
      const auto with_head = [&](const httplib::Request& request) {
        stream.end_head();
        entry.begin(request, std::make_shared<ClientWatch>(socket, request.version != "HTTP/1.0"));
      };
      try {
        ok = process_request(stream, names.remote, names.remote_port, names.local, names.local_port,
                             /*close_connection=*/server_.state().stopping(), closed, with_head);
      } catch (const ConnectionStream::LateHead&) {  // not ok, and nothing has been written
      }
      connections_.set_answering(socket, false);
      if (!ok && !stream.has_written()) return unanswered(stream, names);
      if (!ok || closed || stream.has_said_close() || server_.state().stopping()) break;
    }
    return "";
  }

  // To what ended before its line and headers were there.
  std::string unanswered(const ConnectionStream& stream, const SocketNames& names) {
    using Failure = ConnectionStream::Failure;
    if (!stream.has_read() || stream.failure() == Failure::kClosed) return "";
    HttpRequest request;
    request.remote = names.remote;
    const int status = stream.failure() == Failure::kTooSlow ? 408 : 414;
    return bytes_of(server_.answer_unread(request, status));
  }

  http::Server& server_;
  Connections& connections_;
  ClientWatches& watches_;
};

class HttplibListener : public Listener {
 public:
  HttplibListener(Server& server, std::int64_t last_words_ms)
      : server_(server),
        last_words_ms_(last_words_ms),
        limits_(limits_of(server.options())),
        connections_(limits_.connections),
        http_(server, connections_, watches_) {
    const ServerOptions& o = server.options();
    keep_large_blocks_apart();
    http_.new_task_queue = [most = limits_.all()] { return new ConnectionThreads(most); };
    http_.set_payload_max_length(static_cast<std::size_t>(o.max_body));
    http_.set_keep_alive_timeout(o.keep_alive_s);
    http_.set_keep_alive_max_count(1'000'000);
    http_.set_tcp_nodelay(true);
    http_.set_trusted_proxies(names_of_proxies(o));
    http_.set_socket_options([](socket_t socket) {
      // Not the library's own choice, SO_REUSEPORT: a second server would share the port in
      // silence.
      httplib::set_socket_opt(socket, SOL_SOCKET, SO_REUSEADDR, 1);
      httplib::set_socket_opt(socket, SOL_SOCKET, SO_SNDBUF,
                              kUnreadBytes);  // those it accepts, too
    });
    route();
  }
  ~HttplibListener() override { join_end(); }

  Status bind() {
    const ServerOptions& o = server_.options();
    errno = 0;
    port_ = o.port == 0 ? http_.bind_to_any_port(o.host)
                        : (http_.bind_to_port(o.host, o.port) ? o.port : -1);
    if (port_ > 0) return Status();
    std::string why = errno != 0 ? std::strerror(errno) : "the address is not known here";
    return unsupported("cannot listen on " + o.host + ":" + std::to_string(o.port) + ": " + why);
  }

  std::int32_t port() const override { return port_; }

  std::size_t connections() const override { return limits_.connections; }

  Status run() override {
    try {
      end_ = std::thread([this] { end_when_stopped(); });
    } catch (const std::system_error& error) {
      return resource_exhausted(std::string("cannot start a thread: ") + error.what());
    }
    const bool listened = http_.listen_after_bind();
    const bool asked = server_.state().stopping();
    stop();  // where listening has failed, nobody else does
    join_end();
    return listened || asked ? Status() : internal_error("listening has failed");
  }

  void stop() override {
    server_.state().stop();
    const std::lock_guard<std::mutex> lock(mutex_);
    if (std::exchange(stopped_, true)) return;
    connections_.shut_waiting();  // here: those that come from now on are told, and not just closed
    changed_.notify_all();
  }

 private:
  // Every path and method goes to the Server, whose table says what there is.
  void route() {
    http_.set_pre_routing_handler([this](const httplib::Request& from, httplib::Response& to) {
      return refuse_unread(from, to) ? httplib::Server::HandlerResponse::Handled
                                     : httplib::Server::HandlerResponse::Unhandled;
    });
    http_.set_error_handler([this](const httplib::Request& from, httplib::Response& to) {
      if (to.body.empty()) send(server_.answer_unread(request_of(from), to.status), from, to);
    });
    constexpr const char* kAll = R"(.*)";
    const auto answer = [this](const httplib::Request& from, httplib::Response& to) {
      send(server_.answer(request_of(from)), from, to);
    };
    http_.Get(kAll, answer);
    http_.Options(kAll, answer);
    const auto read_and_answer = [this](const httplib::Request& from, httplib::Response& to,
                                        const httplib::ContentReader& read) {
      answer_with_body(from, to, read);
    };
    http_.Post(kAll, read_and_answer);
    http_.Put(kAll, read_and_answer);
    http_.Patch(kAll, read_and_answer);
    http_.Delete(kAll, read_and_answer);
  }

  // Without the body, which is read later.
  HttpRequest request_of(const httplib::Request& from) const {
    HttpRequest request{.method = from.method, .path = from.path};
    request.remote = from.remote_addr;
    request.headers.assign(from.headers.begin(), from.headers.end());
    request.query.assign(from.params.begin(), from.params.end());
    const std::shared_ptr<ClientWatch> watch = watches_.find(from);
    if (watch == nullptr) return request;
    request.gone = [watch] { return watch->is_gone(); };
    request.ended = [watch] { return watch->has_ended(); };
    return request;
  }

  void send(HttpReply reply, const httplib::Request& from, httplib::Response& to) const {
    const std::shared_ptr<ClientWatch> watch = watches_.find(from);
    if (reply.status == kClientGone && watch != nullptr) watch->cut_off();
    write_reply(std::move(reply), from, to, watch);
  }

  // Before the body is read: who may not ask must not fill memory either, and of a body that is too
  // long the library would read all, to throw it away.
  bool refuse_unread(const httplib::Request& from, httplib::Response& to) {
    const HttpRequest head = request_of(from);
    const std::uint64_t most = static_cast<std::uint64_t>(server_.options().max_body);
    if (server_.refuse(head)) {
      send(server_.answer(head), from, to);
    } else if (from.get_header_value_u64("Content-Length") > most) {
      send(server_.answer_unread(head, 413), from, to);
    } else if (from.is_multipart_form_data()) {
      send(server_.answer_unread(head, 415), from, to);
    } else {
      return false;
    }
    return true;
  }

  void answer_with_body(const httplib::Request& from, httplib::Response& to,
                        const httplib::ContentReader& read) {
    std::size_t size = 0;
    {
      HttpRequest request = request_of(from);
      request.body.reserve(room_for_body(from, server_.options().max_body));
      const bool whole = read([&request](const char* bytes, std::size_t n) {
        request.body.append(bytes, n);
        return true;
      });
      size = request.body.size();
      if (whole) send(server_.answer(request), from, to);  // else the error handler says why
    }
    give_memory_back(size);
  }

  // stop(), but for its beginning.
  void end_when_stopped() {
    {
      std::unique_lock<std::mutex> lock(mutex_);
      changed_.wait(lock, [this] { return stopped_; });
    }
    connections_.wait_until_none_answers(1000 * std::int64_t{server_.options().drain_s});
    server_.state().catalog().shut_down();
    connections_.wait_until_none_answers(last_words_ms_);
    http_.stop();
    connections_.shut_all();
  }

  void join_end() {
    if (end_.joinable()) end_.join();
  }

  Server& server_;
  const std::int64_t last_words_ms_;
  const ConnectionLimits limits_;
  Connections connections_;
  ClientWatches watches_;
  HttpServer http_;
  int port_ = -1;
  std::thread end_;
  std::mutex mutex_;  // guards stopped_
  std::condition_variable changed_;
  bool stopped_ = false;
};

}  // namespace

Result<std::unique_ptr<Listener>> Listener::create(Server& server, std::int64_t last_words_ms) {
  OUTRIDER_RETURN_IF_ERROR(check_exposure(server.options()));
  auto listener = std::make_unique<HttplibListener>(server, last_words_ms);
  OUTRIDER_RETURN_IF_ERROR(listener->bind());
  return std::unique_ptr<Listener>(std::move(listener));
}

}  // namespace outrider::http
