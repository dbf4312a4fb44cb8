#include "llama/download/hub.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <cstdlib>
#include <exception>

#include "common.h"
#include "http.h"

namespace outrider::llama {
namespace {

constexpr const char* kByHand = "; or get the GGUF file some other way and give it with -m FILE";

std::string environment(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

// One that llama-common sends with its questions for lists; any other it leaves out.
bool has_form(const std::string& token) {
  return token.size() >= 37 && token.size() <= 256 && token.starts_with("hf_") &&
         std::all_of(token.begin() + 3, token.end(),
                     [](unsigned char c) { return std::isalnum(c) != 0; });
}

std::optional<int> status_with(const std::string& token, const std::string& address,
                               std::uint64_t from) {
  try {
    auto [client, url] = common_http_client(address);
    client.set_connection_timeout(5);
    client.set_read_timeout(15);
    if (!token.empty()) client.set_default_headers({{"Authorization", "Bearer " + token}});
    httplib::Headers headers;
    if (from > 0) headers.emplace("Range", "bytes=" + std::to_string(from) + "-");
    std::optional<int> status;
    client.Get(
        url.path, headers,
        [&status](const httplib::Response& answer) {
          status = answer.status;
          return false;
        },
        [](const char*, std::size_t) { return false; });
    return status;
  } catch (const std::exception&) {
    return std::nullopt;
  }
}

}  // namespace

Result<Hub> Hub::find() {
  Hub hub{.endpoint = common_get_model_endpoint(), .host = "", .token = environment("HF_TOKEN")};
  try {
    const common_http_url url = common_http_parse_url(hub.endpoint);
    if (url.host.empty()) throw std::invalid_argument("no host");
    hub.host = url.host;
  } catch (const std::exception&) {
    return invalid_argument("HF_ENDPOINT is '" + hub.endpoint +
                            "', but must be the hub's URL, such as http://127.0.0.1:8080");
  }
#ifndef CPPHTTPLIB_OPENSSL_SUPPORT
  if (hub.endpoint.rfind("https:", 0) == 0) {
    return unsupported(
        "this build cannot download over HTTPS, as OpenSSL was missing when it was configured; "
        "install it (./dev setup, or the package libssl-dev) and build again" +
        std::string(kByHand));
  }
#endif
  return hub;
}

std::string Hub::proxy_hint() const {
  const bool is_tls = endpoint.starts_with("https:");
  const std::array<const char*, 4> names = {is_tls ? "https_proxy" : "http_proxy",
                                            is_tls ? "HTTPS_PROXY" : "HTTP_PROXY", "all_proxy",
                                            "ALL_PROXY"};
  for (const char* name : names) {
    if (environment(name).empty()) continue;
    return std::string("; ") + name +
           " is set, but -hf uses no proxy: get the model with the hub's own tool (hf download), "
           "and -hf finds it in the cache";
  }
  return "";
}

Status Hub::refusal(int status, const HubName& name) const {
  const std::string who = "'" + name.repo + "'";
  const std::string code = " (HTTP " + std::to_string(status) + ")";
  if (status == 401 || status == 403) {
    return not_found(token.empty()
                         ? host + " does not show " + who + code +
                               ": there is no such model, or it is private or gated; check the "
                               "name, or set HF_TOKEN to a token that may read it"
                         : "the token in HF_TOKEN may not read " + who + " on " + host + code +
                               ": check the name, accept the model's terms on its page, or use "
                               "another token");
  }
  if (status == 404)
    return not_found("there is no model " + who + " on " + host + code + "; check the name");
  if (status == 429) {
    return internal_error(host + " gets too many requests from here" + code +
                          "; try again in a few minutes");
  }
  return internal_error(host + " failed to answer for " + who + code + "; try again later" +
                        kByHand);
}

Status Hub::ask(const HubName& name) const {
  try {
    auto [client, url] = common_http_client(endpoint + "api/models/" + name.repo + "/refs");
    client.set_connection_timeout(5);
    client.set_read_timeout(15);
    httplib::Headers headers;
    if (!token.empty()) headers.emplace("Authorization", "Bearer " + token);
    const httplib::Result answer = client.Get(url.path, headers);
    if (answer) return answer->status < 400 ? Status() : refusal(answer->status, name);
    return internal_error(
        "cannot reach " + host + " (" + httplib::to_string(answer.error()) + "), so '" + name.repo +
        "' cannot be downloaded; check the network, or HF_ENDPOINT" + proxy_hint() + kByHand);
  } catch (const std::exception& error) {
    return internal_error("cannot ask " + host + " for '" + name.repo + "': " + error.what());
  }
}

std::optional<int> Hub::status_of(const std::string& url, std::uint64_t from) const {
  return status_with(token, url, from);
}

Status Hub::ask_list(const HubName& name) const {
  const bool is_sent = has_form(token);
  for (const char* what : {"/refs", "/tree/main?recursive=true"}) {
    const std::optional<int> status =
        status_with(is_sent ? token : "", endpoint + "api/models/" + name.repo + what, 0);
    if (!status) {
      return internal_error(host + " does not answer for the list of the files of '" + name.repo +
                            "'; try again later" + kByHand);
    }
    if ((*status == 401 || *status == 403) && !token.empty() && !is_sent) {
      return not_found(host + " does not list the files of '" + name.repo + "' (HTTP " +
                       std::to_string(*status) +
                       "): the token in HF_TOKEN is not sent, as it is not of the form hf_ with 34 "
                       "to 253 letters and digits behind it; use one that is");
    }
    // Of a branch that is not "main", not of the model.
    if (*status >= 400 && *status != 404) return refusal(*status, name);
  }
  return Status();
}

}  // namespace outrider::llama
