#include "http/page_reply.h"

#include "http/page_files.h"

namespace outrider::http {
namespace {

constexpr const char* kPolicy =
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
    "img-src 'self' data:; base-uri 'none'; frame-ancestors 'none'; form-action 'none'";

}  // namespace

std::optional<HttpReply> page_reply(const HttpRequest& request) {
  if (request.method != "GET" && request.method != "HEAD") return {};
  std::string_view path = request.path;
  if (!path.starts_with('/')) return {};
  path.remove_prefix(1);
  if (path.empty()) path = "index.html";
  for (const PageFile& file : page_files()) {
    if (file.path != path) continue;
    HttpReply reply{.content_type = std::string(file.content_type),
                    .body = std::string(file.bytes)};
    // The files change with the binary, and have no names of their own for each version.
    reply.headers = {{"Content-Security-Policy", kPolicy},
                     {"X-Content-Type-Options", "nosniff"},
                     {"Referrer-Policy", "no-referrer"},
                     {"Cross-Origin-Opener-Policy", "same-origin"},
                     {"Cache-Control", "no-cache"}};
    return reply;
  }
  return {};
}

}  // namespace outrider::http
