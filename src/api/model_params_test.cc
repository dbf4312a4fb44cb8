#include "api/model_params.h"

#include <set>

#include <gtest/gtest.h>

namespace outrider::api {
namespace {

using json::Json;

std::string wrong_field(const std::string& fields) {
  const Result<LoadRequest> request = read_load_request(
      *json::parse("{\"role\":\"target\",\"path\":\"a.gguf\"" + fields + "}").value);
  return request.ok() ? "" : request.status().field();
}

TEST(ReadLoadRequest, EveryFieldArrives) {
  Result<LoadRequest> request = read_load_request(
      *json::parse(R"({"role":"target","path":"t.gguf","ctx":100,"threads":2,"batch":64,
      "gpu_layers":3,"cache_type_k":"q8_0","cache_type_v":"f16","flash_attn":"on","exact":"off",
      "workers":["a:1","[::1]:2"],"worker_timeout_s":7,"isolate":true,"head":"h.gguf","widest":8})")
           .value);
  ASSERT_TRUE(request.ok()) << request.status().message();
  EXPECT_EQ(request->role, ModelRole::kTarget);
  const ModelOptions& o = request->options;
  EXPECT_EQ(o.path, "t.gguf");
  EXPECT_EQ(o.n_ctx, 100);
  EXPECT_EQ(o.n_threads, 2);
  EXPECT_EQ(o.n_batch, 64);
  EXPECT_EQ(o.n_gpu_layers, 3);
  EXPECT_EQ(o.cache_type_k, "q8_0");
  EXPECT_EQ(o.cache_type_v, "f16");
  EXPECT_EQ(o.flash_attention, FlashAttention::kOn);
  EXPECT_EQ(o.exact, ExactMode::kOff);
  EXPECT_EQ(o.workers, (std::vector<std::string>{"a:1", "[::1]:2"}));
  EXPECT_EQ(o.worker_timeout_s, 7);
  EXPECT_TRUE(o.isolate);
  EXPECT_EQ(o.head, "h.gguf");
  EXPECT_EQ(o.widest, 8);
}

TEST(ReadLoadRequest, WhatIsReadIsWhatIsDocumented) {
  std::set<std::string> documented;
  for (const Parameter& parameter : model_parameters()) {
    const std::string name(parameter.name);
    EXPECT_TRUE(documented.insert(name).second) << name << " twice";
    Json params = {{"role", "target"}, {"path", "a.gguf"}};
    params[name] = Json::array({Json::array()});
    const Result<LoadRequest> request = read_load_request(params);
    ASSERT_FALSE(request.ok()) << name;
    EXPECT_EQ(request.status().field().rfind(name, 0), 0U) << name;
    EXPECT_EQ(request.status().message().find("not a field"), std::string::npos) << name;
  }
  EXPECT_EQ(wrong_field(",\"contxt\":1"), "contxt");
}

TEST(ReadLoadRequest, NumbersAtTheirEdges) {
  EXPECT_EQ(wrong_field(",\"ctx\":0"), "");
  for (const char* name : {"ctx", "threads", "batch", "gpu_layers", "widest"}) {
    for (const char* wrong : {"-2", "2147483648", "-9223372036854775808", "18446744073709551615",
                              "1e308", "\"1\"", "null", "1.5", "true"}) {
      EXPECT_EQ(wrong_field(std::string(",\"") + name + "\":" + wrong), name) << wrong;
    }
  }
  EXPECT_EQ(wrong_field(",\"batch\":0"), "batch");
  EXPECT_EQ(wrong_field(",\"widest\":65"), "widest");
}

TEST(ReadLoadRequest, PathsAreFiles) {
  const auto field = [](const Json& params) { return read_load_request(params).status().field(); };
  EXPECT_EQ(field({{"role", "target"}}), "path");
  EXPECT_EQ(field({{"role", "target"}, {"path", ""}}), "path");
  EXPECT_EQ(field({{"role", "target"}, {"path", std::string("a\0b", 3)}}), "path");
  EXPECT_EQ(field({{"path", "a"}}), "role");
  EXPECT_EQ(field({{"role", "tagret"}, {"path", "a"}}), "role");
  EXPECT_EQ(field(Json::array()), "params");
}

TEST(ReadLoadRequest, ADraftRunsInThisProcess) {
  const auto field = [](const char* text) {
    const Result<LoadRequest> request = read_load_request(*json::parse(text).value);
    return request.ok() ? "" : request.status().field();
  };
  EXPECT_EQ(field(R"({"role":"draft","path":"d.gguf","ctx":64})"), "");
  EXPECT_EQ(field(R"({"role":"draft","path":"d.gguf","workers":"a:1"})"), "workers");
  EXPECT_EQ(field(R"({"role":"draft","path":"d.gguf","isolate":true})"), "isolate");
  EXPECT_EQ(field(R"({"role":"draft","path":"d.gguf","worker_timeout_s":5})"), "worker_timeout_s");
  EXPECT_EQ(field(R"({"role":"draft","path":"d.gguf","head":"h.gguf"})"), "head");
  EXPECT_EQ(field(R"({"role":"draft","path":"d.gguf","mtp":"off"})"), "mtp");
  EXPECT_EQ(field(R"({"role":"draft","path":"d.gguf","exact":"on"})"), "exact");
  EXPECT_EQ(field(R"({"role":"draft","path":"d.gguf","exact":"auto"})"), "") << "as if left out";
  EXPECT_EQ(field(R"({"role":"draft","path":"d.gguf","widest":8})"), "widest");
  EXPECT_EQ(wrong_field(R"(,"worker_timeout_s":-1)"), "worker_timeout_s");
  EXPECT_EQ(wrong_field(R"(,"workers":["a"])"), "workers[0]");
  EXPECT_EQ(wrong_field(R"(,"workers":["a:1",":1"])"), "workers[1]");
}

TEST(ReadLoadRequest, ANestedObjectNamesItsPath) {
  const Json object = {{"path", "a"}, {"ctx", -5}};
  EXPECT_EQ(read_load_request(object, ModelRole::kDraft, "draft.").status().field(), "draft.ctx");
  EXPECT_EQ(read_load_request(Json(3), ModelRole::kDraft, "draft.").status().field(), "draft");
}

}  // namespace
}  // namespace outrider::api
