// What llama-server's clients say of samplers, in completions of every kind.
#include "http/openai/samplers.h"

#include "http/fixture_test.h"
#include "http/openai/chat_form.h"
#include "http/openai/text_form.h"

namespace outrider::http {
namespace {

using json::Json;

// What llama.vim's instruct mode sends, and more that llama-server's other clients do.
Json instruct_body() {
  const json::Parsed body = json::parse(R"({"id_slot":3,"messages":[
    {"role":"system","content":"abc"},
    {"role":"user","content":"abc"}],
    "min_p":0.1,"temperature":0.1,"samplers":["min_p","temperature"],"stream":true,
    "cache_prompt":true,"timings_per_token":true,"response_fields":[""],"n_predict":4,
    "t_max_prompt_ms":500,"typ_p":1.0,"backend_sampling":false,"reasoning_format":"auto",
    "reasoning_control":true,"verbose":false})");
  EXPECT_TRUE(body.ok()) << body.error;
  return body.ok() ? *body.value : Json();
}

SamplingOptions sampling_of(const Result<CompletionTask>& task) {
  EXPECT_TRUE(task.ok()) << task.status().message();
  return task.ok() ? task->requests.shared.sampling : SamplingOptions();
}

TEST(Samplers, AChatOfAnEditorLeavesOnThoseThatItNames) {
  const SamplingOptions o = sampling_of(read_chat_task(instruct_body(), ServerOptions()));
  EXPECT_FLOAT_EQ(o.min_p, 0.1f);
  EXPECT_FLOAT_EQ(o.temperature, 0.1f);
  EXPECT_EQ(o.top_k, 0) << "off";
  EXPECT_FLOAT_EQ(o.top_p, 1.0f) << "off";
}

TEST(Samplers, ATextCompletionReadsThemToo) {
  const Json body = {{"prompt", "abc"}, {"top_k", 5}, {"top_p", 0.5}, {"samplers", "kt"}};
  const SamplingOptions o = sampling_of(read_text_task(body, ServerOptions()));
  EXPECT_EQ(o.top_k, 5);
  EXPECT_FLOAT_EQ(o.top_p, 1.0f) << "off";
}

TEST(Samplers, MirostatKeepsItsTemperatureWhateverIsNamed) {
  const Json body = {{"prompt", "abc"},
                     {"mirostat", 2},
                     {"temperature", 0.5},
                     {"samplers", Json::array({"top_k"})}};
  EXPECT_FLOAT_EQ(sampling_of(read_text_task(body, ServerOptions())).temperature, 0.5f);
}

// Its warm-up, while the user still types: nothing is to be said.
TEST(Samplers, NoneMayBeNamed) {
  Json body = instruct_body();
  body.update({{"samplers", Json::array()}, {"n_predict", 0}, {"stream", false}});
  const SamplingOptions o = sampling_of(read_chat_task(body, ServerOptions()));
  EXPECT_FLOAT_EQ(o.temperature, 1.0f);
  EXPECT_FLOAT_EQ(o.min_p, 0.0f);
}

TEST(Samplers, WhatTheyCannotBeIsRefusedByName) {
  for (const Json& samplers :
       {Json::array({"temperature", "min_p"}), Json::array({"top_z"}), Json(5)}) {
    Json body = instruct_body();
    body["samplers"] = samplers;
    EXPECT_EQ(read_chat_task(body, ServerOptions()).status().field(), "samplers");
  }
  Json body = instruct_body();
  body["reasoning_format"] = "deepseek-legacy";
  EXPECT_EQ(read_chat_task(body, ServerOptions()).status().field(), "reasoning_format");
}

class SamplersServerTest : public ServerTest {};

TEST_F(SamplersServerTest, TheEditorsChatIsAnswered) {
  start();
  const std::vector<Json> chunks = events(post("/v1/chat/completions", instruct_body()));
  ASSERT_FALSE(chunks.empty());
  EXPECT_EQ(chunks.back()["choices"][0]["finish_reason"], "length");
}

}  // namespace
}  // namespace outrider::http
