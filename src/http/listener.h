// Listener: a Server on a socket. One thread a connection, as many as there are connections, within
// ServerOptions::max_connections and what the system allows; further ones get 503 at once.
//
// Tested by listener_test.cc, and by reliability_*_test.cc at its limits.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>

#include "base/status.h"
#include "http/server.h"

namespace outrider::http {

class Listener {
 public:
  // To write what completions came to when they ended.
  static constexpr std::int64_t kLastWordsMs = 1000;

  // Binds the address of the server's options. `server` must outlive this. Errors: kInvalidArgument
  // (an address that others can reach, without a key: check_exposure()); kUnsupported (the address
  // cannot be had: the message says why as far as it is known). `last_words_ms`: see stop(); tests,
  // which may be slow, give more.
  static Result<std::unique_ptr<Listener>> create(Server& server,
                                                  std::int64_t last_words_ms = kLastWordsMs);
  virtual ~Listener() = default;

  // The port that it has.
  virtual std::int32_t port() const = 0;

  // How many it has at once: ServerOptions::max_connections, or fewer, where the process may have
  // too few files (connections_within()).
  virtual std::size_t connections() const = 0;

  // Answers until stop(). One thread, once. Returns when no connection is left.
  virtual Status run() = 0;

  // Ends it gracefully; any thread, returns at once. From now on requests get 503. Those that are
  // being answered have ServerOptions::drain_s to end; then the catalog is shut down, which ends
  // every completion with what it has; what is not written `last_words_ms` later is cut off. Twice
  // is as once.
  virtual void stop() = 0;
};

}  // namespace outrider::http
