// A request of a client and the reply to it, without sockets: endpoints are functions from one to
// the other, and are tested as such. listener.h carries them over HTTP.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/status.h"

namespace outrider::http {

// What became of a request, for the metrics and the access log. The thread that answers fills it.
struct CallRecord {
  Stopwatch since_begin;         // of its Call
  std::size_t key = 0;           // the number of the key that was shown (access.h); 0: none
  std::string model;             // whose completions they are; empty: none
  double model_ms = 0.0;         // it waited for its model to be open
  std::int64_t completions = 0;  // that have ended; of them, together:
  std::int64_t prompt_tokens = 0;
  std::int64_t completion_tokens = 0;
  std::int64_t drafted = 0;
  std::int64_t accepted = 0;
  double first_token_ms = -1.0;  // from its begin to the first of them; -1: none came
  std::string_view finish;       // of the last one; static storage
};

struct HttpRequest {
  std::string method;  // "GET", "POST", ...
  std::string path;    // decoded, without the query: "/v1/models"
  std::string body;
  std::string remote;  // the client's address, or what a trusted proxy calls it
  std::vector<std::pair<std::string, std::string>> headers;
  std::vector<std::pair<std::string, std::string>> query;  // decoded
  // Whether the client has gone; any time, from the thread that answers. May be empty: never.
  std::function<bool()> gone;
  // Whether it has ended its side of the connection, likewise: it may have gone, or wait for the
  // reply. If it has gone, gone() knows soon after something is written.
  std::function<bool()> ended;
  // Not null; copies of the request share it.
  std::shared_ptr<CallRecord> record = std::make_shared<CallRecord>();

  // The first header of that name, whatever its case; empty: there is none.
  std::string_view header(std::string_view name) const;
  // The first value of that name; empty: there is none.
  std::string_view parameter(std::string_view name) const;
};

// Where a reply that is made bit by bit is written. False: the client has gone, or reads too slowly
// (Listener's write limit); nothing more will be taken.
using ReplyWriter = std::function<bool(std::string_view bytes)>;

// What is wrong, which Server writes in the form of the endpoint's API (error_form.h).
struct Failure {
  std::string message;  // a sentence
  std::string field;    // that it is about; empty: none
  std::optional<Excess> excess = std::nullopt;
};

struct HttpReply {
  int status = 200;
  std::string content_type = "application/json; charset=utf-8";
  std::string body;
  std::vector<std::pair<std::string, std::string>> headers = {};
  std::optional<Failure> failure = std::nullopt;  // of an error; without it the body stays as it is
  // Instead of `body`: called once, on the thread of the connection, and writes all of it. False:
  // it was cut short, and must not look as if it had come to its end.
  std::function<bool(const ReplyWriter& write)> stream = {};
};

// Whether two header names or the like are the same but for the case of ASCII letters.
bool same_name(std::string_view a, std::string_view b);

}  // namespace outrider::http
