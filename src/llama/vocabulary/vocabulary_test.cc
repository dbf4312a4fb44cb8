#include "llama/vocabulary/vocabulary.h"

#include <gtest/gtest.h>

#include <memory>
#include <random>
#include <string>
#include <vector>

#include "llama/files/model_file.h"
#include "testing/gguf_damage.h"
#include "testing/sanitized.h"
#include "testing/tiny_dir.h"
#include "testing/tiny_gguf.h"

namespace outrider::llama {
namespace {

using testing::TinyTokenizer;

class VocabularyTest : public ::testing::TestWithParam<TinyTokenizer> {
 protected:
  void load(testing::TinyModelOptions options = {}) {
    options.vocabulary.tokenizer = GetParam();
    ASSERT_TRUE(testing::write_tiny_gguf(dir_.file("t.gguf"), options).ok());
    Result<std::shared_ptr<ModelFile>> file =
        ModelFile::load(dir_.file("t.gguf"), 0, true, LoadHooks{});
    ASSERT_TRUE(file.ok()) << file.status().message();
    file_ = *file;
  }

  const LlamaVocabulary& vocabulary() const { return file_->vocabulary(); }

  std::string round_trip(const std::string& text) const {
    Result<std::vector<Token>> tokens = vocabulary().tokenize(text, false, false);
    EXPECT_TRUE(tokens.ok()) << tokens.status().message();
    if (!tokens.ok()) return "";
    Result<std::string> back = vocabulary().detokenize(*tokens);
    EXPECT_TRUE(back.ok());
    std::string pieces;
    for (const Token token : *tokens) pieces += vocabulary().piece(token);
    EXPECT_EQ(*back, pieces);
    return *back;
  }

