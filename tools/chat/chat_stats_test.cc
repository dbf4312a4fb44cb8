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

TEST(ChatStats, WithoutAnswersThereAreNoRates) {
  EXPECT_EQ(ChatStats().table(),
            "answers       0\nprompts       0 tokens, - of them read before\n"
            "generated     0 tokens\n");
}

}  // namespace
}  // namespace outrider::tools
