// Access: who may ask. Three questions, before an endpoint or a body is looked at:
//
//   the name   Host must be one of the server's own: a foreign page that lets its own name point to
//              this machine (DNS rebinding) comes with that name
//   the page   a page of another origin may neither read (CORS) nor change anything, unless the
//              operator named its origin; programs send no Origin
//   the key    where there are keys, all but the open endpoints need one, whatever the method
//
// Immutable, any thread. Tested by access_test.cc.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "http/access/secret_keys.h"
#include "http/access/server_options.h"
#include "http/exchange/exchange.h"

namespace outrider::http {

class Access {
 public:
  // REQUIRES: valid options
  explicit Access(const ServerOptions& options);

  // The reply to a request that may not be answered: 401 or 403. Also the one to a page that asks
  // what it may send (a preflight), which browsers send without a key: 204. Nothing: go on. `open`:
  // its endpoint needs no key.
  std::optional<HttpReply> refuse(const HttpRequest& request, bool open) const;

  // The number of the key that the request shows: its place among the options' keys, from 1. 0: it
  // shows none of them.
  std::size_t key_number(const HttpRequest& request) const;

  // Lets the page that asked read the reply, and the headers that clients act on, where its origin
  // is allowed. For every reply.
  void let_read(const HttpRequest& request, HttpReply& reply) const;

 private:
  bool is_own_name(std::string_view host) const;
  bool is_allowed(std::string_view origin) const;

  SecretKeys keys_;
  std::vector<std::string> origins_;
  std::vector<std::string> names_;
  bool only_this_machine_;
  bool any_name_;
};

// Whether only this machine reaches that address: "localhost", 127.x.x.x, ::1.
bool is_loopback(std::string_view host);

// How a socket names a peer of that IP address: in its shortest form, and one of the fourth version
// also as a socket that listens for both does ("::ffff:10.0.0.5"). Empty: it is no IP address.
std::vector<std::string> spellings_of(const std::string& address);

// kInvalidArgument where other machines could use the server without a key, which the operator has
// to ask for (ServerOptions::public_without_key).
Status check_exposure(const ServerOptions& options);

// What to warn of where check_exposure() is content: the options speak of a proxy, which reaches
// the loopback for everybody else, and there is no key. Empty: nothing.
std::string exposure_warning(const ServerOptions& options);

}  // namespace outrider::http
