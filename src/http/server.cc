#include "http/server.h"

#include <algorithm>
#include <exception>
#include <memory>
#include <new>
#include <utility>

#include "http/endpoints.h"
#include "http/exchange/error_form.h"
#include "http/exchange/error_reply.h"
#include "http/metrics/call.h"
#include "http/page_reply.h"

namespace outrider::http {
namespace {

constexpr std::string_view kOther = "other";  // all paths that are not in the table, in metrics

bool serves(const Endpoint& endpoint, std::string_view method) {
  return endpoint.method == method || (endpoint.method == "GET" && method == "HEAD");
}

std::string_view label_of(std::string_view path) {
  for (const Endpoint& endpoint : endpoints()) {
    if (is_at(endpoint, path)) return endpoint.path;
  }
  return kOther;
}

HttpReply out_of_memory() noexcept {
  try {
    return {.status = 503,
            .body = R"({"error":{"message":"out of memory","type":"unavailable_error",)"
                    R"("param":null,"code":503}})"};
  } catch (const std::bad_alloc&) {
    return {.status = 503, .content_type = {}, .body = {}};
  }
}

std::string what_was_wrong(int status) {
  switch (status) {
    case 404:
      return "there is no such path here; /openapi.json lists what is";
    case 408:
      return "the request did not arrive in time";
    case 413:
      return "the body is longer than the server takes (--max-body)";
    case 414:
      return "the request's path and query are too long";
    case 415:
      return "the body must be JSON as it is, neither compressed nor a form with files";
    case 416:
      return "there is no such range of the answer";
    case 431:
      return "the request's headers are too long";
    case 503:
      return "too many connections; try again later";
    default:
      return status >= 500
                 ? "the server failed"
                 : "this is not a request of HTTP/1.1, or its headers are too many or too "
                   "long, or it ended too early";
  }
}

}  // namespace

Server::Server(const ServerOptions& options, Catalog& catalog)
    : state_(options, catalog), access_(state_.options()) {}

// Only the very path of an open endpoint or of a file of the page, as route() compares it.
bool Server::is_open(const HttpRequest& request) const {
  const std::span<const Endpoint> all = endpoints();
  const bool listed = std::any_of(all.begin(), all.end(), [&](const Endpoint& endpoint) {
    return endpoint.open && is_at(endpoint, request.path) && serves(endpoint, request.method);
  });
  return listed || page_of(request).has_value();
}

std::optional<HttpReply> Server::page_of(const HttpRequest& request) const {
  return state_.options().no_page ? std::nullopt : page_reply(request);
}

std::optional<HttpReply> Server::refuse(const HttpRequest& request) const {
  if (state_.stopping()) return error_reply(503, "the server is being stopped");
  return access_.refuse(request, is_open(request));
}

HttpReply Server::route(const HttpRequest& request) {
  std::string allowed;
  for (const Endpoint& endpoint : endpoints()) {
    if (!is_at(endpoint, request.path)) continue;
    if (serves(endpoint, request.method)) return endpoint.answer(state_, request);
    allowed.append(allowed.empty() ? "" : ", ").append(endpoint.method);
  }
  if (allowed.empty()) {
    std::optional<HttpReply> page = page_of(request);
    if (page) return std::move(*page);
    return error_reply(404, "there is no " + request.path + " here; /openapi.json lists what is");
  }
  HttpReply reply = request.method == "OPTIONS"
                        ? HttpReply{.status = 204}
                        : error_reply(405, request.path + " is asked with " + allowed + ", not " +
                                               request.method);
  reply.headers.emplace_back("Allow", allowed);
  return reply;
}

std::shared_ptr<Call> Server::begin_call(const HttpRequest& request, std::string_view endpoint) {
  if (log_ != nullptr) request.record->key = access_.key_number(request);
  return std::make_shared<Call>(request, endpoint, state_.metrics(), log_);
}

HttpReply Server::answer(const HttpRequest& request) noexcept {
  try {
    auto call = begin_call(request, label_of(request.path));
    HttpReply reply;
    try {
      std::optional<HttpReply> refusal = refuse(request);
      reply = refusal ? std::move(*refusal) : route(request);
    } catch (const std::bad_alloc&) {
      reply = out_of_memory();
    } catch (const std::exception& failure) {
      reply = error_reply(500, std::string("an unexpected failure: ") + failure.what());
    }
    write_error(reply, error_form_of(request));
    access_.let_read(request, reply);
    return count_reply(std::move(call), request, std::move(reply));
  } catch (const std::exception&) {  // out of memory, for the reply too
    return out_of_memory();
  }
}

HttpReply Server::answer_unread(const HttpRequest& request, int status) noexcept {
  try {
    auto call = begin_call(request, kOther);
    HttpReply reply = error_reply(status, what_was_wrong(status));
    write_error(reply, error_form_of(request));
    access_.let_read(request, reply);
    return count_reply(std::move(call), request, std::move(reply));
  } catch (const std::exception&) {
    return out_of_memory();
  }
}

}  // namespace outrider::http
