// Filling in: what the model reads, and what a client may send.
#include "http/llama/infill.h"

#include <random>

#include "http/fixture_test.h"

namespace outrider::http {
namespace {

using json::Json;

// Tokens 7 to 11 are control tokens.
testing::FakeFile filling_in() {
  testing::FakeFile file;
  for (Token token = 7; token < 12; ++token) file.pieces[token] = "";
  file.special = {.fill_prefix = 7, .fill_suffix = 8, .fill_middle = 9};
  return file;
}

class InfillTest : public ServerTest {
 protected:
  static Json body() { return {{"input_prefix", "ab"}, {"input_suffix", "cd"}, {"n_predict", 2}}; }
  std::string prompt_of(const Json& asked) {
    const HttpReply reply = post("/infill", asked);
    EXPECT_EQ(reply.status, 200) << reply.body;
    return object(reply).value("prompt", "");
  }
  static std::string ignored(const HttpReply& reply) {
    for (const auto& [name, value] : reply.headers) {
      if (name == kIgnoredHeader) return value;
    }
    return "";
  }
};

TEST_F(InfillTest, ThePartsStandBetweenTheModelsTokens) {
  start({}, filling_in());
  EXPECT_EQ(prompt_of(body()), "<7>ab<8>cd<9>");
  Json asked = body();
  asked["prompt"] = "ef";
  EXPECT_EQ(prompt_of(asked), "<7>abef<8>cd<9>") << "as llama-server's code has it";
  asked["input_prefix"] = {0, "b"};
  EXPECT_EQ(prompt_of(asked), "<7>abef<8>cd<9>");
}

// What llama.vim sends while one types, and beforehand so that the files are read.
TEST_F(InfillTest, AnEditorsBodyIsTaken) {
  testing::FakeFile file = filling_in();
  file.chat = true;
  start({}, file);
  Json asked = {{"id_slot", 0},
                {"input_prefix", "ab"},
                {"input_suffix", "cd"},
                {"prompt", "e"},
                {"n_predict", 4},
                {"n_indent", 4},
                {"stop", Json::array()},
                {"top_k", 40},
                {"top_p", 0.9},
                {"samplers", {"top_k", "top_p", "infill"}},
                {"stream", false},
                {"cache_prompt", true},
                {"t_max_prompt_ms", 500},
                {"t_max_predict_ms", 1000},
                {"response_fields", {"content", "timings/prompt_n"}}};
  asked["input_extra"] =
      Json::array({{{"filename", "x.h"}, {"text", "abc"}, {"time", Json::array({1, 2})}}});
  HttpReply reply = post("/infill", asked);
  EXPECT_EQ(reply.status, 200) << reply.body;
  EXPECT_TRUE(object(reply).contains("content"));
  EXPECT_EQ(ignored(reply), "samplers.infill");
  asked.update({{"n_predict", 0}, {"samplers", Json::array()}, {"t_max_predict_ms", 1}});
  reply = post("/infill", asked);
  EXPECT_EQ(reply.status, 200) << reply.body;
  EXPECT_EQ(ignored(reply), "");
  asked["samplers"] = "kpi";
  EXPECT_EQ(ignored(post("/infill", asked)), "samplers.infill");
}

// What it reads beforehand is there when it is asked for.
TEST_F(InfillTest, WithoutTokensThePromptIsReadAndKept) {
  testing::FakeFile file = filling_in();
  file.chat = true;
  start({}, file);
  Json asked = body();
  asked["input_prefix"] = "abcdefabcdef";
  asked["n_predict"] = 0;
  const Json read = object(post("/infill", asked));
  EXPECT_EQ(read["content"], "");
  EXPECT_EQ(read["tokens_predicted"], 0);
  EXPECT_EQ(read["tokens_evaluated"], 17);
  EXPECT_EQ(read["tokens_cached"], 0);
  EXPECT_EQ(read["timings"]["prompt_n"], 16) << "the last one is read with the first step";
  EXPECT_EQ(read["stop_type"], "limit");
  EXPECT_EQ(read["truncated"], false);
  asked["n_predict"] = 2;
  const Json said = object(post("/infill", asked));
  EXPECT_EQ(said["tokens_cached"], 16);
  EXPECT_EQ(said["timings"]["prompt_n"], 1);
}

TEST_F(InfillTest, OtherFilesComeFirst) {
  testing::FakeFile file = filling_in();
  file.chat = true;  // any text has tokens
  start({}, file);
  Json asked = body();
  asked["input_extra"] = Json::array({{{"filename", "x.h"}, {"text", "abc"}}});
  const std::string joined = prompt_of(asked);
  // "\n\n--- snippet ---\n\n"; a byte is a token, modulo 12.
  const std::string mark = "<10><10><9><9><9><8><7>c<9>eef<8><8><9><9><9><10><10>";
  EXPECT_EQ(joined.find(mark + "bcd<7>"), 0U) << joined;
}

TEST_F(InfillTest, FilesAreNamedWhereTheModelHasTokensForThat) {
  testing::FakeFile file = filling_in();
  file.chat = true;
  file.special.repository = 10;
  file.special.file = 11;
  start({}, file);
  Json asked = body();
  asked["input_extra"] = Json::array({{{"filename", "x"}, {"text", "abc"}}, {{"text", "abc"}}});
  const std::string joined = prompt_of(asked);
  EXPECT_EQ(joined.find("<10>bbegd<10>fd<8><10><11>"), 0U) << "myproject: " << joined;
  EXPECT_NE(joined.find("<11>g<9>afcbbf<10><7>"), std::string::npos) << "filename: " << joined;
  std::size_t n_files = 0;
  for (std::size_t at = 0; (at = joined.find("<11>", at)) != std::string::npos; ++at) ++n_files;
  EXPECT_EQ(n_files, 3U) << "two others and the one that is edited: " << joined;
}

TEST_F(InfillTest, AModelWithoutTheTokensSaysSo) {
  start({}, {});
  const HttpReply reply = post("/infill", body());
  EXPECT_EQ(reply.status, 501);
  EXPECT_NE(object(reply)["error"]["message"].get<std::string>().find("cannot fill in"),
            std::string::npos);
}

TEST_F(InfillTest, ErrorsNameTheField) {
  start({}, filling_in());
  const auto field_of_error = [this](const char* field, const Json& value) {
    Json asked = body();
    asked[field] = value;
    const HttpReply reply = post("/infill", asked);
    EXPECT_EQ(reply.status, 400) << reply.body;
    return object(reply)["error"].value("param", "");
  };
  EXPECT_EQ(field_of_error("input_prefix", 3), "input_prefix");
  EXPECT_EQ(field_of_error("input_extra", Json::object()), "input_extra");
  EXPECT_EQ(field_of_error("input_extra", Json::array({Json::object()})), "input_extra[0].text");
  EXPECT_EQ(field_of_error("input_extra", Json::array({{{"filename", 1}, {"text", "a"}}})),
            "input_extra[0].filename");
  EXPECT_EQ(field_of_error("n_predict", -7), "n_predict");
  EXPECT_EQ(field_of_error("infix", "a"), "infix");
  const HttpReply reply = post("/infill", {{"input_prefix", "a"}});
  EXPECT_EQ(object(reply)["error"]["param"], "input_suffix");
}

TEST_F(InfillTest, ALongTextIsCutSoThatTheAnswerHasRoom) {
  start({}, filling_in());  // a context of 256
  Json asked = body();
  asked["input_prefix"] = std::string(500, 'a') + "b";
  asked["input_suffix"] = "c" + std::string(500, 'd');
  asked["n_predict"] = 30;
  const HttpReply reply = post("/infill", asked);
  ASSERT_EQ(reply.status, 200) << reply.body;
  const Json answer = object(reply);
  EXPECT_EQ(answer["tokens_predicted"], 30);
  EXPECT_EQ(answer["truncated"], false);
  EXPECT_EQ(answer["tokens_evaluated"], 256 - 1 - 30);
  const std::string joined = answer["prompt"];
  EXPECT_NE(joined.find("ab<8>cd"), std::string::npos);
}

TEST(JoinInfillTest, WhateverTheRoomTheCursorsSidesStayAndNothingIsTooLong) {
  const SpecialTokens special{.fill_prefix = 100, .fill_suffix = 101, .fill_middle = 102};
  for (std::int64_t room = 0; room < 24; ++room) {
    for (std::size_t n_extra = 0; n_extra < 8; ++n_extra) {
      for (std::size_t n_prefix = 0; n_prefix < 8; ++n_prefix) {
        for (std::size_t n_suffix = 0; n_suffix < 8; ++n_suffix) {
          InfillParts parts{.front = {1}, .extra = {}, .prefix = {}, .suffix = {}, .prompt = {9}};
          for (std::size_t i = n_extra; i > 0; --i)
            parts.extra.push_back(static_cast<Token>(30 + i));
          for (std::size_t i = n_prefix; i > 0; --i) {
            parts.prefix.push_back(static_cast<Token>(10 + i));
          }
          for (std::size_t i = 1; i <= n_suffix; ++i) {
            parts.suffix.push_back(static_cast<Token>(20 + i));
          }
          const std::vector<Token> joined = join_infill(parts, special, room);
          const std::int64_t all = static_cast<std::int64_t>(5 + n_extra + n_prefix + n_suffix);
          EXPECT_EQ(static_cast<std::int64_t>(joined.size()),
                    std::max<std::int64_t>(5, std::min(all, room)));
          for (std::size_t i = 0; i + 1 < joined.size(); ++i) {
            // What is nearest to the cursor is 11, 21 and 31, each where there is any of it.
            const Token next = joined[i + 1];
            if (joined[i] > 10 && joined[i] < 20) {
              EXPECT_TRUE(next == joined[i] - 1 || next == 9);
            }
            if (joined[i] > 20 && joined[i] < 30) {
              EXPECT_TRUE(next == joined[i] + 1 || next == 102);
            }
            if (joined[i] > 30 && joined[i] < 40) {
              EXPECT_TRUE(next == joined[i] - 1 || next == 100);
            }
            if (joined[i] == 101) {
              EXPECT_TRUE(next == 21 || next == 102);
            }
            if (joined[i] == 9) {
              EXPECT_EQ(next, 101) << "the prompt is the end of what is before the cursor";
            }
          }
          EXPECT_EQ(joined.front(), 1);
          EXPECT_EQ(joined.back(), 102);
        }
      }
    }
  }
}

}  // namespace
}  // namespace outrider::http
