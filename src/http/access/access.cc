#include "http/access/access.h"

#include <arpa/inet.h>
#include <algorithm>
#include <array>

#include "http/exchange/error_reply.h"

namespace outrider::http {
namespace {

constexpr std::string_view kAny = "*";

// Headers that clients act on, and that a browser keeps from a page of another origin otherwise:
// whether and when to ask again, and what of the request nothing came of.
constexpr std::string_view kReadable =
    "Retry-After, x-should-retry, x-outrider-ignored, x-outrider-ignored-tools";

// Without [] and :port: "[::1]:8080" -> "::1".
std::string_view name_of(std::string_view host) {
  if (!host.empty() && host.front() == '[') return host.substr(1, host.find(']') - 1);
  const std::size_t colon = host.find(':');
  const bool one = colon != std::string_view::npos && host.find(':', colon + 1) == host.npos;
  return one ? host.substr(0, colon) : host;
}

// A name has to be looked up, and so can be anybody's; an address cannot.
bool is_address(std::string_view name) {
  const std::string text(name);
  std::array<unsigned char, 16> bytes{};
  return inet_pton(AF_INET, text.c_str(), bytes.data()) == 1 ||
         inet_pton(AF_INET6, text.c_str(), bytes.data()) == 1;
}

constexpr std::string_view kGuard = "give --api-key or --api-key-file, or say --public-without-key";

bool is_guarded(const ServerOptions& options) {
  return !options.api_keys.empty() || options.public_without_key;
}

bool changes_nothing(std::string_view method) {
  return method == "GET" || method == "HEAD" || method == "OPTIONS";
}

HttpReply preflight(const HttpRequest& request) {
  HttpReply reply{.status = 204};
  const std::string_view headers = request.header("Access-Control-Request-Headers");
  reply.headers = {{"Access-Control-Allow-Methods", "GET, POST, DELETE, OPTIONS"},
                   {"Access-Control-Max-Age", "600"}};
  if (!headers.empty()) reply.headers.emplace_back("Access-Control-Allow-Headers", headers);
  return reply;
}

}  // namespace

bool is_loopback(std::string_view host) {
  const std::string_view name = name_of(host);
  if (same_name(name, "localhost")) return true;
  const std::string text(name);
  in_addr four{};
  if (inet_pton(AF_INET, text.c_str(), &four) == 1) return (ntohl(four.s_addr) >> 24) == 127;
  in6_addr six{};
  return inet_pton(AF_INET6, text.c_str(), &six) == 1 && IN6_IS_ADDR_LOOPBACK(&six);
}

std::vector<std::string> spellings_of(const std::string& address) {
  in_addr four{};
  if (inet_pton(AF_INET, address.c_str(), &four) == 1) return {address, "::ffff:" + address};
  in6_addr six{};
  std::array<char, INET6_ADDRSTRLEN> shortest{};
  if (inet_pton(AF_INET6, address.c_str(), &six) != 1 ||
      inet_ntop(AF_INET6, &six, shortest.data(), shortest.size()) == nullptr) {
    return {};
  }
  if (IN6_IS_ADDR_V4MAPPED(&six)) {  // a socket of IPv4 alone says it without the prefix
    const std::string mapped = shortest.data();
    return {mapped, mapped.substr(mapped.rfind(':') + 1)};
  }
  return {shortest.data()};
}

Status check_exposure(const ServerOptions& options) {
  if (is_guarded(options) || is_loopback(options.host)) return Status();
  return refused(
      "host", "is " + options.host +
                  ", which other machines can reach, and there is no key: " + std::string(kGuard));
}

std::string exposure_warning(const ServerOptions& options) {
  if (is_guarded(options)) return "";
  if (options.allowed_hosts.empty() && options.trusted_proxies.empty()) return "";
  const std::string option = options.allowed_hosts.empty() ? "--trusted-proxy" : "--allowed-host";
  return option +
         " is for a server that others reach, as through a proxy, and there is no key: whoever "
         "reaches it may use it; " +
         std::string(kGuard);
}

Access::Access(const ServerOptions& options)
    : keys_(options.api_keys),
      origins_(options.cors_origins),
      names_(options.allowed_hosts),
      only_this_machine_(is_loopback(options.host)),
      any_name_(std::find(names_.begin(), names_.end(), kAny) != names_.end()) {
  names_.push_back(options.host);
  names_.emplace_back("localhost");
}

bool Access::is_own_name(std::string_view host) const {
  const std::string_view name = name_of(host);
  if (any_name_ || is_loopback(name)) return true;
  if (!only_this_machine_ && is_address(name)) return true;
  return std::any_of(names_.begin(), names_.end(), [&](const std::string& own) {
    return same_name(own, name) || same_name(own, host);
  });
}

bool Access::is_allowed(std::string_view origin) const {
  return std::any_of(origins_.begin(), origins_.end(), [origin](const std::string& allowed) {
    return allowed == kAny || allowed == origin;
  });
}

std::size_t Access::key_number(const HttpRequest& request) const {
  constexpr std::string_view kScheme = "Bearer ";
  const std::string_view given = request.header("Authorization");
  const bool bearer =
      given.size() > kScheme.size() && same_name(given.substr(0, kScheme.size()), kScheme);
  // Without a scheme, as llama-server takes it; no key has the space that a scheme ends with.
  const std::size_t by_bearer = keys_.place_of(bearer ? given.substr(kScheme.size()) : given);
  const std::size_t by_header = keys_.place_of(request.header("x-api-key"));
  return by_bearer > 0 ? by_bearer : by_header;
}

std::optional<HttpReply> Access::refuse(const HttpRequest& request, bool open) const {
  for (const auto& [name, value] : request.headers) {  // each: a second one must not hide
    if (same_name(name, "Host") && !is_own_name(value)) {
      return error_reply(403,
                         "the server does not go by the name in the Host header; the operator "
                         "can allow it (--allowed-host)");
    }
  }
  const std::string_view origin = request.header("Origin");
  if (!origin.empty()) {
    const std::string_view host = request.header("Host");
    const bool own =
        origin == "http://" + std::string(host) || origin == "https://" + std::string(host);
    const bool allowed = is_allowed(origin);
    if (allowed && request.method == "OPTIONS" &&
        !request.header("Access-Control-Request-Method").empty()) {
      return preflight(request);
    }
    if (!own && !allowed && !changes_nothing(request.method)) {
      return error_reply(403,
                         "a page of another origin may not use the server; the operator can "
                         "allow it (--cors-origin)");
    }
  }
  if (open || keys_.empty() || key_number(request) > 0) return std::nullopt;
  HttpReply reply = error_reply(
      401,
      "a key is needed, as 'Authorization: Bearer KEY' or as 'x-api-key: KEY'; there is none, "
      "or not a right one");
  reply.headers.emplace_back("WWW-Authenticate", "Bearer");
  return reply;
}

void Access::let_read(const HttpRequest& request, HttpReply& reply) const {
  if (origins_.empty()) return;
  reply.headers.emplace_back("Vary", "Origin");
  const std::string_view origin = request.header("Origin");
  if (origin.empty() || !is_allowed(origin)) return;
  reply.headers.emplace_back("Access-Control-Allow-Origin", origin);
  reply.headers.emplace_back("Access-Control-Expose-Headers", kReadable);
}

}  // namespace outrider::http
