#include "http/endpoint/endpoint.h"

#include <string>
#include <utility>

namespace outrider::http {

using json::Json;

std::string_view name_in_path(const Endpoint& endpoint) {
  const std::size_t brace = endpoint.path.find('{');
  if (brace == std::string_view::npos) return {};
  return endpoint.path.substr(brace + 1, endpoint.path.size() - brace - 2);
}

bool is_at(const Endpoint& endpoint, std::string_view path) {
  const std::size_t stem = endpoint.path.find('{');  // behind the slash
  if (stem == std::string_view::npos) return endpoint.path == path;
  return path.size() > stem && path.starts_with(endpoint.path.substr(0, stem));
}

Result<Json> read_body(const HttpRequest& request) {
  if (request.body.empty()) {
    return invalid_argument("the body is empty, but must be a JSON object");
  }
  json::Parsed parsed = json::parse_sent(request.body);
  if (!parsed.ok()) return invalid_argument("the body cannot be read: " + parsed.error);
  if (!parsed.value->is_object()) {
    return invalid_argument("the body is " + std::string(json::kind(*parsed.value)) +
                            ", but must be an object");
  }
  return std::move(*parsed.value);
}

}  // namespace outrider::http
