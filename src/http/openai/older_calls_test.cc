// Programs that were written for OpenAI's older form of tools: what they ask for, and that they are
// answered in their form, whole and streamed.
#include "http/openai/older_calls.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "http/completion/body_test.h"
#include "http/completion/form_driver_test.h"
#include "http/openai/chat_form.h"

namespace outrider::http {
namespace {

using json::Json;

constexpr const char* kFunctions = R"({"functions":[
  {"name":"f","description":"does f","parameters":{"type":"object"}},{"name":"g"}]})";

Result<CompletionTask> task_of(const char* more, const char* and_more = "{}") {
  Json body = parsed(R"({"model":"fake","messages":[{"role":"user","content":"abc"}]})");
  body.update(parsed(more));
  body.update(parsed(and_more));
  return read_chat_task(std::move(body), ServerOptions());
}

ChatOptions chat_of(const char* more, const char* and_more = "{}") {
  const Result<CompletionTask> task = task_of(more, and_more);
  EXPECT_TRUE(task.ok()) << task.status().message();
  return task.ok() ? task->requests.shared.chat : ChatOptions();
}

TEST(OlderCalls, FunctionsAreToolsOfWhichOneMayBeCalledOnce) {
  const ChatOptions chat = chat_of(kFunctions, R"({"tools":null,"tool_choice":null})");
  ASSERT_EQ(chat.tools.size(), 2U);
  EXPECT_EQ(chat.tools[0].name, "f");
  EXPECT_EQ(chat.tools[0].description, "does f");
  EXPECT_EQ(chat.tools[0].parameters, R"({"type":"object"})");
  EXPECT_EQ(chat.tools[1].name, "g");
  EXPECT_EQ(chat.tools[1].parameters, "");
  EXPECT_TRUE(takes_one_call(chat));
  EXPECT_EQ(chat.tool_choice, ToolChoice::kAuto);
  EXPECT_EQ(chat_of(kFunctions, R"({"function_call":"auto"})").tool_choice, ToolChoice::kAuto);
  EXPECT_EQ(chat_of(kFunctions, R"({"function_call":"none"})").tool_choice, ToolChoice::kNone);
  const ChatOptions named = chat_of(kFunctions, R"({"function_call":{"name":"g"}})");
  ASSERT_EQ(named.tools.size(), 1U);
  EXPECT_EQ(named.tools[0].name, "g");
  EXPECT_EQ(named.tool_choice, ToolChoice::kRequired);
  EXPECT_TRUE(named.one_call);
  EXPECT_FALSE(
      takes_one_call(chat_of(R"({"tools":[{"type":"function","function":{"name":"f"}}]})")));
}

TEST(OlderCalls, MayBeAskedForWhereTheServerHasADefaultGrammar) {
  ServerOptions options;
  options.defaults.sampling.grammar = "root ::= \"a\"";
  Json body = parsed(R"({"model":"fake","messages":[{"role":"user","content":"abc"}]})");
  body.update(parsed(kFunctions));
  const Result<CompletionTask> task = read_chat_task(body, options);
  ASSERT_TRUE(task.ok()) << task.status().message();
  EXPECT_EQ(task->requests.shared.sampling.grammar, "");
  EXPECT_EQ(task->requests.shared.chat.tools.size(), 2U);
}

TEST(OlderCalls, AreRefusedByTheirOwnNames) {
  const auto wrong_field = [](const char* more, const char* and_more = "{}") {
    const Result<CompletionTask> task = task_of(more, and_more);
    EXPECT_FALSE(task.ok()) << more << and_more;
    return task.ok() ? "" : task.status().field();
  };
  EXPECT_EQ(wrong_field(R"({"functions":{}})"), "functions");
  EXPECT_EQ(wrong_field(R"({"functions":[{}]})"), "functions[0].name");
  EXPECT_EQ(wrong_field(R"({"functions":[{"name":"f","parameters":5}]})"),
            "functions[0].parameters");
  EXPECT_EQ(wrong_field(R"({"functions":[{"name":"f","type":"function"}]})"), "functions[0].type");
  EXPECT_EQ(wrong_field(kFunctions, R"({"function_call":"required"})"), "function_call");
  EXPECT_EQ(wrong_field(kFunctions, R"({"function_call":{"name":"h"}})"), "function_call.name");
  EXPECT_EQ(wrong_field(kFunctions, R"({"function_call":{}})"), "function_call.name");
  EXPECT_EQ(wrong_field(kFunctions, R"({"tools":[{"type":"function","function":{"name":"f"}}]})"),
            "functions");
  EXPECT_EQ(wrong_field(R"({"function_call":"auto"})", R"({"tool_choice":"auto"})"),
            "function_call");
}

