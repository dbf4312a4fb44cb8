// Who may ask: every way around a key, a name or an origin is refused.
#include "http/access/access.h"

#include "http/completion/completion_task.h"
#include "http/endpoints.h"
#include "http/fixture_test.h"

namespace outrider::http {
namespace {

using Headers = std::vector<std::pair<std::string, std::string>>;

class AccessTest : public ServerTest {
 protected:
  int status_of(const std::string& method, const std::string& path, Headers headers = {}) {
    return reply_to(method, path, std::move(headers)).status;
  }
  HttpReply reply_to(const std::string& method, const std::string& path, Headers headers = {}) {
    return server_->answer(
        {.method = method, .path = path, .body = "{}", .headers = std::move(headers)});
  }
  static std::string header(const HttpReply& reply, std::string_view name) {
    for (const auto& [key, value] : reply.headers) {
      if (same_name(key, name)) return value;
    }
    return "";
  }
};

TEST_F(AccessTest, EveryEndpointNeedsTheKeyByEveryMethodUnlessItIsOpen) {
  start({.api_keys = {"right"}});
  const std::vector<std::string> methods = {"GET",     "POST",  "PUT",  "PATCH", "DELETE",
                                            "OPTIONS", "TRACE", "HEAD", "get",   "Post"};
  for (const Endpoint& endpoint : endpoints()) {
    const std::string path(endpoint.path);
    for (const std::string& method : methods) {
      const bool reads =
          method == endpoint.method || (endpoint.method == "GET" && method == "HEAD");
      const bool open = endpoint.open && reads;
      EXPECT_EQ(status_of(method, path) == 401, !open) << method << " " << path;
      EXPECT_EQ(status_of(method, path, {{"Authorization", "Bearer wrong"}}) == 401, !open);
    }
    for (const std::string& other :
         {"/" + path, path + "/", path + "//", path + "/.", path + "%2e", "/." + path,
          "/health/.." + path, path + "?", path + " ", path + std::string(1, '\0')}) {
      EXPECT_EQ(status_of("GET", other), 401) << other;
      EXPECT_EQ(status_of("POST", other), 401) << other;
    }
  }
  EXPECT_EQ(status_of("GET", "/HEALTH"), 401);
  EXPECT_EQ(status_of("GET", "/V1/Models"), 401);
  EXPECT_EQ(status_of("GET", ""), 401);
  EXPECT_EQ(status_of("GET", "*"), 401);
  EXPECT_EQ(status_of("GET", "/"), 200) << "the page, which asks for the key";
}

TEST_F(AccessTest, TheKeyIsTakenFromEitherHeader) {
  start({.api_keys = {"right", "other"}});
  const auto with = [this](const char* name, const char* value) {
    return status_of("GET", "/v1/models", {{name, value}});
  };
  EXPECT_EQ(with("Authorization", "Bearer right"), 200);
  EXPECT_EQ(with("authorization", "bearer other"), 200);
  EXPECT_EQ(with("X-Api-Key", "right"), 200);
  EXPECT_EQ(with("Authorization", "right"), 200) << "as llama-server takes it";
  for (const char* wrong :
       {"", "wrong", "right ", "right,other", "Basic right", "Bearer", "Bearer ", "Bearer  right",
        "Bearer right ", "Bearer righ", "Bearer rightt", "Bearer Right", "Bearer right,other"}) {
    EXPECT_EQ(with("Authorization", wrong), 401) << wrong;
  }
  EXPECT_EQ(with("x-api-key", ""), 401);
  EXPECT_EQ(with("api-key", "right"), 401);
  EXPECT_EQ(header(reply_to("GET", "/v1/models"), "WWW-Authenticate"), "Bearer");
}

TEST_F(AccessTest, AForeignNameIsRefusedAndOwnOnesAreNot) {
  start({.allowed_hosts = {"llm.lan", "box:8080"}});
  for (const char* own : {"localhost", "LOCALHOST:80", "127.0.0.1:8080", "127.0.0.5", "[::1]:9",
                          "[::1]", "llm.lan", "LLM.lan:443", "box:8080"}) {
    EXPECT_EQ(status_of("GET", "/v1/models", {{"Host", own}}), 200) << own;
  }
  for (const char* foreign : {"evil.com", "evil.com:8080", "localhost.evil.com", "localhost.",
                              "127.0.0.1.evil.com", "192.168.1.5", "[::2]", "", "[", "]", ":80",
                              "127.1", "xllm.lan", "box:81", "localhost@evil.com"}) {
    EXPECT_EQ(status_of("GET", "/health", {{"Host", foreign}}), 403) << foreign;
  }
  EXPECT_EQ(status_of("GET", "/health", {{"Host", "localhost"}, {"Host", "evil.com"}}), 403);
}

// An address cannot be made to point elsewhere, a name can.
TEST_F(AccessTest, AServerForOthersGoesByAnyAddress) {
  start({.host = "0.0.0.0", .api_keys = {"right"}});
  EXPECT_EQ(status_of("GET", "/health", {{"Host", "192.168.1.5:8080"}}), 200);
  EXPECT_EQ(status_of("GET", "/health", {{"Host", "[fd00::1]:8080"}}), 200);
  EXPECT_EQ(status_of("GET", "/health", {{"Host", "evil.com"}}), 403);
}

TEST_F(AccessTest, NoPageOfAnotherOriginReadsOrChangesAnything) {
  start();
  for (const char* origin : {"https://evil.com", "http://localhost.evil.com", "null",
                             "http://localhost:3000", "http://localhost:80800"}) {
    const Headers headers = {{"Host", "localhost:8080"}, {"Origin", origin}};
    EXPECT_EQ(header(reply_to("GET", "/v1/models", headers), "Access-Control-Allow-Origin"), "");
    EXPECT_EQ(status_of("POST", "/v1/completions", headers), 403) << origin;
    EXPECT_EQ(status_of("DELETE", "/v1/models", headers), 403) << origin;
    Headers asks = headers;
    asks.emplace_back("Access-Control-Request-Method", "POST");
    EXPECT_EQ(header(reply_to("OPTIONS", "/v1/completions", asks), "Access-Control-Allow-Origin"),
              "");
  }
  const Headers own = {{"Host", "localhost:8080"}, {"Origin", "http://localhost:8080"}};
  EXPECT_NE(status_of("POST", "/v1/completions", own), 403) << "its own page";
}

TEST(ServerOptionsTest, SeveralKeysMayStandInOneWithCommasBetweenThem) {
  const auto keys_of = [](std::vector<std::string> given) {
    ServerOptions options{.api_keys = std::move(given)};
    EXPECT_TRUE(read_api_keys(options).ok());
    return options;
  };
  using Keys = std::vector<std::string>;
  EXPECT_EQ(keys_of({"a"}).api_keys, Keys{"a"});
  EXPECT_EQ(keys_of({"a, b", "c"}).api_keys, (Keys{"a", "b", "c"}));
  EXPECT_EQ(keys_of({}).api_keys, Keys());
  EXPECT_TRUE(validate(keys_of({"a,b"})).ok());
  EXPECT_TRUE(validate(keys_of({std::string(256, 'x') + "," + std::string(256, 'y')})).ok());
  for (const char* wrong : {"", "a,", ",a", "a,,b", "a, ,b"}) {
    EXPECT_TRUE(validate(keys_of({wrong})).field().starts_with("api_key[")) << wrong;
  }
}

TEST(ServerOptionsTest, AnOriginThatNoBrowserSendsIsRefused) {
  for (const char* right :
       {"*", "null", "https://app.example", "http://localhost:3000", "chrome-extension://abcdef"}) {
    EXPECT_TRUE(validate(ServerOptions{.cors_origins = {right}}).ok()) << right;
  }
  for (const char* wrong : {"https://app.example/", "app.example", "https://", "https://a/b"}) {
    const Status status = validate(ServerOptions{.cors_origins = {"*", wrong}});
    EXPECT_EQ(status.field(), "cors_origin") << wrong;
    EXPECT_NE(status.message().find("https://app.example"), std::string::npos);
  }
}

TEST(ServerOptionsTest, ATrustedProxyIsAnIpAddressHoweverItIsSpelled) {
  for (const char* right : {"10.0.0.5", "fd00::5", "::1", "0:0:0:0:0:0:0:1"}) {
    EXPECT_TRUE(validate(ServerOptions{.trusted_proxies = {right}}).ok()) << right;
  }
  for (const char* wrong : {"proxy.lan", "10.0.0.0/8", "10.0.0.5:80", "[::1]", "10.0.0"}) {
    const Status status = validate(ServerOptions{.trusted_proxies = {"10.0.0.5", wrong}});
    EXPECT_EQ(status.field(), "trusted_proxy") << wrong;
    EXPECT_NE(status.message().find("IP address"), std::string::npos) << status.message();
  }
  using Spellings = std::vector<std::string>;
  EXPECT_EQ(spellings_of("10.0.0.5"), (Spellings{"10.0.0.5", "::ffff:10.0.0.5"}));
  EXPECT_EQ(spellings_of("::FFFF:10.0.0.5"), (Spellings{"::ffff:10.0.0.5", "10.0.0.5"}));
  EXPECT_EQ(spellings_of("0:0:0:0:0:0:0:1"), Spellings{"::1"});
}

TEST_F(AccessTest, AnAllowedOriginIsAnsweredExactly) {
  start({.api_keys = {"right"}, .cors_origins = {"https://app.example"}});
  const auto allowed = [this](const std::string& origin) {
    const HttpReply reply = reply_to("OPTIONS", "/v1/chat/completions",
                                     {{"Origin", origin},
                                      {"Access-Control-Request-Method", "POST"},
                                      {"Access-Control-Request-Headers", "authorization"}});
    EXPECT_EQ(header(reply, "Vary"), "Origin");
    EXPECT_EQ(reply.status == 204, !header(reply, "Access-Control-Allow-Origin").empty());
    return header(reply, "Access-Control-Allow-Origin");
  };
  EXPECT_EQ(allowed("https://app.example"), "https://app.example");
  for (const char* other :
       {"http://app.example", "https://app.example.evil.com", "https://app.example:444", "null",
        "https://APP.example", "https://evil.com/https://app.example"}) {
    EXPECT_EQ(allowed(other), "") << other;
  }
  const Headers without_key = {{"Origin", "https://app.example"}};
  const HttpReply refused = reply_to("POST", "/v1/completions", without_key);
  EXPECT_EQ(refused.status, 401);
  EXPECT_EQ(header(refused, "Access-Control-Allow-Origin"), "https://app.example")
      << "the page may read why";
}

TEST_F(AccessTest, APageOfAnAllowedOriginSeesTheHeadersThatClientsActOn) {
  start({.cors_origins = {"https://app.example"}});
  const auto exposed = [this](const char* path, const char* origin) {
    return header(reply_to("POST", path, {{"Origin", origin}}), "Access-Control-Expose-Headers");
  };
  for (const char* path : {"/v1/completions", "/v1/images/generations"}) {
    const std::string names = ", " + exposed(path, "https://app.example") + ",";
    for (const std::string_view name :
         {std::string_view("Retry-After"), std::string_view("x-should-retry"), kIgnoredHeader,
          kIgnoredToolsHeader}) {
      EXPECT_NE(names.find(", " + std::string(name) + ","), std::string::npos) << name << names;
    }
    EXPECT_EQ(exposed(path, "https://evil.com"), "");
  }
  EXPECT_EQ(header(reply_to("GET", "/v1/models"), "Access-Control-Expose-Headers"), "");
}

TEST(Exposure, AnotherAddressNeedsAKey) {
  for (const char* host : {"127.0.0.1", "localhost", "::1", "[::1]", "127.8.8.8"}) {
    EXPECT_TRUE(check_exposure({.host = host}).ok()) << host;
  }
  for (const char* host : {"0.0.0.0", "::", "192.168.1.5", "box.lan", "", "127.0.0.1.evil.com"}) {
    const Status status = check_exposure({.host = host});
    EXPECT_EQ(status.field(), "host") << host;
    EXPECT_TRUE(check_exposure({.host = host, .api_keys = {"k"}}).ok());
    EXPECT_TRUE(check_exposure({.host = host, .public_without_key = true}).ok());
  }
}

TEST(Exposure, AProxyWithoutAKeyIsWarnedOf) {
  EXPECT_EQ(exposure_warning({}), "");
  for (ServerOptions options : {ServerOptions{.allowed_hosts = {"chat.example"}},
                                ServerOptions{.trusted_proxies = {"127.0.0.1"}}}) {
    ASSERT_TRUE(check_exposure(options).ok());
    EXPECT_NE(exposure_warning(options).find("there is no key"), std::string::npos);
    options.public_without_key = true;
    EXPECT_EQ(exposure_warning(options), "");
    options.public_without_key = false;
    options.api_keys = {"k"};
    EXPECT_EQ(exposure_warning(options), "");
  }
}

}  // namespace
}  // namespace outrider::http
