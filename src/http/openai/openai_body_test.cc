// What OpenAI's bodies have in common.
#include "http/openai/openai_body.h"

#include <gtest/gtest.h>

#include <utility>
#include <vector>

#include "http/completion/body_test.h"
#include "http/completion/conversation_body.h"
#include "http/openai/chat_form.h"
#include "http/openai/responses_body.h"
#include "http/openai/text_form.h"

namespace outrider::http {
namespace {

using json::Json;
using ReadTask = Result<CompletionTask> (*)(Json body, const ServerOptions& options);

// The request's schema, or the error's field.
std::string schema_of(const Json& format) {
  const Json body = {{"response_format", format}};
  api::JsonFields fields(body, "", &openai_dialect());
  CompletionRequest request;
  read_response_format(fields, request);
  const Status error = fields.finish();
  return error.ok() ? request.sampling.json_schema : "error: " + error.field();
}

TEST(OpenAiBody, AResponseFormatBecomesASchema) {
  const Json schema = {{"type", "object"}, {"properties", Json::object()}};
  EXPECT_EQ(schema_of({{"type", "text"}}), "");
  EXPECT_EQ(schema_of({{"type", "json_object"}}), R"({"type":"object"})");
  EXPECT_EQ(schema_of({{"type", "json_schema"}, {"json_schema", {{"schema", schema}}}}),
            json::encode(schema));
  EXPECT_EQ(schema_of({{"type", "json_schema"},
                       {"json_schema", {{"name", "n"}, {"strict", true}, {"schema", schema}}}}),
            json::encode(schema));
  EXPECT_EQ(schema_of(Json()), "") << "null is as if it were not there";
}

TEST(OpenAiBody, AJsonObjectIsAnObjectUnlessTheSchemaBesideItSaysOtherwise) {
  const auto beside = [](const Json& schema) {
    return schema_of({{"type", "json_object"}, {"schema", schema}});
  };
  EXPECT_EQ(beside(Json::object()), R"({"type":"object"})");
  EXPECT_EQ(beside(Json()), R"({"type":"object"})");
  EXPECT_EQ(beside({{"items", Json::array()}}), R"({"items":[]})");
  EXPECT_EQ(beside({{"type", "array"}}), R"({"type":"array"})");
  EXPECT_EQ(beside({{"const", 7}}), R"({"const":7})");
  EXPECT_EQ(beside(7), "error: response_format");
}

TEST(OpenAiBody, AResponseFormatThatSaysNothingIsRefusedWithItsPlace) {
  EXPECT_EQ(schema_of(Json::object()), "error: response_format.type");
  EXPECT_EQ(schema_of("json_object"), "error: response_format");
  EXPECT_EQ(schema_of({{"type", "json_schema"}}), "error: response_format.json_schema");
  EXPECT_EQ(schema_of({{"type", "json_schema"}, {"json_schema", {{"name", "n"}}}}),
            "error: response_format.json_schema.schema");
  EXPECT_EQ(schema_of({{"type", "json_schema"}, {"json_schema", {{"schema", 7}}}}),
            "error: response_format");
  EXPECT_EQ(schema_of({{"type", "json_object"}, {"scheme", Json::object()}}),
            "error: response_format.scheme");
}

// What a server was started with (--grammar, --json-schema) gives way to what a request asks for.
TEST(OpenAiBody, ARequestsOwnConstraintTakesTheDefaultsPlace) {
  CompletionRequest defaults;
  defaults.sampling.json_schema = R"({"type":"array"})";
  const auto schema = [&defaults](const Json& body) {
    return defaults_for(body, openai_dialect(), defaults).sampling.json_schema;
  };
  const Json object = {{"type", "json_object"}};
  EXPECT_EQ(schema({{"response_format", {{"type", "text"}}}}), R"({"type":"array"})");
  EXPECT_EQ(schema({{"response_format", object}}), "");
  EXPECT_EQ(schema({{"text", {{"format", object}}}}), "");
  EXPECT_EQ(schema({{"output_config", {{"format", object}}}}), "");
  EXPECT_EQ(schema({{"grammar", "root ::= \"a\""}}), "");
  EXPECT_EQ(schema({{"text", "a"}, {"tools", Json::array({7})}}), R"({"type":"array"})")
      << "an answer is such content, or calls";
  defaults = {};
  defaults.sampling.grammar = "root ::= \"a\"";
  const auto grammar = [&defaults](const Json& body) {
    return defaults_for(body, openai_dialect(), defaults).sampling.grammar;
  };
  EXPECT_EQ(grammar(Json::object()), defaults.sampling.grammar);
  EXPECT_EQ(grammar({{"tools", Json::array()}}), defaults.sampling.grammar);
  EXPECT_EQ(grammar({{"tools", Json::array({7})}}), "");
  EXPECT_EQ(grammar({{"tools", Json::array({7})}, {"tool_choice", "none"}}),
            defaults.sampling.grammar);
  EXPECT_EQ(grammar({{"tools", Json::array({7})}, {"tool_choice", {{"type", "none"}}}}),
            defaults.sampling.grammar)
      << "as Anthropic has it";
  EXPECT_EQ(grammar({{"tools", Json::array({7})}, {"tool_choice", {{"type", "any"}}}}), "");
  EXPECT_EQ(grammar({{"functions", Json::array({7})}}), "");
  EXPECT_EQ(grammar({{"functions", Json::array({7})}, {"function_call", {{"name", "f"}}}}), "");
  EXPECT_EQ(grammar({{"functions", Json::array({7})}, {"function_call", "none"}}),
            defaults.sampling.grammar);
  EXPECT_EQ(grammar({{"functions", Json::array()}}), defaults.sampling.grammar);
  EXPECT_EQ(grammar({{"json_schema", Json::object()}}), "");
}

// What a server was started with (--mirostat 2, --temp 0, ...) gives way to what a request asks
// for.
TEST(OpenAiBody, OfMirostatAndWhatItExcludesTheRequestsOwnWins) {
  const auto sampling = [](const char* more, const SamplingOptions& of_server) {
    Json body = parsed(R"({"messages":[{"role":"user","content":"a"}]})");
    body.update(parsed(more));
    ServerOptions options;
    options.defaults.sampling = of_server;
    const Result<CompletionTask> task = read_chat_task(body, options);
    EXPECT_TRUE(task.ok()) << more << ": " << task.status().message();
    return task.ok() ? task->requests.shared.sampling : SamplingOptions();
  };
  const SamplingOptions mirostat{.mirostat = 2};
  for (const char* own :
       {R"({"temperature":0})", R"({"temp":0})", R"({"top_p":0.9})", R"({"frequency_penalty":0.5})",
        R"({"typ_p":0.5})", R"({"mirostat":0})"}) {
    EXPECT_EQ(sampling(own, mirostat).mirostat, 0) << own;
  }
  EXPECT_FLOAT_EQ(sampling(R"({"top_p":0.9})", mirostat).top_p, 0.9f);
  for (const char* own : {"{}", R"({"temperature":0.5})", R"({"top_p":1})", R"({"top_p":null})",
                          R"({"presence_penalty":0,"frequency_penalty":0})"}) {
    EXPECT_EQ(sampling(own, mirostat).mirostat, 2) << own << " excludes nothing";
  }
  const SamplingOptions filters{.temperature = 0.0f, .top_k = 7, .repeat_penalty = 1.1f};
  const SamplingOptions own = sampling(R"({"mirostat":1})", filters);
  EXPECT_EQ(own.mirostat, 1);
  EXPECT_FLOAT_EQ(own.temperature, SamplingOptions().temperature);
  EXPECT_EQ(own.top_k, SamplingOptions().top_k);
  EXPECT_FLOAT_EQ(own.repeat_penalty, 1.0f);
  EXPECT_EQ(sampling(R"({"mirostat":0})", filters).top_k, 7);
  EXPECT_FLOAT_EQ(sampling(R"({"mirostat":2})", {.temperature = 0.3f}).temperature, 0.3f);
}

TEST(OpenAiBody, WhatTheServicesCacheAndOtherServicesAreToldChangesNothing) {
  const Json body = parsed(R"({"messages":[{"role":"user","content":"a"}],"audio":null,
    "prompt_cache_options":{"mode":"implicit"},"moderation":null,"web_search_options":null})");
  const Result<CompletionTask> task = read_chat_task(body, ServerOptions());
  EXPECT_TRUE(task.ok()) << task.status().message();
}

TEST(OpenAiBody, WhatABodyAsksForTogetherIsStillRefused) {
  const auto field_of_error = [](const char* more) {
    Json body = parsed(R"({"prompt":"a"})");
    body.update(parsed(more));
    ServerOptions options;
    options.defaults.sampling = {.repeat_penalty = 1.1f, .ignore_eos = true};
    return read_text_task(body, options).status().field();
  };
  EXPECT_EQ(field_of_error(R"({"mirostat":2,"top_p":0.9})"), "top_p");
  EXPECT_EQ(field_of_error(R"({"mirostat":2,"temperature":0})"), "temperature");
  EXPECT_EQ(field_of_error(R"({"grammar":"root ::= \"a\"","ignore_eos":true})"), "ignore_eos");
  EXPECT_EQ(field_of_error(R"({"mirostat":"two"})"), "mirostat");
}

TEST(OpenAiBody, OfAnEndlessTextAndAConstraintTheRequestsOwnWins) {
  CompletionRequest defaults;
  defaults.sampling.ignore_eos = true;
  const auto endless = [&defaults](const Json& body) {
    return defaults_for(body, openai_dialect(), defaults).sampling.ignore_eos;
  };
  EXPECT_TRUE(endless(Json::object()));
  EXPECT_TRUE(endless({{"response_format", {{"type", "text"}}}}));
  EXPECT_TRUE(endless({{"tools", Json::array()}}));
  EXPECT_FALSE(endless({{"response_format", {{"type", "json_object"}}}}));
  EXPECT_FALSE(endless({{"grammar", "root ::= \"a\""}}));
  EXPECT_FALSE(endless({{"tools", Json::array({7})}}));
  defaults.sampling = {};
  defaults.sampling.grammar = "root ::= \"a\"";
  defaults.sampling.grammar_triggers = {"a"};
  const auto constraint = [&defaults](const Json& body) {
    const SamplingOptions o = defaults_for(body, openai_dialect(), defaults).sampling;
    return o.constrained() || !o.grammar_triggers.empty();
  };
  EXPECT_TRUE(constraint(Json::object()));
  EXPECT_TRUE(constraint({{"ignore_eos", false}}));
  EXPECT_FALSE(constraint({{"ignore_eos", true}}));
  defaults.sampling = {};
  defaults.sampling.json_schema = "{}";
  EXPECT_FALSE(constraint({{"ignore_eos", true}}));
}

TEST(OpenAiBody, LlamaServersRandomSeedIsRandomInEveryCompletion) {
  const auto seed_of = [](ReadTask read, const char* body, std::int64_t seed) {
    Json asked = parsed(body);
    asked["seed"] = seed;
    const Result<CompletionTask> task = read(asked, ServerOptions());
    EXPECT_TRUE(task.ok()) << body;
    return task.ok() ? task->requests.of(0).seed : -1;
  };
  for (const auto& [read, body] : std::vector<std::pair<ReadTask, const char*>>{
           {read_chat_task, R"({"messages":[{"role":"user","content":"a"}]})"},
           {read_text_task, R"({"prompt":"a"})"},
           {read_responses_task, R"({"input":"a"})"}}) {
    EXPECT_NE(seed_of(read, body, 4294967295), 4294967295) << body;
    EXPECT_NE(seed_of(read, body, 4294967295), seed_of(read, body, 4294967295)) << body;
    EXPECT_EQ(seed_of(read, body, 4294967294), 4294967294) << body;
  }
}

TEST(OpenAiBody, AnAssistantsLastMessageGoesOn) {
  const auto read = [](const char* roles, const Json& more) -> std::string {
    api::JsonFields fields(more, "", &openai_dialect());
    CompletionRequest request;
    for (const char* role = roles; *role != 0; ++role) {
      request.messages.push_back({.role = *role == 'a' ? "assistant" : "user", .content = "x"});
    }
    AnswerWishes wishes;
    read_continuation(fields, wishes, request);
    const Status error = fields.finish();
    if (!error.ok()) return error.field();
    return request.chat.continue_last ? "goes on" : "answered";
  };
  EXPECT_EQ(read("u", Json::object()), "answered");
  EXPECT_EQ(read("ua", Json::object()), "goes on") << "as with llama-server";
  EXPECT_EQ(read("uau", Json::object()), "answered");
  EXPECT_EQ(read("ua", {{"continue_final_message", true}, {"add_generation_prompt", false}}),
            "goes on");
  EXPECT_EQ(read("ua", {{"continue_final_message", false}}), "answered");
  EXPECT_EQ(read("u", {{"continue_final_message", true}}), "continue_final_message");
  EXPECT_EQ(read("ua", {{"continue_final_message", true}, {"add_generation_prompt", true}}),
            "continue_final_message");
  EXPECT_EQ(read("ua", {{"add_generation_prompt", true}}), "goes on");
  EXPECT_EQ(read("u", {{"add_generation_prompt", false}}), "add_generation_prompt");
  EXPECT_EQ(read("uaa", Json::object()), "messages");
  EXPECT_EQ(read("ua", {{"continue_final_message", "content"}}), "goes on");
  EXPECT_EQ(read("ua", {{"continue_final_message", "reasoning_content"}}), "goes on");
  EXPECT_EQ(read("u", {{"continue_final_message", "content"}}), "continue_final_message");
  EXPECT_EQ(read("ua", {{"continue_final_message", "text"}}), "continue_final_message");
  EXPECT_EQ(read("ua", {{"continue_final_message", 1}}), "continue_final_message");
  EXPECT_EQ(read("ua", {{"echo", 1}}), "echo");
}

TEST(OpenAiBody, AnAnswerThatGoesOnIsToldWithItsBeginningUnlessAStreamAsksForIt) {
  const auto with_given = [](bool stream, Json more) {
    api::JsonFields fields(more, "", &openai_dialect());
    CompletionRequest request;
    request.messages = {{.role = "assistant", .content = "x"}};
    AnswerWishes wishes{.stream = stream};
    read_continuation(fields, wishes, request);
    EXPECT_TRUE(fields.finish().ok());
    return wishes.with_given;
  };
  for (const bool stream : {false, true}) {
    EXPECT_TRUE(with_given(stream, Json::object()));
    EXPECT_TRUE(with_given(stream, {{"echo", false}})) << "as with llama-server";
    EXPECT_EQ(with_given(stream, {{"continue_final_message", true}}), !stream);
    EXPECT_EQ(with_given(stream, {{"continue_final_message", "content"}, {"echo", false}}),
              !stream);
    EXPECT_TRUE(with_given(stream, {{"continue_final_message", true}, {"echo", true}}));
    EXPECT_FALSE(with_given(stream, {{"continue_final_message", false}, {"echo", true}}));
  }
}

TEST(OpenAiBody, OnlyTextIsAnswered) {
  const auto error_of = [](const Json& modalities) {
    const Json body = {{"modalities", modalities}};
    api::JsonFields fields(body, "", &openai_dialect());
    AnswerWishes wishes;
    read_wishes(fields, wishes);
    return fields.finish().field();
  };
  EXPECT_EQ(error_of({"text"}), "");
  EXPECT_EQ(error_of({"text", "audio"}), "modalities");
}

// llama-server's clients send them.
TEST(OpenAiBody, ReasoningFormatsBudgetsAndAdaptersAreDoneOrRefusedByName) {
  CompletionRequest request;
  std::string message;  // of the last error
  const auto error_of = [&request, &message](const Json& body) {
    api::JsonFields fields(body, "", &openai_dialect());
    AnswerWishes wishes;
    read_openai_fields(fields, wishes, request);
    const Status status = fields.finish();
    message = status.message();
    return status.field();
  };
  EXPECT_EQ(error_of(Json::object()), "");
  EXPECT_FALSE(request.chat.reasoning_in_content);
  EXPECT_EQ(error_of({{"reasoning_format", "none"}}), "");
  EXPECT_TRUE(request.chat.reasoning_in_content);
  for (const char* apart : {"auto", "deepseek"}) {
    EXPECT_EQ(error_of({{"reasoning_format", apart}}), "");
    EXPECT_FALSE(request.chat.reasoning_in_content) << apart;
  }
  EXPECT_EQ(error_of({{"reasoning_format", "deepseek-legacy"}}), "reasoning_format");
  EXPECT_EQ(error_of({{"lora", Json::array()}}), "");
  EXPECT_EQ(error_of({{"lora", Json::array({{{"id", 0}, {"scale", 1}}})}}), "lora");
  EXPECT_EQ(error_of({{"lora", 5}}), "lora");
  EXPECT_NE(message.find("merge the adapter"), std::string::npos)
      << "what can be done: " << message;
  for (const char* budget : {"thinking_budget_tokens", "reasoning_budget_tokens"}) {
    EXPECT_EQ(error_of({{budget, -1}}), "");
    EXPECT_EQ(error_of({{budget, Json()}}), "");
    EXPECT_EQ(error_of({{budget, 0}}), "");
    EXPECT_EQ(error_of({{budget, 100}}), budget);
    EXPECT_EQ(error_of({{budget, -2}}), budget);
  }
}

TEST(OpenAiBody, LogprobsOfAChatBecomeANumber) {
  const auto unified = [](Json body) {
    unify_logprobs(body);
    return body;
  };
  EXPECT_EQ(unified({{"logprobs", true}, {"top_logprobs", 5}}), (Json{{"top_logprobs", 5}}));
  EXPECT_EQ(unified({{"logprobs", true}}), (Json{{"logprobs", 0}}));
  EXPECT_EQ(unified({{"logprobs", false}, {"top_logprobs", 5}}), Json::object());
  EXPECT_EQ(unified({{"logprobs", 3}}), (Json{{"logprobs", 3}}));
}

TEST(OpenAiBody, WishesAreReadAndBounded) {
  const auto error_of = [](const Json& body, AnswerWishes& wishes) {
    api::JsonFields fields(body, "", &openai_dialect());
    read_wishes(fields, wishes);
    const Status error = fields.finish();
    return error.field();
  };
  AnswerWishes wishes;
  EXPECT_EQ(
      error_of({{"n", 3}, {"stream", true}, {"stream_options", {{"include_usage", true}}}}, wishes),
      "");
  EXPECT_TRUE(wishes.stream && wishes.include_usage);
  EXPECT_EQ(wishes.n, 3);
  EXPECT_EQ(error_of({{"n", 0}}, wishes), "n");
  EXPECT_EQ(error_of({{"n", 17}}, wishes), "n");
  EXPECT_EQ(error_of({{"stream", "yes"}}, wishes), "stream");
  EXPECT_EQ(error_of({{"stream_options", {{"include", true}}}}, wishes), "stream_options.include");
  EXPECT_EQ(error_of({{"streem", true}}, wishes), "streem");
}

}  // namespace
}  // namespace outrider::http
