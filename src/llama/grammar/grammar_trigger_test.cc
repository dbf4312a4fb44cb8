// Lazy grammars: from which place on they bind, and which tokens may lead there.
#include <gtest/gtest.h>

#include <algorithm>
#include <exception>
#include <memory>
#include <string>
#include <vector>

#include "base/utf8.h"
#include "llama/grammar/grammar_mask.h"
#include "llama/grammar/trigger_tokens.h"
#include "testing/llama_grammar.h"

namespace outrider::llama {
namespace {

// A vocabulary full of tokens that end, hold, begin with and run past "END" and "é".
class GrammarTriggerTest : public testing::GrammarTest {
 protected:
  void SetUp() override {
    testing::TinyModelOptions options;
    for (const char* piece :
         {"ENDx", "END.", "xEND", "xENDz", "Dx", "D.", "NDy!", "ENDEND", "END\xe6", "END\xe6\x97",
          "END日", "END\xff", "é.", "éx", "\xa9x", "\xa9.", "D\xe6", "ND\nz"}) {
      options.vocabulary.pieces.emplace_back(piece);
    }
    load(options);
  }

  // llama.cpp's lazy sampler behind `text`. Throws when that does not keep to the grammar.
  SamplerHandle llama_behind(const std::string& grammar, const std::vector<std::string>& triggers,
                             const std::vector<Token>& text) const {
    std::vector<std::string> escaped;  // "|" is all that has a meaning in the ones here
    for (const std::string& trigger : triggers) {
      escaped.emplace_back();
      for (const char c : trigger) escaped.back() += c == '|' ? "\\|" : std::string(1, c);
    }
    std::vector<const char*> patterns;
    for (const std::string& pattern : escaped) patterns.push_back(pattern.c_str());
    SamplerHandle sampler(
        llama_sampler_init_grammar_lazy_patterns(vocabulary().handle(), grammar.c_str(), "root",
                                                 patterns.data(), patterns.size(), nullptr, 0));
    for (const Token token : text) llama_sampler_accept(sampler.get(), token);
    return sampler;
  }

  std::string said(const std::vector<Token>& text) const {
    std::string all;
    for (const Token token : text) all += grammar_text(vocabulary(), token);
    return all;
  }

