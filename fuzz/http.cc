#include "fuzz/tame.h"
#include "fuzz/targets.h"
#include "http/endpoints.h"
#include "http/fixture_test.h"

namespace outrider::fuzz {
namespace {

using outrider::http::Endpoint;
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

}  // namespace

void http(Bytes input) {
  testing::FakeLoader loader;
  loader.add("target", {.chat = true});
  const std::shared_ptr<Runtime> runtime(
      std::move(Runtime::create({.slots = 2, .max_queue = 4}, loader).value()));
  ModelOptions model;
  model.path = "target";
  model.n_ctx = 64;
  static_cast<void>(runtime->load(ModelRole::kTarget, model));
  static_cast<void>(runtime->wait_loaded(-1));
  outrider::http::FixtureCatalog catalog(runtime);
  outrider::http::Server server({}, catalog);
  Reader reader(input);
  const std::span<const Endpoint> all = outrider::http::endpoints();
  const Endpoint& endpoint = all[reader.below(all.size())];
  const std::optional<std::string> body = tame(text(reader.rest()));
  if (!body) return;
  HttpRequest request;
  request.method = endpoint.method;
  request.path = endpoint.path;
  request.body = *body;
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
