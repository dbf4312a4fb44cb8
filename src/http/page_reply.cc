#include "http/page_reply.h"

#include "draft/drafter_table.h"
#include "http/page_files.h"
#include "json/json.h"

namespace outrider::http {
namespace {

constexpr const char* kPolicy =
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
    "img-src 'self' data:; base-uri 'none'; frame-ancestors 'none'; form-action 'none'";

HttpReply reply_with(std::string_view content_type, std::string_view bytes) {
  HttpReply reply{.content_type = std::string(content_type), .body = std::string(bytes)};
  // The files change with the binary, and have no names of their own for each version.
  reply.headers = {{"Content-Security-Policy", kPolicy},
                   {"X-Content-Type-Options", "nosniff"},
                   {"Referrer-Policy", "no-referrer"},
                   {"Cross-Origin-Opener-Policy", "same-origin"},
                   {"Cache-Control", "no-cache"}};
  return reply;
}

// The one file that is not in src/http/page: who guesses, and whose colour is which.
std::string drafters_script() {
  json::Json places = json::Json::array();
  for (const std::string_view name : kDrafterNames) {
    places.push_back({std::string(name), drafter_place(name)});
  }
  return "// The table of drafters, as [name, place] (drafter_place() in "
         "src/draft/drafter_table.h).\nexport const kDrafterPlaces = " +
         json::encode(places) + ";\n";
}

}  // namespace

std::optional<HttpReply> page_reply(const HttpRequest& request) {
  if (request.method != "GET" && request.method != "HEAD") return {};
  std::string_view path = request.path;
  if (!path.starts_with('/')) return {};
  path.remove_prefix(1);
  if (path.empty()) path = "index.html";
  if (path == "drafters.js") {
    return reply_with("text/javascript; charset=utf-8", drafters_script());
  }
  for (const PageFile& file : page_files()) {
    if (file.path != path) continue;
    return reply_with(file.content_type, file.bytes);
  }
  return {};
}

}  // namespace outrider::http
