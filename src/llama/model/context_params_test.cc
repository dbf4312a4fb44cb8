#include "llama/model/context_params.h"

#include <gtest/gtest.h>

#include <string>

namespace outrider::llama {
namespace {

// llama.cpp aborts in the graph of DeepSeek-OCR where the base is another.
TEST(ContextParams, ABaseOfPositionsThatAGraphAbortsOnIsRefused) {
  ContextSettings settings;
  for (const float base : {0.0f, 10000.0f, 50000.0f}) {
    settings.rope_freq_base = base;
    EXPECT_TRUE(check_rope_base("llama", settings).ok());
    const Status status = check_rope_base("deepseek2-ocr", settings);
    EXPECT_EQ(status.ok(), base != 50000.0f);
    if (status.ok()) continue;
    EXPECT_EQ(status.code(), StatusCode::kUnsupported);
    EXPECT_EQ(status.field(), "rope_freq_base");
    EXPECT_NE(status.message().find("10000 alone"), std::string::npos) << status.message();
  }
}

}  // namespace
}  // namespace outrider::llama