// The chunks of a stream that drive() wrote.
std::vector<Json> chunks_of(const std::string& out) {
  std::vector<Json> chunks;
  for (std::size_t at = 0, end = 0; at < out.size(); at = end + 2) {
    end = out.find("\n\n", at);
    const json::Parsed chunk = json::parse(out.substr(at + 6, end - at - 6));
    EXPECT_TRUE(chunk.ok()) << chunk.error << ": " << out;
    if (!chunk.ok()) break;
    chunks.push_back(*chunk.value);
  }
  return chunks;
}

TEST(OlderCalls, ACallIsToldInTheirForm) {
  const Json called = {{"name", "f"}, {"arguments", R"({"a":1})"}};
  for_each_cut(R"(Hi(call f {"a":1}))", [&](const std::vector<std::string>& pieces) {
    Result<CompletionTask> task = task_of(kFunctions);
    ASSERT_TRUE(task.ok());
    std::string out;
    const Answer answer = drive(pieces, {}, task->form.get(), &out);
    const Json choice = task->form->whole({answer})["choices"][0];
    EXPECT_EQ(choice["finish_reason"], "function_call");
    EXPECT_EQ(choice["message"],
              Json({{"role", "assistant"}, {"content", "Hi"}, {"function_call", called}}));
    Json streamed = {{"name", ""}, {"arguments", ""}};
    Json reason;
    for (const Json& chunk : chunks_of(out)) {
      const Json& one = chunk["choices"][0];
      EXPECT_FALSE(one["delta"].contains("tool_calls")) << chunk;
      reason = one["finish_reason"];
      if (!one["delta"].contains("function_call")) continue;
      for (const auto& [name, more] : one["delta"]["function_call"].items()) {
        streamed[name] = streamed[name].get<std::string>() + more.get<std::string>();
      }
    }
    EXPECT_EQ(streamed, called) << out;
    EXPECT_EQ(reason, "function_call");
  });
}

// A template's format may let through what the request does not allow.
TEST(OlderCalls, OfSeveralCallsTheFirstIsTold) {
  Result<CompletionTask> task = task_of(kFunctions);
  ASSERT_TRUE(task.ok());
  std::string out;
  const Answer answer = drive({R"((call f {}))", R"((call g {}))"}, {}, task->form.get(), &out);
  const Json message = task->form->whole({answer})["choices"][0]["message"];
  EXPECT_EQ(message["function_call"]["name"], "f");
  EXPECT_EQ(out.find(R"("name":"g")"), std::string::npos) << out;
}

TEST(OlderCalls, WhatHasNoneOrAsksForToolsIsAsEver) {
  const auto choice_of = [](const char* more, const std::string& said) {
    Result<CompletionTask> task = task_of(more);
    EXPECT_TRUE(task.ok());
    std::string out;
    const Answer answer = drive({said}, {}, task->form.get(), &out);
    return Json(task->form->whole({answer})["choices"][0]);
  };
  const Json plain = choice_of(kFunctions, "Hi");
  EXPECT_EQ(plain["finish_reason"], "stop");
  EXPECT_EQ(plain["message"], Json({{"role", "assistant"}, {"content", "Hi"}}));
  const Json tools =
      choice_of(R"({"tools":[{"type":"function","function":{"name":"f"}}]})", R"((call f {}))");
  EXPECT_EQ(tools["finish_reason"], "tool_calls");
  EXPECT_EQ(tools["message"]["tool_calls"][0]["function"]["name"], "f");
}

}  // namespace
}  // namespace outrider::http
