#include "tools/chat/chat_stats.h"

#include <gtest/gtest.h>

namespace outrider::tools {
namespace {

Completion answer(std::int64_t drafted, std::int64_t accepted, const std::string& drafter) {
  Completion c;
  c.tokens = {1, 2, 3, 4};
  c.prompt_tokens = 10;
  c.cached_tokens = 5;
  c.timings.predicted_ms = 100.0;
  c.timings.predicted_after_first = 3;
  c.speculation.steps = 2;
  c.speculation.emitted = 4;
  c.speculation.drafted = drafted;
  c.speculation.accepted = accepted;
  c.speculation.drafters = {{.name = drafter, .drafted = drafted, .accepted = accepted}};
  return c;
}

TEST(ChatStats, AnswersAreAddedUpByDrafter) {
  ChatStats stats;
  stats.add(answer(4, 1, "suffix"));
  stats.add(answer(4, 2, "suffix"));
  stats.add(answer(2, 1, "recycle"));
  EXPECT_EQ(stats.answers(), 3);
  EXPECT_EQ(stats.table(),
            "answers       3\n"
            "prompts       30 tokens, 50.0 % of them read before\n"
            "generated     12 tokens (30.0 tokens/s)\n"
            "steps         6, 2.00 tokens each\n"
            "accepted      4/10 = 40.0 % of the drafted tokens\n"
            "  suffix      3/8 = 37.5 % of the drafted tokens\n"
            "  recycle     1/2 = 50.0 % of the drafted tokens\n");
}

TEST(ChatStats, TheSpeedUpIsThatOfTheAnswersItIsKnownOf) {
  ChatStats stats;
  stats.add(answer(4, 1, "suffix"));  // plain decoding
  EXPECT_EQ(stats.table().find("speed-up"), std::string::npos) << stats.table();
  Completion fast = answer(4, 3, "suffix");
  fast.speculation.enabled = true;
  fast.speculation.plain_ms = 140.0;
  fast.speculation.sample_ms = 10.0;
  stats.add(fast);
  Completion unknown = fast;
  unknown.speculation.plain_ms.reset();
  stats.add(unknown);
  EXPECT_NE(stats.table().find("\nspeed-up      about 1.50 times plain decoding\n"),
            std::string::npos)
      << stats.table();
}

TEST(ChatStats, ADrafterThatWasNotUsedSaysSo) {
  EXPECT_EQ(drafter_rows({{.name = "draft-model"}, {.name = "suffix", .calls = 3}}),
            "  draft-model not used: the planner chose to go without it\n"
            "  suffix      none of its guesses were sent to the target\n");
}

TEST(ChatStats, WithoutAnswersThereAreNoRates) {
  EXPECT_EQ(ChatStats().table(),
            "answers       0\nprompts       0 tokens, - of them read before\n"
            "generated     0 tokens\n");
}

}  // namespace
}  // namespace outrider::tools
