// A request as a client writes it, and the server's reply to it, without sockets; and whether it is
// let in at all, where that takes a key and a name.
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
std::string whole(const HttpReply& reply, bool* was_cut) {
  if (!reply.stream) return reply.body;
  std::string all;
  int writes = 0;
  reply.stream([&](std::string_view bytes) {
    all += bytes;
    return ++writes < kMostWrites;
  });
  *was_cut = writes >= kMostWrites;
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

// What an event may say. A stream that was cut may end within one.
void check_event(std::string_view event) {
  constexpr std::string_view kData = "data: ";
  while (!event.empty()) {
    const std::string_view line = cut(event, '\n');
    if (!line.starts_with(kData) || line == "data: [DONE]") continue;
    const json::Parsed data = json::parse(line.substr(kData.size()));
    if (!data.ok()) violated("an event that is no JSON: " + std::string(line));
    if (!data.value->is_object() || !data.value->contains("error")) continue;
    const json::Json& error = data.value->at("error");
    if (error.is_object() && error.contains("code") && error.at("code") == 500) {
      violated("an internal error: " + std::string(line));
    }
  }
}

void check_events(std::string_view all, bool was_cut) {
  constexpr std::string_view kEnd = "\n\n";
  while (!all.empty()) {
    const std::size_t end = all.find(kEnd);
    if (end == all.npos) {
      if (!was_cut) violated("half an event: " + std::string(all));
      return;
    }
    check_event(all.substr(0, end));
    all.remove_prefix(end + kEnd.size());
  }
}

bool names(const HttpRequest& request, std::string_view header, const auto& fits) {
  return std::any_of(request.headers.begin(), request.headers.end(), [&](const auto& each) {
    return outrider::http::same_name(each.first, header) && fits(std::string_view(each.second));
  });
}

// Of a server on this machine alone. Loose, so that it is not the same code once more.
bool may_be_own_name(std::string_view host) {
  std::string name;
  for (const char c : host) name += static_cast<char>(c >= 'A' && c <= 'Z' ? c + ('a' - 'A') : c);
  return name.find("localhost") != name.npos || name.find("model.example") != name.npos ||
         name.find("127.") != name.npos || name.find(':') != name.npos;
}

}  // namespace

void http_access(Bytes input) {
  const HttpRequest request = request_of(text(input));
  outrider::http::ServerOptions options;
  options.api_keys = {"the-right-key", "another-key"};
  options.cors_origins = {"https://app.example"};
  options.allowed_hosts = {"model.example"};
  const outrider::http::Access access(options);
  HttpReply reply;
  access.let_read(request, reply);
  for (const auto& [name, value] : reply.headers) {
    if (name == "Access-Control-Allow-Origin" && value != "https://app.example") {
      violated("a page of " + value + " may read");
    }
  }
  const std::optional<HttpReply> refused = access.refuse(request, /*open=*/false);
  if (refused) {
    if (refused->status != 401 && refused->status != 403 && refused->status != 204) {
      violated("refused with " + std::to_string(refused->status));
    }
    if (refused->status == 204 && request.method != "OPTIONS")
      violated("no answer to " + request.method);
    return;
  }
  const auto is_key = [](std::string_view value) {
    return value.find("the-right-key") != value.npos || value.find("another-key") != value.npos;
  };
  if (!names(request, "Authorization", is_key) && !names(request, "x-api-key", is_key)) {
    violated("let in without a key");
  }
  const auto is_foreign = [](std::string_view host) { return !may_be_own_name(host); };
  if (names(request, "Host", is_foreign)) violated("let in by a foreign name");
  const std::string_view origin = request.header("Origin");
  const bool changes =
      request.method != "GET" && request.method != "HEAD" && request.method != "OPTIONS";
  if (changes && !origin.empty() && origin != "https://app.example" &&
      !origin.ends_with(request.header("Host"))) {
    violated("a page of " + std::string(origin) + " may change something");
  }
}

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
  bool was_cut = false;
  const std::string answer = whole(reply, &was_cut);
  if (reply.status == 500) violated(request.path + ": 500: " + answer);
  if (reply.stream && reply.content_type.starts_with("text/event-stream")) {
    check_events(answer, was_cut);
  }
  const bool is_json = !reply.stream && reply.content_type.starts_with("application/json");
  if (is_json && !answer.empty() && !json::parse(answer).ok()) {
    violated(request.path + " answers what is no JSON: " + answer);
  }
  runtime->shut_down();
  const std::string broken = runtime->check_integrity();
  if (!broken.empty()) violated(broken);
}

}  // namespace outrider::fuzz
