// A request as a client writes it, and the server's reply to it, without sockets.
#include <algorithm>
#include <optional>
#include <string>
#include <string_view>

#include "fuzz/tame.h"
#include "fuzz/targets.h"
#include "http/fixture_test.h"

namespace outrider::fuzz {
namespace {

using outrider::http::HttpReply;
using outrider::http::HttpRequest;

constexpr int kMostWrites = 200;

// All of an answer, streamed or not.
std::string whole(const HttpReply& reply) {
  if (!reply.stream) return reply.body;
  std::string all;
  int writes = 0;
  reply.stream([&](std::string_view bytes) {
    all += bytes;
    return ++writes < kMostWrites;
  });
  return all;
}

// What is in front of `separator`, which `rest` then begins behind.
std::string_view cut(std::string_view& rest, char separator) {
  const std::string_view part = rest.substr(0, rest.find(separator));
  rest.remove_prefix(std::min(rest.size(), part.size() + 1));
  return part;
}

// "POST /rpc?model=fake", lines of "name: value", an empty line, the body. Path and query are as
// the listener passes them on, decoded. An endpoint has its name here, not its place in the table:
// so an input stays the request that it is when the table grows.
HttpRequest request_of(std::string_view input) {
  std::string_view target = cut(input, '\n');
  HttpRequest request;
  request.method = cut(target, ' ');
  request.path = cut(target, '?');
  while (!target.empty()) {
    std::string_view value = cut(target, '&');
    const std::string_view name = cut(value, '=');
    request.query.emplace_back(name, value);
  }
  while (!input.empty()) {
    std::string_view value = cut(input, '\n');
    if (value.empty()) break;
    const std::string_view name = cut(value, ':');
    value.remove_prefix(std::min(value.size(), value.find_first_not_of(' ')));
    request.headers.emplace_back(name, value);
  }
  request.body = input;
  return request;
}

}  // namespace

void http(Bytes input) {
  HttpRequest request = request_of(text(input));
  const std::optional<std::string> body = tame(request.body);
  if (!body) return;
  request.body = *body;
  testing::FakeLoader loader;
  loader.add("target", {.chat = true});
  const std::shared_ptr<Runtime> runtime(
      std::move(Runtime::create({.slots = 2, .max_queue = 4}, loader).value()));
  ModelOptions model;
  model.path = "target";
  model.n_ctx = 512;  // a conversation with tools has 200 to 300 tokens, of a letter each
  static_cast<void>(runtime->load(ModelRole::kTarget, model));
  static_cast<void>(runtime->wait_loaded(-1));
  outrider::http::FixtureCatalog catalog(runtime);
  outrider::http::Server server({}, catalog);
  const HttpReply reply = server.answer(request);
  if (reply.status == 500) violated(request.path + ": 500: " + whole(reply));
  const std::string answer = whole(reply);
  const bool is_json = !reply.stream && reply.content_type.starts_with("application/json");
  if (is_json && !answer.empty() && !json::parse(answer).ok()) {
    violated(request.path + " answers what is no JSON: " + answer);
  }
  runtime->shut_down();
  const std::string broken = runtime->check_integrity();
  if (!broken.empty()) violated(broken);
}

}  // namespace outrider::fuzz