  // The slow and obvious answer for every token: tell llama.cpp the whole text with it, and see
  // whether it can go on.
  std::vector<bool> should_allow(const std::string& grammar,
                                 const std::vector<std::string>& triggers,
                                 std::vector<Token> text) const {
    const TriggerTokens where(triggers, vocabulary());
    if (where.begin_in(said(text)) != std::string::npos) {
      return llama_allows(llama_behind(grammar, triggers, text).get());
    }
    std::vector<bool> allowed;
    for (Token token = 0; token < vocabulary().size(); ++token) {
      text.push_back(token);
      const std::string all = said(text);
      const std::size_t from = where.begin_in(all);
      bool fits = true;
      if (from != std::string::npos) {
        const std::string bound = all.substr(from);
        const std::size_t complete = complete_utf8_prefix(bound);
        fits = !first_invalid_utf8(std::string_view(bound).substr(0, complete)) &&
               bound.find('\0') == std::string::npos;
        try {
          const std::vector<bool> next = llama_allows(llama_behind(grammar, triggers, text).get());
          fits = fits && std::count(next.begin(), next.end(), true) > 0;
        } catch (const std::exception&) {
          fits = false;
        }
      }
      allowed.push_back(fits);
      text.pop_back();
    }
    return allowed;
  }
};

// Every way to cut the text with the trigger into tokens, with text before it and behind it.
TEST_F(GrammarTriggerTest, ATriggerBindsFromItsFirstByteHoweverTheTextIsCut) {
  const std::string text = "Some of END the ENEND";
  for (const std::vector<Token>& cut : {bytes(text), tokens(text)}) {
    const std::unique_ptr<GrammarMask> mask =
        make_mask("root ::= (\"EN\"? \"END\" | \"ND the\\n\") [x-z]+ \"!\"", {"ENEND", "ND the\n"});
    for (std::size_t i = 0; i < cut.size(); ++i) {
      EXPECT_FALSE(mask->binds()) << "token " << i;
      mask->accept(cut[i]);
      ASSERT_TRUE(mask->status().ok()) << mask->status().message();
    }
    EXPECT_TRUE(mask->binds());
    const std::vector<bool> allowed = mask_allows(*mask);
    EXPECT_EQ(std::count(allowed.begin(), allowed.end(), true), 3) << "x, y and z";
  }
}

struct Lazy {
  std::string grammar;
  std::vector<std::string> triggers;
  std::string letters;  // what the random texts are mostly made of
  std::string begin{};  // of every second one
};

// Random texts that say a trigger sooner or later: whatever may follow is what llama.cpp can go on
// from, and nothing that may follow ever ends with an error.
TEST_F(GrammarTriggerTest, AllowsWhatLlamaCanGoOnFromAtEveryStep) {
  const std::vector<Lazy> grammars = {
      {"root ::= \"END\" [x-z]+ \"!\"", {"END"}, "ENDx"},
      {"root ::= \"END\" (\"日\" | \"!\")", {"END"}, "END"},
      {"root ::= (\"END\" | \"ND\\n\") [x-z]* (\"E\" | \"!\")", {"END", "ND\n"}, "END\n"},
      {"root ::= \"EN\" \"D\"? [^a-y]*", {"EN", "END"}, "ENDx"},
      {"root ::= \"é\" [x]*", {"é"}, "\xc3\xa9x"},
      {"root ::= <|im_start|> [a-z]+", {"<|im_start|>"}, "ab>", "a<|im_start|"},
      {"root ::= \"END\" !<[40]> [x-z]*", {"END"}, "ENDx"}};
  for (const Lazy& lazy : grammars) {
    std::size_t n_masked = 0;  // while waiting
    std::size_t n_bound = 0;
    const TriggerTokens completing(lazy.triggers, vocabulary());
    for (int round = 0; round < 12; ++round) {
      const std::unique_ptr<GrammarMask> mask = make_mask(lazy.grammar, lazy.triggers);
      std::vector<Token> text = bytes(round % 2 == 0 ? lazy.begin : "");
      for (const Token token : text) mask->accept(token);
      for (int step = 0; step < 14; ++step) {
        const std::vector<bool> allowed = mask_allows(*mask);
        const std::vector<bool> wanted = should_allow(lazy.grammar, lazy.triggers, text);
        for (Token t = 0; t < vocabulary().size(); ++t) {
          const std::size_t i = static_cast<std::size_t>(t);
          ASSERT_EQ(allowed[i], wanted[i])
              << lazy.grammar << ": token " << t << " ('" << vocabulary().text(t) << "') behind '"
              << said(text) << "', round " << round;
        }
        const std::vector<Token> next = possible(allowed);
        n_masked += mask->binds() ? 0 : allowed.size() - next.size();
        ASSERT_EQ(mask->masks(), mask->binds() || next.size() < allowed.size());
        if (next.empty()) break;
        Token token = next[random_() % next.size()];
        if (!mask->binds() && random_() % 4 != 0) {
          token = bytes(lazy.letters)[random_() % lazy.letters.size()];
          if (random_() % 3 == 0) {
            token = completing.pieces()[random_() % completing.pieces().size()].token;
          }
        }
        if (!allowed[static_cast<std::size_t>(token)]) continue;
        if (mask->binds() && vocabulary().is_end_of_generation(token)) break;
        mask->accept(token);
        text.push_back(token);
        ASSERT_TRUE(mask->status().ok()) << mask->status().message();
      }
      n_bound += mask->binds() ? 1 : 0;
    }
    EXPECT_GT(n_masked, 0u) << lazy.grammar;
    EXPECT_GT(n_bound, 0u) << lazy.grammar;
  }
}

TEST_F(GrammarTriggerTest, ATokenMayRunPastTheTriggerOnlyIntoTheGrammar) {
  const std::unique_ptr<GrammarMask> mask = make_mask("root ::= \"END\" [x-z]* \"日\"", {"END"});
  const auto may_follow = [&](const std::string& piece) -> bool {
    for (Token t = 0; t < vocabulary().size(); ++t) {
      if (vocabulary().piece(t) == piece) return mask_allows(*mask)[static_cast<std::size_t>(t)];
    }
    ADD_FAILURE() << "no token " << piece;
    return false;
  };
  for (const char* piece :
       {"END", "ENDx", "xENDz", "END日", "END\xe6", "END\xe6\x97", "Dx", "D."}) {
    EXPECT_TRUE(may_follow(piece)) << piece;
  }
  for (const char* piece : {"END.", "ENDEND", "END\xff"}) EXPECT_FALSE(may_follow(piece)) << piece;
  for (const Token token : bytes("EN")) mask->accept(token);
  EXPECT_TRUE(may_follow("Dx"));
  EXPECT_TRUE(may_follow("D\xe6"));
  EXPECT_FALSE(may_follow("D.")) << "completes the trigger now";
  EXPECT_FALSE(may_follow("END.")) << "whatever stands before it";
  mask->accept(bytes("x")[0]);
  EXPECT_TRUE(may_follow("D.")) << "and no longer does";
}

TEST_F(GrammarTriggerTest, ATokenThatRunsWronglyPastTheTriggerIsAnErrorIfItIsSaidAnyway) {
  const std::unique_ptr<GrammarMask> mask = make_mask("root ::= \"END\" \"!\"", {"END"});
  mask->accept(tokens("END.").back());
  EXPECT_FALSE(mask->status().ok());
  EXPECT_NE(mask->status().message().find("grammar"), std::string::npos);
}

TEST_F(GrammarTriggerTest, ACloneRemembersWhatOfATriggerIsSaid) {
  const std::unique_ptr<GrammarMask> mask = make_mask("root ::= \"END\" \"!\"", {"END"});
  for (const Token token : bytes("xEN")) mask->accept(token);
  const std::unique_ptr<GrammarMask> copy = mask->clone();
  EXPECT_EQ(mask_allows(*copy), mask_allows(*mask));
  mask->accept(bytes("x")[0]);
  EXPECT_NE(mask_allows(*copy), mask_allows(*mask));
  copy->accept(bytes("D")[0]);
  EXPECT_TRUE(copy->binds());
  EXPECT_FALSE(mask->binds());
}

TEST_F(GrammarTriggerTest, ATriggerThatTheGrammarCannotBeginWithIsRefusedByName) {
  const std::string grammar = "root ::= \"END\" [0-9]+ | \"日\" | <|im_start|> \"x\"";
  for (const char* trigger :
       {"x", "ENDx", "ND", "END 1", "日本", "é", "END1x", "<|im_end|>", "<|im_start|>y"}) {
    const Status status = GrammarMask::create(grammar, {"END", trigger}, vocabulary()).status();
    ASSERT_EQ(status.code(), StatusCode::kInvalidArgument) << trigger;
    EXPECT_NE(status.message().find("'" + std::string(trigger) + "'"), std::string::npos)
        << status.message();
    EXPECT_NE(status.message().find("begin"), std::string::npos) << status.message();
  }
  for (const char* trigger :
       {"E", "EN", "END", "END1", "END12", "日", "<|im_start|>", "<|im_start|>x"}) {
    EXPECT_TRUE(GrammarMask::create(grammar, {trigger}, vocabulary()).ok()) << trigger;
  }
  const Status status = GrammarMask::create(grammar, {"END\xff"}, vocabulary()).status();
  EXPECT_EQ(status.code(), StatusCode::kInvalidArgument);
  EXPECT_NE(status.message().find("UTF-8"), std::string::npos) << status.message();
}

// Each "a" of the trigger doubles the ways to read it.
TEST_F(GrammarTriggerTest, ATriggerThatCanBeReadInEverMoreWaysIsRefused) {
  const Status status = GrammarMask::create(R"(root ::= "a" root "a" | "a" root "b" | "!")",
                                            {std::string(200, 'a')}, vocabulary())
                            .status();
  EXPECT_EQ(status.code(), StatusCode::kResourceExhausted);
  EXPECT_NE(status.message().find("too ambiguous"), std::string::npos) << status.message();
}

}  // namespace
}  // namespace outrider::llama
