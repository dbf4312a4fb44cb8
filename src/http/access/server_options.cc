#include "http/access/server_options.h"

#include <string_view>
#include <utility>

#include "http/access/access.h"
#include "http/access/secret_keys.h"

namespace outrider::http {
namespace {

using Options = ServerOptions;

constexpr Field<Options> kFields[] = {
    {.name = "host",
     .help = "the address to listen on; other machines reach only what is not 127.0.0.1, and need "
             "a key then",
     .place = &Options::host,
     .unit = "ADDRESS"},
    {.name = "port",
     .help = "the port to listen on; 0: any that is free, which is printed",
     .place = &Options::port,
     .range = {.min = 0.0, .max = 65535.0}},
    {.name = "api_key",
     .help =
         "a key that clients must show (Authorization: Bearer KEY, or x-api-key: KEY), or several "
         "with commas between them; better given by --api-key-file or the environment, where "
         "others on this machine do not see it",
     .place = &Options::api_keys,
     .range = {.min = 1.0, .max = SecretKeys::kMaxBytes},
     .unit = "KEY",
     .most = 1024},
    {.name = "api_key_file",
     .help = "a file with further keys, one a line",
     .place = &Options::api_key_file,
     .unit = "FILE"},
    {.name = "cors_origin",
     .help = "a web page of this origin may use the server (https://app.example, or *: any)",
     .place = &Options::cors_origins,
     .range = {.min = 1.0, .max = 256.0},
     .unit = "ORIGIN",
     .most = 64},
    {.name = "allowed_host",
     .help = "a name under which the server is reached; others are refused, so that a foreign page "
             "cannot get here by a name of its own",
     .place = &Options::allowed_hosts,
     .range = {.min = 1.0, .max = 256.0},
     .unit = "NAME",
     .most = 64},
    {.name = "trusted_proxy",
     .help = "the address of a proxy in front of the server, whose header X-Forwarded-For is "
             "believed: the access log names the client, and not the proxy",
     .place = &Options::trusted_proxies,
     .range = {.min = 1.0, .max = 256.0},
     .unit = "ADDRESS",
     .most = 64},
    {.name = "public_without_key",
     .help = "serve other machines although there is no key",
     .place = &Options::public_without_key},
    {.name = "max_body",
     .help = "bytes of a request's body, at most",
     .place = &Options::max_body,
     .range = {.min = 1024.0, .max = 1073741824.0}},
    {.name = "max_connections",
     .help = "connections at once; further ones are refused",
     .place = &Options::max_connections,
     .range = {.min = 8.0, .max = 16384.0}},
    {.name = "read_timeout",
     .help = "seconds for all of a request's headers, and for each next part of its body",
     .place = &Options::read_timeout_s,
     .range = {.min = 1.0, .max = 3600.0}},
    {.name = "write_timeout",
     .help =
         "seconds to wait until a client takes the next bytes; then its completion is cancelled",
     .place = &Options::write_timeout_s,
     .range = {.min = 1.0, .max = 3600.0}},
    {.name = "keep_alive",
     .help = "seconds that a connection may wait for its next request; more than a proxy in front "
             "of the server keeps its own",
     .place = &Options::keep_alive_s,
     .range = {.min = 1.0, .max = 3600.0}},
    {.name = "drain",
     .help = "seconds that running completions have to end when the server is stopped",
     .place = &Options::drain_s,
     .range = {.min = 0.0, .max = 3600.0}},
    {.name = "access_log",
     .help = "a line of JSON for each request goes to this file, or with - to stderr; never keys, "
             "prompts or answers",
     .place = &Options::access_log,
     .unit = "FILE"},
    {.name = "access_log_mib",
     .help = "mebibytes of the access log; a file that is full becomes FILE.1, in the place of the "
             "one before; a pipe, a device or a link does not",
     .place = &Options::access_log_mib,
     .range = {.min = 0.0, .max = 1048576.0},
     .off = {.where = Off::Where::kAt, .value = 0.0}},
    {.name = "no_page", .help = "do not serve the page at /", .place = &Options::no_page},
    {.name = "allow_files",
     .help = "let clients of /rpc load models and drafters' files of this machine",
     .place = &Options::allow_files},
};

// "*", or a scheme, a host and perhaps a port, as browsers send it; it is compared as a text.
// "null" is what pages without an origin send.
bool is_origin(std::string_view text) {
  if (text == "*" || text == "null") return true;
  const std::size_t colon = text.find("://");
  if (colon == 0 || colon == std::string_view::npos) return false;
  const std::string_view host = text.substr(colon + 3);
  return !host.empty() && host.find_first_of("/?# ") == std::string_view::npos;
}

}  // namespace

std::span<const Field<ServerOptions>> server_fields() { return kFields; }

Status read_api_keys(ServerOptions& options) {
  std::vector<std::string> given;
  for (const std::string& list : options.api_keys) {
    for (std::string& key : keys_of(list)) given.push_back(std::move(key));
  }
  options.api_keys = std::move(given);
  if (options.api_key_file.empty()) return Status();
  Result<std::vector<std::string>> keys = read_key_file(options.api_key_file);
  if (!keys.ok()) return keys.status().in_field("api_key_file");
  options.api_keys.insert(options.api_keys.end(), keys->begin(), keys->end());
  return Status();
}

Status validate(const ServerOptions& options) {
  OUTRIDER_RETURN_IF_ERROR(check(server_fields(), options));
  for (const std::string& origin : options.cors_origins) {
    if (is_origin(origin)) continue;
    return wrong_value("cors_origin", "'" + origin + "'",
                       "* or what browsers send as an origin: https://app.example or "
                       "http://localhost:3000, without a path or a slash at the end");
  }
  for (const std::string& proxy : options.trusted_proxies) {
    if (!spellings_of(proxy).empty()) continue;
    return wrong_value("trusted_proxy", "'" + proxy + "'",
                       "an IP address as 10.0.0.5 or fd00::5, without a port or a range");
  }
  for (const std::string& key : options.api_keys) {
    OUTRIDER_RETURN_IF_ERROR(check_key("api_key", key));
  }
  return validate_settings(options.defaults);
}

}  // namespace outrider::http
