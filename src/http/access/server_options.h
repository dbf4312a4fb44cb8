// ServerOptions: what an operator chooses for the server.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/field.h"
#include "request/completion_request.h"

namespace outrider::http {

struct ServerOptions {
  std::string host = "127.0.0.1";
  std::int32_t port = 8080;                // 0: any that is free
  std::vector<std::string> api_keys;       // empty: nobody needs one
  std::string api_key_file;                // further ones, one a line; read_api_keys() adds them
  std::vector<std::string> cors_origins;   // "https://app.example"; "*": any
  std::vector<std::string> allowed_hosts;  // names that a Host header may have, beside its own
  bool public_without_key = false;         // serve other machines although there is no key
  std::int64_t max_body = 16 << 20;        // bytes
  std::int32_t max_connections = 1024;
  std::int32_t read_timeout_s = 20;   // for a request's headers, and the next bytes of its body
  std::int32_t write_timeout_s = 20;  // for the client to take the next bytes
  // Of a connection between two requests. Longer than most clients' and proxies' own (nginx 60, Go
  // and Traefik 90, Caddy 120), so that they close it and never send into one that is being closed.
  std::int32_t keep_alive_s = 130;
  std::int32_t drain_s = 8;            // at the end, for what runs
  std::string access_log;              // a file, or -: stderr; empty: none
  std::int64_t access_log_mib = 1024;  // of it; as much again is kept in "<file>.1"; 0: any number
  bool no_page = false;                // nothing at /
  bool allow_files = false;            // /rpc may load files of this machine by name
  // The default model answers to requests for names that no model has. For servers with a single
  // one that the operator named.
  bool any_model_name = false;
  // Addresses of proxies whose X-Forwarded-For says who the client is.
  std::vector<std::string> trusted_proxies;

  // What a request has that does not say otherwise.
  CompletionRequest defaults;
};

// Static storage.
std::span<const Field<ServerOptions>> server_fields();

// Each of api_keys may be several with commas between them, as llama-server has it: makes one of
// each, and adds those of api_key_file. Once. Errors: about api_key_file (secret_keys.h).
Status read_api_keys(ServerOptions& options);

// Errors: kInvalidArgument, about the field.
Status validate(const ServerOptions& options);

}  // namespace outrider::http
