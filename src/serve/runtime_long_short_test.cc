// A long prompt, then a short one, a hundred times for each drafter: what a drafter keeps of the
// long text must neither reach the short one nor stay (llama.cpp issue 21233: its n-gram map
// aborts).
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "draft/base/drafter_plan.h"
#include "draft/drafter_table.h"
#include "testing/runtime_fixture.h"

namespace outrider {
namespace {

using testing::ask;

class LongAndShort : public testing::RuntimeTest,
                     public ::testing::WithParamInterface<const char*> {};

TEST_P(LongAndShort, AHundredTimesEachGivesThePlainTextInSteadyMemory) {
  const std::unique_ptr<Runtime> runtime = make({.slots = 1});
  ASSERT_TRUE(runtime->load(ModelRole::kDraft, testing::model("draft")).ok());
  ASSERT_TRUE(runtime->wait_loaded(-1));
  std::vector<Token> long_prompt;
  for (int i = 0; i < 50; ++i) long_prompt.push_back(i % 7 == 3 ? i % testing::kVocab : i % 5);
  std::uint64_t memory_after_ten = 0;
  std::int64_t drafted = 0;
  const auto memory = [&runtime] {
    // Behind the step that ended the text, at whose end it is noted what the drafters take.
    EXPECT_TRUE(runtime->with_idle_target([](LanguageModel&, const Engine&) {}).ok());
    std::uint64_t bytes = 0;
    for (const DrafterStatus& drafter : runtime->status().drafters) bytes += drafter.memory_bytes;
    return bytes;
  };
  for (int i = 0; i < 100; ++i) {
    for (const std::vector<Token>& prompt : {long_prompt, std::vector<Token>{1, 2}}) {
      CompletionRequest request = ask(prompt, static_cast<std::uint64_t>(i % 3), 10);
      request.drafters = *parse_drafter_plan(GetParam(), kDrafterNames);
      const Result<std::shared_ptr<const CompletionResult>> result = runtime->run(request);
      ASSERT_TRUE(result.ok()) << result.status().message();
      const Completion& c = (*result)->completion;
      ASSERT_EQ(c.tokens, alone(prompt, static_cast<std::uint64_t>(i % 3), 10)) << "round " << i;
      drafted += c.speculation.drafted;
    }
    if (i == 9) memory_after_ten = memory();
  }
  EXPECT_GT(drafted, 0) << "it guessed";
  EXPECT_LE(memory(), memory_after_ten + memory_after_ten / 20);
  EXPECT_EQ(runtime->check_integrity(), "");
}

INSTANTIATE_TEST_SUITE_P(EveryDrafter, LongAndShort,
                         ::testing::Values("draft-model", "suffix", "ngram-cache", "recycle",
                                           "draft-model,suffix,recycle"),
                         [](const ::testing::TestParamInfo<const char*>& test) {
                           std::string name = test.param;
                           for (char& c : name) c = c == '-' || c == ',' ? '_' : c;
                           return name;
                         });

}  // namespace
}  // namespace outrider
