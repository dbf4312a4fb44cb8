#include "api/completion_json.h"

#include <gtest/gtest.h>

#include "api/status_json.h"

namespace outrider::api {
namespace {

using json::Json;

TEST(UpdatesJson, NothingNewIsNoUpdate) { EXPECT_EQ(updates_json({}), Json::array()); }

TEST(UpdatesJson, TheTextIsThatOfItsTokens) {
  const Json updates = updates_json(
      {{.id = 1, .text = "ab", .by = "target"}, {.id = 2, .text = "c", .by = "draft-model"}});
  EXPECT_EQ(json::encode(updates), R"([{"text":"abc","tokens":[{"id":1,"text":"ab","by":"target"},)"
                                   R"({"id":2,"text":"c","by":"draft-model"}]}])");
}

TEST(UpdatesJson, ACharacterOfSeveralTokensIsWholeInTheTextAndInBytesInTheTokens) {
  const Json updates = updates_json(
      {{.id = 1, .text = "\xC3", .by = "target"}, {.id = 2, .text = "\xA9", .by = "target"}});
  EXPECT_EQ(json::encode(updates),
            "[{\"text\":\"\xC3\xA9\",\"tokens\":["
            "{\"id\":1,\"text\":\"\xEF\xBF\xBD\",\"by\":\"target\",\"bytes\":[195]},"
            "{\"id\":2,\"text\":\"\xEF\xBF\xBD\",\"by\":\"target\",\"bytes\":[169]}]}]");
}

TEST(UpdatesJson, LogprobsComeWithTheirTokens) {
  SaidToken token{.id = 1, .text = "a", .by = "target"};
  token.logprob = TokenLogprob{.chosen = {.id = 1, .text = "a", .logprob = -0.5}, .top = {}};
  EXPECT_EQ(updates_json({token})[0]["tokens"][0]["logprob"]["logprob"], -0.5);
}

TEST(Stats, TokensPerStepAreThoseThatTheStepsGave) {
  RuntimeStatus status;
  status.generated_tokens = 9;
  status.emitted_tokens = 6;
  status.steps = 3;
  const Json stats = stats_json(status);
  EXPECT_EQ(stats["generated_tokens"], 9);
  EXPECT_EQ(stats["tokens_per_step"], 2.0);
  EXPECT_TRUE(stats_json(RuntimeStatus())["tokens_per_step"].is_null());
}

TEST(PromptStats, HaveEveryField) {
  const PromptStats stats{.n_ctx = 64, .n_tokens = 5, .n_tokens_asked = 9, .n_cached = 2};
  EXPECT_EQ(json::encode(prompt_stats_json(stats)),
            R"({"n_ctx":64,"prompt_tokens":5,"prompt_tokens_asked":9,"cached_tokens":2,)"
            R"("truncated":true})");
}

}  // namespace
}  // namespace outrider::api
