#include "api/json_rpc.h"

#include <vector>

#include <gtest/gtest.h>

namespace outrider::api {
namespace {

using json::Json;

// Answers "echo" with its parameters, "fail" with an error; remembers what was called.
struct Echo {
  std::vector<std::string> called;

  CallResult operator()(std::string_view method, const Json& params) {
    called.emplace_back(method);
    if (method == "echo") return Result<Json>(params);
    if (method == "fail") return Result<Json>(not_found("id 7 is unknown").about("id"));
    return {};
  }
};

std::string answer(const std::string& text) {
  Echo echo;
  return answer_json_rpc(text, std::ref(echo));
}

Json error_of_answer(const std::string& text) {
  const json::Parsed parsed = json::parse(answer(text));
  EXPECT_TRUE(parsed.ok()) << text;
  if (!parsed.ok() || !parsed.value->contains("error")) return {};
  return (*parsed.value)["error"];
}

TEST(JsonRpc, ARequestGetsItsResultUnderItsId) {
  for (const char* id : {"1", "\"a\"", "null", "-7", "18446744073709551615"}) {
    EXPECT_EQ(answer(std::string(R"({"jsonrpc":"2.0","method":"echo","params":{"x":1},"id":)") +
                     id + "}"),
              std::string(R"({"jsonrpc":"2.0","id":)") + id + R"(,"result":{"x":1}})");
  }
  EXPECT_EQ(answer(R"({"jsonrpc":"2.0","id":1,"method":"echo"})"),
            R"({"jsonrpc":"2.0","id":1,"result":{}})")
      << "parameters may be left out";
}

TEST(JsonRpc, ANotificationGetsNothingButIsDone) {
  Echo echo;
  EXPECT_EQ(answer_json_rpc(R"({"jsonrpc":"2.0","method":"echo"})", std::ref(echo)), "");
  EXPECT_EQ(answer_json_rpc(R"({"jsonrpc":"2.0","method":"fail"})", std::ref(echo)), "");
  EXPECT_EQ(answer_json_rpc(R"({"jsonrpc":"2.0","method":"none"})", std::ref(echo)), "");
  EXPECT_EQ(echo.called.size(), 3U);
}

TEST(JsonRpc, ErrorsHaveCodesAndFields) {
  Json error = error_of_answer(R"({"jsonrpc":"2.0","id":1,"method":"fail"})");
  EXPECT_EQ(error["code"], -32001);
  EXPECT_EQ(error["message"], "id 7 is unknown");
  EXPECT_EQ(error["data"], Json({{"code", "not_found"}, {"field", "id"}}));
  error = error_of_answer(R"({"jsonrpc":"2.0","id":1,"method":"none"})");
  EXPECT_EQ(error["code"], -32601);
  EXPECT_EQ(error["data"]["field"], "method");
  error = error_of_answer(R"({"jsonrpc":"2.0","id":1,"method":"echo","params":[1]})");
  EXPECT_EQ(error["code"], -32602);
  EXPECT_EQ(error["data"]["field"], "params");
}

TEST(JsonRpc, WhatIsNoRequestIsRefused) {
  const std::pair<const char*, const char*> cases[] = {
      {R"({"id":1,"method":"echo"})", "jsonrpc"},
      {R"({"jsonrpc":2.0,"id":1,"method":"echo"})", "jsonrpc"},
      {R"({"jsonrpc":"2.0","id":1})", "method"},
      {R"({"jsonrpc":"2.0","id":1,"method":5})", "method"},
      {R"({"jsonrpc":"2.0","id":{},"method":"echo"})", "id"},
      {R"({"jsonrpc":"2.0","id":1.5,"method":"echo"})", "id"},
      {R"({"jsonrpc":"2.0","id":true,"method":"echo"})", "id"},
      {R"({"jsonrpc":"2.0","id":1,"method":"echo","extra":1})", "extra"},
      {R"({})", "jsonrpc"}};
  for (const auto& [text, field] : cases) {
    const Json error = error_of_answer(text);
    EXPECT_EQ(error["code"], -32600) << text;
    EXPECT_EQ(error["data"]["field"], field) << text;
    EXPECT_EQ(error["data"]["code"], "invalid_request") << text;
  }
  for (const char* text : {"5", "\"x\"", "null", "true", "[]"}) {
    EXPECT_EQ(error_of_answer(text)["code"], -32600) << text;
  }
}

TEST(JsonRpc, WhatIsNoJsonIsRefusedWithItsPlace) {
  for (const char* text : {"", "{", "nul", "\xFF", "{\"a\":NaN}", "{\"a\":1e999}"}) {
    const Json error = error_of_answer(text);
    EXPECT_EQ(error["code"], -32700) << text;
    EXPECT_EQ(error["data"]["code"], "parse_error") << text;
    EXPECT_EQ(error["message"].get<std::string>().rfind("line 1, column ", 0), 0U) << error;
  }
  EXPECT_EQ(error_of_answer("{\"a\":1,\"a\":2}")["message"],
            "the field 'a' is there twice in one object");
}

TEST(JsonRpc, BatchesAreAnsweredInOrderWithoutTheirNotifications) {
  EXPECT_EQ(answer(R"([{"jsonrpc":"2.0","id":1,"method":"echo"},
                       {"jsonrpc":"2.0","method":"echo"},
                       7,
                       {"jsonrpc":"2.0","id":2,"method":"echo"}])"),
            R"([{"jsonrpc":"2.0","id":1,"result":{}},)"
            R"({"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"the request is a )"
            R"(number, but must be an object","data":{"code":"invalid_request","field":null}}},)"
            R"({"jsonrpc":"2.0","id":2,"result":{}}])");
  EXPECT_EQ(answer(R"([{"jsonrpc":"2.0","method":"echo"}])"), "") << "nothing to answer";
}

TEST(JsonRpc, BatchesAndBodiesAreBounded) {
  Echo echo;
  std::string batch = "[";
  for (std::size_t i = 0; i <= kMaxBatch; ++i) batch += std::string(i == 0 ? "" : ",") + "1";
  const std::string refused = answer_json_rpc(batch + "]", std::ref(echo));
  EXPECT_NE(refused.find("at most 64 can be"), std::string::npos) << refused;
  EXPECT_NE(answer(std::string(kMaxRequestBytes + 1, ' ')).find("-32700"), std::string::npos);
}

TEST(JsonRpc, DeepNestingIsRefused) {
  for (const std::size_t depth : {std::size_t{65}, std::size_t{3000}, std::size_t{100000}}) {
    const std::string text = R"({"jsonrpc":"2.0","id":1,"method":"echo","params":{"x":)" +
                             std::string(depth, '[') + std::string(depth, ']') + "}}";
    EXPECT_EQ(error_of_answer(text)["code"], -32700) << depth;
  }
}

TEST(JsonRpc, EventsAreNotifications) {
  EXPECT_EQ(json_rpc_notification("event", {{"a", 1}}),
            R"({"jsonrpc":"2.0","method":"event","params":{"a":1}})");
}

}  // namespace
}  // namespace outrider::api
