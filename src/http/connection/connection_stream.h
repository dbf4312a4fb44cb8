// ConnectionStream: a connection's bytes for cpp-httplib, with limits that it does not have: a time
// for all of a request's line and headers, not only for the next byte; their size together; and a
// least speed for a body. So what one client can hold is one thread for a short time.
//
// One thread. Tested by listener_test.cc.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <cpp-httplib/httplib.h>

#include "base/clock.h"

namespace outrider::http {

class ConnectionStream final : public httplib::Stream {
 public:
  // Line and headers together.
  static constexpr std::size_t kMaxHead = 128 << 10;
  // A body has read_ms, and a second for each so many bytes that have come.
  static constexpr double kSlowestBody = 16 << 10;

  enum class Failure { kNone, kClosed, kTooSlow, kTooLong };

  // What read() throws where a head does not come in time: cpp-httplib would answer 400 itself once
  // it has the request's line, and has no place to change that knowing why.
  struct LateHead {};

  // `socket` is not owned. Milliseconds: for the head of a request and the next part of a body; for
  // the client to take the next bytes.
  ConnectionStream(socket_t socket, std::int32_t read_ms, std::int32_t write_ms);

  // Whether a request begins within `ms`.
  bool wait_for_request(std::int32_t ms);
  // From here on the limits of a head count; from end_head() on those of a body.
  void begin_request();
  void end_head();

  // Why reading has failed, and whether anything of this request was read or answered.
  Failure failure() const { return failure_; }
  bool has_read() const { return received_ > 0; }
  bool has_written() const { return written_; }
  // Whether the client was told that the connection ends, which cpp-httplib does not tell its
  // caller behind every error: what may still come is no request then.
  bool has_said_close() const { return said_close_; }

  bool is_readable() const override { return begin_ < end_; }
  bool wait_readable() const override;
  bool wait_writable() const override;
  ssize_t read(char* to, size_t size) override;  // may throw LateHead
  ssize_t write(const char* from, size_t size) override;
  void get_remote_ip_and_port(std::string& ip, int& port) const override;
  void get_local_ip_and_port(std::string& ip, int& port) const override;
  socket_t socket() const override { return socket_; }
  time_t duration() const override { return static_cast<time_t>(request_.elapsed_ms()); }
  const char* buffered_data(size_t& size) const override;
  void consume_buffered(size_t size) override;

 private:
  bool fill();
  double ms_left() const;

  const socket_t socket_;
  const std::int32_t read_ms_;
  const std::int32_t write_ms_;
  std::vector<char> buffer_;
  std::size_t begin_ = 0;  // of what was received and not read
  std::size_t end_ = 0;
  std::size_t received_ = 0;  // of this request, or of its body
  bool in_head_ = true;
  bool written_ = false;
  bool said_close_ = false;
  Failure failure_ = Failure::kNone;
  Stopwatch request_;  // since its head, or its body, began
};

// The numeric address and port of either end; empty and 0 where there is none.
struct SocketNames {
  std::string remote;
  int remote_port = 0;
  std::string local;
  int local_port = 0;
};
SocketNames names_of(socket_t socket);

// Writes what can be written in a moment, lets the client read it, and closes: a connection that is
// closed while there is something unread would be reset, and the client might lose the reply.
void write_and_close(socket_t socket, std::string_view bytes);

}  // namespace outrider::http
