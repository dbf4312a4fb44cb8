#include "http/endpoint/endpoint.h"

#include <string>
#include <utility>

namespace outrider::http {

using json::Json;

bool is_at(const Endpoint& endpoint, std::string_view path) {
  if (!endpoint.path.ends_with(kModelInPath)) return endpoint.path == path;
  const std::size_t stem = endpoint.path.size() - kModelInPath.size() + 1;  // with the slash
  return path.size() > stem && path.starts_with(endpoint.path.substr(0, stem));
}

Result<Json> read_body(const HttpRequest& request) {
  if (request.body.empty()) {
    return invalid_argument("the body is empty, but must be a JSON object");
  }
  json::Parsed parsed = json::parse(request.body);
  if (!parsed.ok()) return invalid_argument("the body cannot be read: " + parsed.error);
  if (!parsed.value->is_object()) {
    return invalid_argument("the body is " + std::string(json::kind(*parsed.value)) +
                            ", but must be an object");
  }
  return std::move(*parsed.value);
}

}  // namespace outrider::http
