#include "http/metrics/call.h"

#include <algorithm>
#include <exception>
#include <utility>

namespace outrider::http {
namespace {

constexpr std::size_t kMaxLogged = 256;  // bytes of what others wrote

// The stream ends before the call, so that the call knows what its completions came to.
struct CountedStream {
  std::shared_ptr<Call> call;
  std::function<bool(const ReplyWriter&)> stream;

  bool operator()(const ReplyWriter& write) const {
    return stream([&](std::string_view bytes) {
      const bool alive = write(bytes);
      if (alive) call->add_bytes(bytes.size());
      return alive;
    });
  }
};

}  // namespace

Call::Call(const HttpRequest& request, std::string_view endpoint, Metrics& metrics, LineSink* log)
    : record_(request.record), endpoint_(endpoint), metrics_(metrics), log_(log) {
  record_->since_begin.restart();
  if (log_ == nullptr) return;
  entry_.time = utc_now();
  entry_.remote = request.remote.substr(0, kMaxLogged);
  entry_.method = request.method;
  entry_.path = request.path.substr(0, kMaxLogged);
}

Call::~Call() {
  try {
    metrics_.note_request(endpoint_, entry_.status);
    if (log_ == nullptr) return;
    entry_.ms = record_->since_begin.elapsed_ms();
    log_->write(access_line(entry_, *record_));
  } catch (const std::exception&) {  // out of memory: a line is lost, the answer is not
  }
}

HttpReply count_reply(std::shared_ptr<Call> call, const HttpRequest& request, HttpReply reply) {
  call->set_status(reply.status);
  if (reply.stream) {
    reply.stream = CountedStream{std::move(call), std::move(reply.stream)};
  } else if (request.method != "HEAD") {
    call->add_bytes(reply.body.size());
  }
  return reply;
}

}  // namespace outrider::http
