#include "llama/download/hub_name.h"

#include <gtest/gtest.h>

namespace outrider::llama {
namespace {

TEST(HubName, ANameIsUserAndModelAndPerhapsAQuant) {
  const Result<HubName> plain = parse_hub_name("ggml-org/gemma-3-1b-it-GGUF");
  ASSERT_TRUE(plain.ok());
  EXPECT_EQ(plain->repo, "ggml-org/gemma-3-1b-it-GGUF");
  EXPECT_EQ(plain->quant, "");
  const Result<HubName> quant = parse_hub_name("a_1/b.c:Q4_K_M");
  ASSERT_TRUE(quant.ok());
  EXPECT_EQ(quant->quant, "Q4_K_M");
  EXPECT_EQ(quant->text(), "a_1/b.c:Q4_K_M");
}

TEST(HubName, WhatCouldLeaveTheCacheOrIsAPatternIsRefused) {
  for (const char* text :
       {"", "model", "a/b/c", "/b", "a/", "../b", "a/..", "a/.b", "a/b:", "a:b", "a/b:Q4(",
        "a/b:.*", "a/b c", "http://a/b", "a/b--c", "a/b:q:r", "a//b", "\xff/b"}) {
    const Status status = parse_hub_name(text).status();
    EXPECT_EQ(status.code(), StatusCode::kInvalidArgument) << text;
    EXPECT_NE(status.message().find("USER/REPO"), std::string::npos);
  }
}

}  // namespace
}  // namespace outrider::llama
