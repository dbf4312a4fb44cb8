// Where configuring finds that ggml's private headers do not fit, the program still compiles and
// links, llama.cpp's kernels compute, and the reason is said.
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>

#include "backend/llama_loader.h"
#include "capi/instance.h"
#include "json/json.h"
#include "lab/inspection.h"
#include "llama/base/backend.h"
#include "llama/kernels/kernel_buffer.h"
#include "llama/kernels/kernel_worker.h"
#include "llama/kernels/own_kernels.h"
#include "testing/tiny_dir.h"
#include "testing/tiny_gguf.h"

namespace outrider {
namespace {

constexpr const char* kWhy = "ggml's private headers are others (said by the test)";

class NoKernels : public ::testing::Test {
 protected:
  void SetUp() override { ASSERT_TRUE(testing::write_tiny_gguf(path_, {}).ok()); }

  testing::TempDir dir_;
  std::string path_ = dir_.file("tiny.gguf");
};

TEST_F(NoKernels, NothingIsTakenForThem) {
  llama::ensure_backend();
  EXPECT_FALSE(llama::own_kernels().available);
  EXPECT_EQ(llama::own_kernels().reason, kWhy);
  EXPECT_EQ(llama::kernel_buffer_type(), nullptr);
  EXPECT_EQ(llama::worker_device(nullptr), nullptr);
}

TEST_F(NoKernels, InspectSaysWhy) {
  const Result<lab::Inspection> inspection = lab::inspect({.path = path_}, {});
  ASSERT_TRUE(inspection.ok()) << inspection.status().message();
  EXPECT_FALSE(inspection->target.kernels.own);
  EXPECT_EQ(inspection->target.kernels.reason, kWhy);
  const json::Json target = lab::inspection_json(*inspection)["target"];
  EXPECT_EQ(target["kernels"], "stock");
  EXPECT_EQ(target["kernels_reason"], kWhy);
  EXPECT_NE(lab::inspection_table(*inspection).find(std::string("llama.cpp's: ") + kWhy),
            std::string::npos);
}

TEST_F(NoKernels, StatusAndResultsSayWhyAndTextsAreWritten) {
  const json::Json config = {
      {"model", {{"path", path_}, {"ctx", 256}, {"threads", 1}, {"gpu_layers", 0}}}};
  LlamaLoaderOptions options;
  options.probe_budget_ms = 300;
  options.cache_folder = dir_.file("cache");
  const Result<std::unique_ptr<capi::Instance>> instance =
      capi::Instance::create(config.dump(), std::make_unique<LlamaLoader>(std::move(options)));
  ASSERT_TRUE(instance.ok()) << instance.status().message();
  const auto result_of = [&](const char* method, const json::Json& params) {
    const json::Json request = {
        {"jsonrpc", "2.0"}, {"id", 1}, {"method", method}, {"params", params}};
    return (*instance)->call(request.dump());
  };
  const std::string says_why = "\"kernels\":\"stock\",\"kernels_reason\":\"" + std::string(kWhy);
  const std::string status = result_of("system.status", {{"wait_ms", 600000}});
  EXPECT_NE(status.find(says_why), std::string::npos) << status;
  const std::string text = result_of("completion.run", {{"prompt", "Hello"}, {"max_tokens", 4}});
  EXPECT_NE(text.find(says_why), std::string::npos) << text;
}

}  // namespace
}  // namespace outrider
