#include "llama/grammar/grammar_mask.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "llama/schema/json_schema.h"
#include "llama/vocabulary/vocabulary.h"
#include "testing/llama_grammar.h"

namespace outrider::llama {
namespace {

constexpr const char* kJson = R"({"type":"object","properties":{"the":{"type":"string"},)"
                              R"("to":{"type":"array","items":{"type":"integer"}},)"
                              R"("er":{"enum":["é","日本",null,true]}},"required":["the"]})";

using GrammarMaskTest = testing::GrammarTest;

// Random walks through grammars: at every step both answers for all tokens.
TEST_F(GrammarMaskTest, AllowsWhatLlamaAllowsAtEveryStep) {
  const std::vector<std::string> grammars = {
      "root ::= [a-z ]* \"é\" .*", "root ::= (\"the\" | \" the\" | \"日\" [本月]) [^a]{0,5}",
      grammar_from_json_schema(kJson).value(), "root ::= \"a\" <[40]> !<[41]> [a-c]*",
      "root ::= <|im_start|> [a-z]+ | \"\xF0\x9F\x98\x80\" \"x\"?"};
  std::size_t n_allowed = 0;
  for (const std::string& grammar : grammars) {
    for (int walk = 0; walk < 20; ++walk) {
      const std::unique_ptr<GrammarMask> mask = make_mask(grammar);
      const SamplerHandle reference(
          llama_sampler_init_grammar(vocabulary().handle(), grammar.c_str(), "root"));
      for (int step = 0; step < 30; ++step) {
        const std::vector<bool> allowed = mask_allows(*mask);
        ASSERT_EQ(allowed, llama_allows(reference.get())) << grammar << ", step " << step;
        const std::vector<Token> next = possible(allowed);
        n_allowed += next.size();
        if (next.empty()) break;
        const Token token = next[random_() % next.size()];
        if (vocabulary().is_end_of_generation(token)) break;
        mask->accept(token);
        ASSERT_TRUE(mask->status().ok()) << mask->status().message();
        llama_sampler_accept(reference.get(), token);
      }
    }
  }
  EXPECT_GT(n_allowed, 10000u);
}

TEST_F(GrammarMaskTest, FilterKeepsTheOrderAndMaskRowTakesShortRows) {
  const std::unique_ptr<GrammarMask> mask = make_mask("root ::= [x-z]+");
  std::vector<llama_token_data> candidates;
  for (const Token t : bytes("zaybx")) candidates.push_back({.id = t, .logit = 1.0f, .p = 0.0f});
  mask->filter(candidates);
  ASSERT_EQ(candidates.size(), 3u);
  EXPECT_EQ(candidates[0].id, bytes("z")[0]);
  EXPECT_EQ(candidates[1].id, bytes("y")[0]);
  std::vector<float> row(static_cast<std::size_t>(bytes("y")[0]) + 1, 2.0f);
  mask->mask_row(row);
  EXPECT_EQ(std::count(row.begin(), row.end(), 2.0f), 2) << "x and y";
}

TEST_F(GrammarMaskTest, ATokenThatIsNotAllowedEndsItWithAReasonAndNeverAborts) {
  for (const Token wrong : {bytes("b")[0], testing::kTinyEos, testing::kTinyBos, Token{0}}) {
    const std::unique_ptr<GrammarMask> mask = make_mask("root ::= \"aaa\"");
    mask->accept(bytes("a")[0]);
    EXPECT_TRUE(mask->status().ok());
    mask->accept(wrong);
    EXPECT_FALSE(mask->status().ok()) << wrong;
    EXPECT_NE(mask->status().message().find("grammar"), std::string::npos);
    mask->accept(bytes("a")[0]);
    EXPECT_FALSE(mask->clone()->status().ok());
  }
}

TEST_F(GrammarMaskTest, ACloneGoesItsOwnWay) {
  const std::unique_ptr<GrammarMask> mask = make_mask("root ::= [ab]+ | \"c\"", {});
  const std::unique_ptr<GrammarMask> copy = mask->clone();
  copy->accept(bytes("c")[0]);
  EXPECT_NE(mask_allows(*mask), mask_allows(*copy));
  EXPECT_TRUE(mask_allows(*mask)[static_cast<std::size_t>(bytes("c")[0])]);
  const std::unique_ptr<GrammarMask> waiting = make_mask("root ::= \"END\" \"!\"", {"END"});
  waiting->accept(bytes("E")[0]);
  waiting->accept(bytes("N")[0]);
  const std::unique_ptr<GrammarMask> second = waiting->clone();
  second->accept(bytes("D")[0]);
  EXPECT_TRUE(second->binds());
  EXPECT_FALSE(waiting->binds());
}

TEST_F(GrammarMaskTest, TokensThatTheVocabularyDoesNotHaveAreRefused) {
  for (const char* grammar : {"root ::= <[99999]>", "root ::= <no-such-token>"}) {
    const Status status = GrammarMask::create(grammar, {}, vocabulary()).status();
    EXPECT_EQ(status.code(), StatusCode::kInvalidArgument);
    EXPECT_NE(status.message().find("vocabulary"), std::string::npos) << status.message();
  }
}

// Nothing that passes the check makes llama.cpp abort, throw or hang: what it does with grammars at
// the edge of the limits, printed with its time.
TEST_F(GrammarMaskTest, GrammarsAtTheLimitsRun) {
  std::string chain = "root ::= r0\n";
  for (int i = 0; i < 480; ++i) {
    chain += "r" + std::to_string(i) + " ::= r" + std::to_string(i + 1) + "\n";
  }
  std::string nested = "root ::= ";
  for (int i = 0; i < 200; ++i) nested += "(";
  nested += "\"a\"+";
  for (int i = 0; i < 200; ++i) nested += ")";
  std::string optional = "root ::= ";
  for (int i = 0; i < 16; ++i) optional += "\"a\"? ";
  for (const std::string& grammar :
       {chain + "r480 ::= \"a\"\n", nested, optional, std::string("root ::= \"a\"{2000}"),
        std::string("root ::= [a-b]{0,2000}"), std::string("root ::= (\"a\"?)* \"b\"")}) {
    const std::chrono::steady_clock::time_point begin = std::chrono::steady_clock::now();
    const std::unique_ptr<GrammarMask> mask = make_mask(grammar);
    for (int i = 0; i < 3; ++i) {
      std::vector<llama_token_data> one = {{.id = bytes("a")[0], .logit = 1.0f, .p = 0.0f}};
      mask->filter(one);
      if (one.empty()) break;
      mask->accept(bytes("a")[0]);
      ASSERT_TRUE(mask->status().ok());
    }
    const std::chrono::steady_clock::time_point middle = std::chrono::steady_clock::now();
    const std::unique_ptr<GrammarMask> copy = mask->clone();
    const auto ms = [](auto d) { return std::chrono::duration<double, std::milli>(d).count(); };
    std::printf("%-40s %8.2f ms to make and use, %8.3f ms to copy\n", grammar.substr(0, 40).c_str(),
                ms(middle - begin), ms(std::chrono::steady_clock::now() - middle));
  }
}

// Each "a" doubles the ways in which the text can be read; without a limit this never ends.
TEST_F(GrammarMaskTest, AGrammarThatCanBeReadInEverMoreWaysEndsWithAnError) {
  const std::unique_ptr<GrammarMask> mask =
      make_mask(R"(root ::= "a" root "a" | "a" root "b" | "!")");
  const std::vector<Token> text = bytes(std::string(200, 'a'));
  std::size_t n = 0;
  while (n < text.size() && mask->status().ok()) mask->accept(text[n++]);
  EXPECT_LT(n, text.size());
  EXPECT_EQ(mask->status().code(), StatusCode::kResourceExhausted);
  EXPECT_NE(mask->status().message().find("too ambiguous"), std::string::npos);
}

}  // namespace
}  // namespace outrider::llama
