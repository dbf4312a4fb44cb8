#include "rpcserver/init_command.h"

#include <gtest/gtest.h>

namespace outrider::rpcserver {
namespace {

using Texts = std::vector<std::string>;

InitCommand parse(const std::string& cmd) {
  InitCommand command = parse_command(cmd.c_str());
  EXPECT_TRUE(command.refusal.ok()) << cmd << ": " << command.refusal.message();
  return command;
}

std::string refused_field(const std::string& cmd) {
  const InitCommand command = parse_command(cmd.c_str());
  return command.refusal.ok() ? "(accepted)" : command.refusal.field();
}

TEST(InitCommandTest, TheDefaultsAreTheSeeds) {
  const InitCommand command = parse(R"({"model":"m.gguf"})");
  EXPECT_EQ(command.target.path, "m.gguf");
  EXPECT_EQ(command.alias, "m.gguf") << "the path when no alias is given";
  EXPECT_EQ(command.target.n_ctx, 512);
  EXPECT_EQ(command.n_ctx, std::nullopt);
  EXPECT_EQ(command.target.n_batch, 512);
  EXPECT_EQ(command.target.n_threads, 0);
  EXPECT_EQ(command.target.n_gpu_layers, -1);
  EXPECT_TRUE(command.target.use_mmap);
  EXPECT_FALSE(command.target.use_mlock);
  EXPECT_EQ(command.draft.path, "");
  EXPECT_TRUE(command.warnings.empty());
}

TEST(InitCommandTest, BothFormsSayTheSame) {
  const InitCommand json = parse(
      R"({"model":"m","model_draft":"d","model_alias":"a","n_ctx":64,"n_batch":32,"n_threads":3,)"
      R"("n_gpu_layers":4,"n_gpu_layers_draft":2,"n_draft":5,"tensor_split":[3,1],)"
      R"("rope_freq_base":5000,"rope_freq_scale":0.5,"use_mmap":false,"use_mlock":true,)"
      R"("memory_f16":false,"seed":9,"n_predict":7,"n_keep":3,"temperature":0.5})");
  const InitCommand line = parse(
      "app -m m -md d -a a -c 64 -b 32 -t 3 -ngl 4 -ngld 2 --draft 5 -ts 3,1 "
      "--rope-freq-base 5000 --rope-freq-scale 0.5 --no-mmap --mlock --memory-f32 -s 9 -n 7 "
      "--keep 3 --temp 0.5");
  for (const InitCommand& command : {json, line}) {
    EXPECT_EQ(command.target.path, "m");
    EXPECT_EQ(command.draft.path, "d");
    EXPECT_EQ(command.alias, "a");
    EXPECT_EQ(command.target.n_ctx, 64);
    EXPECT_EQ(command.draft.n_ctx, 64);
    EXPECT_EQ(command.n_ctx, 64);
    EXPECT_EQ(command.target.n_batch, 32);
    EXPECT_EQ(command.target.n_threads, 3);
    EXPECT_EQ(command.target.n_gpu_layers, 4);
    EXPECT_EQ(command.draft.n_gpu_layers, 2);
    EXPECT_EQ(command.target.tensor_split, (std::vector<float>{3.0f, 1.0f}));
    EXPECT_EQ(command.target.rope_freq_base, 5000.0f);
    EXPECT_EQ(command.target.rope_freq_scale, 0.5f);
    EXPECT_FALSE(command.target.use_mmap);
    EXPECT_TRUE(command.target.use_mlock);
    EXPECT_EQ(command.target.cache_type_k, "f32");
    EXPECT_EQ(command.draft.cache_type_k, "");
    EXPECT_TRUE(command.warnings.empty());
    const Result<RequestOptions> options = parse_request(json::Json::object(), command.defaults);
    ASSERT_TRUE(options.ok());
    EXPECT_EQ(options->seed, 9U);
    EXPECT_EQ(options->n_predict(), 7);
    EXPECT_EQ(options->values["n_keep"], 3);
    EXPECT_EQ(options->values["temperature"], 0.5);
    EXPECT_EQ(options->request.width, 6);
  }
}

TEST(InitCommandTest, JsonMayBeginBehindWhiteSpace) {
  EXPECT_EQ(parse("\n  {\"model\":\"m\"}").target.path, "m");
}

TEST(InitCommandTest, KeysOfTheOldServerAreIgnoredAndUnknownOnesAreWarnings) {
  const InitCommand command =
      parse(R"({"model":"m","hostname":"h","public_path":"p","port":1,"read_timeout":2,)"
            R"("write_timeout":3,"fa":true,"ctx_size":4096,"async_slack_ms":5})");
  EXPECT_EQ(command.warnings,
            (Texts{"fa is not known and has no effect", "ctx_size is not known and has no effect",
                   "async_slack_ms is not known and has no effect"}));
}

TEST(InitCommandTest, WhatHasNoEffectAnyMoreIsAWarning) {
  EXPECT_EQ(parse(R"({"model":"m","chat_template":"x"})").warnings,
            (Texts{"chat_template has no effect: prompts are taken as they are"}));
  EXPECT_EQ(parse(R"({"model":"m","main_gpu":1})").warnings.size(), 1U);
  EXPECT_EQ(parse(R"({"model":"m","numa":true})").warnings.size(), 1U);
  EXPECT_EQ(parse(R"({"model":"m","numa":false})").warnings.size(), 0U);
  EXPECT_EQ(parse(R"({"model":"m","n_threads":2,"n_threads_batch":4})").warnings.size(), 1U);
  EXPECT_EQ(parse(R"({"model":"m","n_threads":2,"n_threads_batch":2})").warnings.size(), 0U);
}

TEST(InitCommandTest, AnAdapterIsTheTargetsOnly) {
  for (const char* cmd : {R"({"model":"m","model_draft":"d","lora_adapter":"a.gguf"})",
                          "app -m m -md d --lora a.gguf"}) {
    const InitCommand command = parse(cmd);
    EXPECT_EQ(command.target.lora, (Texts{"a.gguf"}));
    EXPECT_TRUE(command.draft.lora.empty());
  }
  EXPECT_TRUE(parse(R"({"model":"m","lora_adapter":""})").target.lora.empty());
}

TEST(InitCommandTest, WhatWouldChangeTheTextIsRefusedByName) {
  EXPECT_EQ(refused_field(R"({"model":"m","lora_base":"b"})"), "lora_base");
  EXPECT_EQ(refused_field(R"({"model":"m","tfs_z":0.5})"), "tfs_z");
  EXPECT_EQ(refused_field("app -m m --tfs 0.5"), "tfs_z");
}

TEST(InitCommandTest, WrongValuesAreRefusedByName) {
  EXPECT_EQ(refused_field(R"({"model":5})"), "model");
  EXPECT_EQ(refused_field(R"({"model":"m","n_ctx":"many"})"), "n_ctx");
  EXPECT_EQ(refused_field(R"({"model":"m","n_ctx":-1})"), "n_ctx");
  EXPECT_EQ(refused_field(R"({"model":"m","n_ctx":1.5})"), "n_ctx");
  EXPECT_EQ(refused_field(R"({"model":"m","n_batch":0})"), "n_batch");
  EXPECT_EQ(refused_field(R"({"model":"m","n_threads":99999999999})"), "n_threads");
  EXPECT_EQ(refused_field(R"({"model":"m","tensor_split":[1,-1]})"), "tensor_split");
  EXPECT_EQ(refused_field(R"({"model":"m","tensor_split":"1,1"})"), "tensor_split");
  EXPECT_EQ(refused_field(R"({"model":"m","use_mmap":1})"), "use_mmap");
  EXPECT_EQ(refused_field(R"({"model":"m","n_draft":-1})"), "n_draft");
  EXPECT_EQ(refused_field(R"({"model":"m","temp":"hot"})"), "temperature");
  EXPECT_EQ(refused_field("app -m m -c"), "n_ctx");
  EXPECT_FALSE(parse_command("{").refusal.ok());
  EXPECT_FALSE(parse_command(nullptr).refusal.ok());
}

TEST(InitCommandTest, ACmdWithoutAModelIsReadAllTheSame) {
  for (const char* cmd : {"", "app", "{}", R"({"model":null})", R"({"model_draft":"d"})"}) {
    EXPECT_EQ(parse(cmd).target.path, "") << cmd;
  }
}

}  // namespace
}  // namespace outrider::rpcserver
