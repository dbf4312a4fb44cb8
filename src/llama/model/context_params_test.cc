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

TEST(ContextParams, FlashAttentionIsOnOffOrLlamaCppsChoice) {
  const auto type = [](const ContextSettings& settings) {
    return make_params(ContextSizes(), settings).flash_attn_type;
  };
  EXPECT_EQ(type({}), LLAMA_FLASH_ATTN_TYPE_ENABLED);
  EXPECT_EQ(type({.flash_if_supported = true}), LLAMA_FLASH_ATTN_TYPE_AUTO);
  EXPECT_EQ(type({.flash_attention = false}), LLAMA_FLASH_ATTN_TYPE_DISABLED);
  EXPECT_EQ(type({.flash_attention = false, .flash_if_supported = true}),
            LLAMA_FLASH_ATTN_TYPE_DISABLED);
}

TEST(ContextParams, WhatLlamaCppDecidedOfFlashAttentionIsInItsLog) {
  EXPECT_TRUE(says_no_flash("resolve_fused_ops: Flash Attention not supported, set to disabled"));
  EXPECT_FALSE(says_no_flash("resolve_fused_ops: Flash Attention enabled"));
  EXPECT_FALSE(
      says_no_flash("resolve_fused_ops: fused Lightning Indexer not supported, set to disabled"));
}

}  // namespace
}  // namespace outrider::llama