  testing::TempDir dir_;
  std::shared_ptr<ModelFile> file_;
};

INSTANTIATE_TEST_SUITE_P(Tokenizers, VocabularyTest,
                         ::testing::Values(TinyTokenizer::kSpm, TinyTokenizer::kBpe),
                         [](const ::testing::TestParamInfo<TinyTokenizer>& which) {
                           return which.param == TinyTokenizer::kSpm ? "SentencePiece" : "Bpe";
                         });

TEST_P(VocabularyTest, TextComesBackFromItsTokens) {
  load();
  for (const std::string& text :
       {std::string(), std::string("Once upon a time"), std::string("two  spaces\n\n\ttab"),
        std::string("gr\xC3\xBC\xC3\x9F dich \xF0\x9F\x98\x80!"), std::string("a\0b", 3),
        std::string("\x01\x02\x7F"), std::string("<|im_end|>")}) {
    EXPECT_EQ(round_trip(text), text);
  }
}

TEST_P(VocabularyTest, RandomUnicodeComesBackFromItsTokens) {
  load();
  std::mt19937 random(7);
  for (int i = 0; i < 300; ++i) {
    std::string text;
    const int length = static_cast<int>(random() % 30);
    for (int k = 0; k < length; ++k) {
      const char* const alphabet[] = {
          "a", "the", " ",           "\n", "\xC3\xA9", "\xE2\x82\xAC", "\xF0\x9F\x92\xA9",
          "0", "<",   "\xE4\xB8\xAD"};
      text += alphabet[random() % 10];
    }
    EXPECT_EQ(round_trip(text), text);
  }
}

TEST_P(VocabularyTest, EveryByteHasATokenOfItsOwn) {
  load();
  for (int byte = 0; byte < 256; ++byte) {
    const std::string_view piece = vocabulary().piece(testing::kTinyFirstByte + byte);
    ASSERT_EQ(piece.size(), 1u) << "byte " << byte;
    EXPECT_EQ(static_cast<unsigned char>(piece[0]), byte);
  }
}

TEST_P(VocabularyTest, ControlTokensPrintNothingAndEndTokensAreKnown) {
  load();
  EXPECT_EQ(vocabulary().piece(testing::kTinyBos), "");
  EXPECT_EQ(vocabulary().piece(testing::kTinyTurnStart), "");
  EXPECT_EQ(vocabulary().piece(testing::kTinyTurnEnd), "");
  EXPECT_EQ(vocabulary().text(testing::kTinyTurnEnd), "<|im_end|>");
  EXPECT_TRUE(vocabulary().is_end_of_generation(testing::kTinyEos));
  EXPECT_TRUE(vocabulary().is_end_of_generation(testing::kTinyTurnEnd));
  EXPECT_FALSE(vocabulary().is_end_of_generation(testing::kTinySpace));
  EXPECT_TRUE(vocabulary().suppressed().empty());
}

TEST_P(VocabularyTest, SpecialsAreAddedAndParsedOnlyWhenAskedFor) {
  load();
  const std::string text = "the<|im_end|>";
  const std::vector<Token> plain = vocabulary().tokenize(text, false, false).value();
  const std::vector<Token> parsed = vocabulary().tokenize(text, false, true).value();
  const std::vector<Token> with_bos = vocabulary().tokenize(text, true, true).value();
  EXPECT_GT(plain.size(), parsed.size());
  EXPECT_EQ(parsed.back(), testing::kTinyTurnEnd);
  EXPECT_EQ(with_bos.front(), testing::kTinyBos);
  EXPECT_EQ(with_bos.size(), parsed.size() + 1);
  EXPECT_EQ(vocabulary().tokenize("", true, true).value(), std::vector<Token>{testing::kTinyBos});
}

TEST_P(VocabularyTest, InvalidUtf8IsRefusedWithItsOffset) {
  load();
  const Status status = vocabulary().tokenize("abc\xFFz", true, true).status();
  EXPECT_EQ(status.code(), StatusCode::kInvalidArgument);
  EXPECT_NE(status.message().find("byte 0xFF at offset 3"), std::string::npos) << status.message();
}

// llama.cpp aborts at the first text otherwise. SentencePiece has both by default, GPT-2's the
// eleventh token; a BERT vocabulary has them further behind than this one is long.
TEST(Vocabulary, AFileWhoseTokenizerAddsATokenThatItDoesNotHaveIsRefusedWithTheKey) {
  struct Case {
    const char* model;
    const char* splits;
    const char* added;  // the key that is set; empty: none
    const char* missing;
    std::size_t n_tokens;  // 0: all
  };
  const testing::TempDir dir;
  const std::string good = dir.file("good.gguf");
  testing::TinyModelOptions options;
  options.vocabulary.tokenizer = TinyTokenizer::kBpe;
  ASSERT_TRUE(testing::write_tiny_gguf(good, options).ok());
  ASSERT_TRUE(ModelFile::load_vocabulary(good, LoadHooks{}).ok());
  for (const Case& wrong : {Case{"gpt2", "chatglm-bpe", "add_bos_token", "bos_token_id", 0},
                            Case{"gemma4", "default", "add_eos_token", "eos_token_id", 0},
                            Case{"bert", "default", "", "bos_token_id", 50},
                            Case{"bert", "default", "", "seperator_token_id", 102}}) {
    const std::string path = dir.file("wrong.gguf");
    const auto change = [&](gguf_context* gguf) {
      const std::string prefix = "tokenizer.ggml.";
      gguf_set_val_str(gguf, (prefix + "model").c_str(), wrong.model);
      gguf_set_val_str(gguf, (prefix + "pre").c_str(), wrong.splits);
      if (*wrong.added != 0) gguf_set_val_bool(gguf, (prefix + wrong.added).c_str(), true);
      gguf_remove_key(gguf, (prefix + wrong.missing).c_str());
      if (wrong.n_tokens == 0) return;
      gguf_remove_key(gguf, (prefix + "bos_token_id").c_str());
      const std::int64_t id = gguf_find_key(gguf, (prefix + "tokens").c_str());
      std::vector<std::string> texts;
      for (std::size_t i = 0; i < wrong.n_tokens; ++i) {
        texts.emplace_back(gguf_get_arr_str(gguf, id, i));
      }
      std::vector<const char*> pointers;
      for (const std::string& text : texts) pointers.push_back(text.c_str());
      gguf_set_arr_str(gguf, (prefix + "tokens").c_str(), pointers.data(), pointers.size());
    };
    ASSERT_TRUE(testing::copy_changed(good, path, change, "").ok());
    const Status status = ModelFile::load_vocabulary(path, LoadHooks{}).status();
    EXPECT_EQ(status.code(), StatusCode::kDataLoss) << status.message();
    EXPECT_NE(status.message().find(std::string("tokenizer.ggml.") + wrong.missing),
              std::string::npos)
        << status.message();
    EXPECT_NE(status.message().find(path), std::string::npos) << status.message();
  }
}

TEST_P(VocabularyTest, ALongTextIsTokenisedWhole) {
  load();
  std::string text;
  while (text.size() < (std::size_t{5} << 20)) text += "the quick brown fox. ";
  text.resize(std::size_t{5} << 20);
  EXPECT_TRUE(round_trip(text) == text);
}

// std::regex recurses over what it matches, and is what splits texts for this "pre".
TEST_P(VocabularyTest, ALongRunOfCharactersOverflowsNoStack) {
  testing::TinyModelOptions options;
  options.vocabulary.splits = "gpt-4o";
  load(options);
  const bool is_split = GetParam() == TinyTokenizer::kBpe;
  // The thread sanitizer keeps 65,536 frames of a stack at most. SentencePiece is slow.
  const std::size_t bytes = !is_split ? 1'000 : testing::kSanitized ? 10'000 : 100'000;
  for (const std::string unit : {"A", "a", " ", ".", "/\n", "\xC3\xA9"}) {
    std::string text;
    while (text.size() < bytes) text += unit;
    const Result<std::vector<Token>> tokens = vocabulary().tokenize(text, false, false);
    ASSERT_TRUE(tokens.ok()) << unit << tokens.status().message();
    EXPECT_EQ(*vocabulary().detokenize(*tokens), text);
  }
  if (!is_split) return;
  const std::string endless((4 << 20) + 1, 'A');
  EXPECT_EQ(vocabulary().tokenize(endless, false, false).status().code(),
            StatusCode::kInvalidArgument);
}

TEST_P(VocabularyTest, IdsOutsideTheVocabularyAreRefused) {
  load();
  for (const Token bad : {-1, vocabulary().size(), 1 << 30}) {
    const Status status = vocabulary().detokenize({testing::kTinySpace, bad}).status();
    EXPECT_EQ(status.code(), StatusCode::kInvalidArgument);
    EXPECT_NE(status.message().find(std::to_string(bad)), std::string::npos) << status.message();
  }
}

TEST_P(VocabularyTest, ControlTokensAreSpelledByTheirNamesAndOthersByTheirBytes) {
  load();
  EXPECT_EQ(vocabulary().piece(testing::kTinyTurnEnd), "");
  EXPECT_EQ(vocabulary().spelled(testing::kTinyTurnEnd), "<|im_end|>");
  for (Token token = 0; token < vocabulary().size(); ++token) {
    const std::string_view bytes = vocabulary().piece(token);
    EXPECT_EQ(vocabulary().spelled(token), bytes.empty() ? vocabulary().text(token) : bytes);
  }
  EXPECT_EQ(vocabulary().chat_template_source(), testing::tiny_chat_template());
}

TEST_P(VocabularyTest, TokensToFillInAMiddleAreFoundWhereTheModelHasThem) {
  load();
  EXPECT_FALSE(vocabulary().special().fills_in());
  testing::TinyModelOptions options;
  options.vocabulary.control_texts = {"<|fim_prefix|>", "<|fim_suffix|>", "<|fim_middle|>",
                                      "<|repo_name|>", "<|file_sep|>"};
  load(options);
  const SpecialTokens special = vocabulary().special();
  EXPECT_TRUE(special.fills_in());
  EXPECT_EQ(special.front, testing::kTinyBos);
  EXPECT_EQ(special.begin_of_text, testing::kTinyBos);
  EXPECT_EQ(vocabulary().spelled(special.fill_prefix), "<|fim_prefix|>");
  EXPECT_EQ(vocabulary().spelled(special.fill_suffix), "<|fim_suffix|>");
  EXPECT_EQ(vocabulary().spelled(special.fill_middle), "<|fim_middle|>");
  EXPECT_EQ(vocabulary().spelled(special.repository), "<|repo_name|>");
  EXPECT_EQ(vocabulary().spelled(special.file), "<|file_sep|>");
}

TEST_P(VocabularyTest, TheChatTemplateOpensTheAssistantsTurn) {
  load();
  const Result<std::string> prompt = vocabulary().chat_text(
      {{.role = "system", .content = "Be brief."}, {.role = "user", .content = "Hi \xC3\xA9"}});
  ASSERT_TRUE(prompt.ok()) << prompt.status().message();
  EXPECT_EQ(*prompt,
            "<|im_start|>system\nBe brief.<|im_end|>\n<|im_start|>user\nHi \xC3\xA9<|im_end|>\n"
            "<|im_start|>assistant\n");
}

TEST_P(VocabularyTest, WithoutATemplateChatIsInChatMl) {
  testing::TinyModelOptions options;
  options.vocabulary.chat_template = false;
  load(options);
  const Result<ChatPrompt> prompt =
      vocabulary().chat_prompt({{.role = "user", .content = "Hi"}}, ChatOptions());
  ASSERT_TRUE(prompt.ok()) << prompt.status().message();
  EXPECT_EQ(prompt->text, "<|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\n");
  EXPECT_EQ(prompt->stop, std::vector<std::string>{"<|im_end|>"});
  EXPECT_EQ(prompt->reader->read("Hello", true).content, "Hello");
  EXPECT_NE(vocabulary().chat_template_source().find("<|im_start|>"), std::string::npos);
  EXPECT_FALSE(file_->facts().has_chat_template);
  EXPECT_FALSE(file_->facts().chat_tools);
  ChatOptions with_tool;
  with_tool.tools = {{.name = "look", .description = "Looks.", .parameters = "{}"}};
  const Result<ChatPrompt> tools =
      vocabulary().chat_prompt({{.role = "user", .content = "Hi"}}, with_tool);
  ASSERT_TRUE(tools.ok()) << tools.status().message();
  EXPECT_NE(tools->text.find("Looks."), std::string::npos) << "described in words";
}

TEST_P(VocabularyTest, AMessageThatIsNotUtf8IsRefusedByName) {
  load();
  const Status status =
      vocabulary()
          .chat_text({{.role = "user", .content = "ok"}, {.role = "user", .content = "\xC3("}})
          .status();
  EXPECT_EQ(status.code(), StatusCode::kInvalidArgument);
  EXPECT_NE(status.message().find("message 1"), std::string::npos) << status.message();
}

}  // namespace
}  // namespace outrider::llama
