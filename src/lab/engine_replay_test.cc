// `outrider replay` predicts what the engine would have done, in a loop of its own: every count of
// random plans of drafters against a run of the engine that said the text.
#include <gtest/gtest.h>

#include "engine/engine.h"
#include "lab/text_replay.h"
#include "testing/chi_square.h"
#include "testing/fake_engine.h"

namespace outrider {
namespace {

using namespace testing;  // NOLINT: the shared names of these tests

// A request that was stopped between two steps, as far as it came.
Completion stopped_after(LanguageModel& target, const std::vector<Drafter*>& drafters, Request r,
                         std::size_t n_tokens) {
  const FakeVocabulary vocabulary(kVocab);
  Engine engine(target, vocabulary, drafters);
  const Result<RequestId> id = engine.add(std::move(r));
  EXPECT_TRUE(id.ok()) << id.status().message();
  for (std::size_t said = 0; said < n_tokens && engine.busy();) {
    for (const Update& update : engine.step()) said += update.pieces.size();
  }
  engine.cancel(*id);
  run_all(engine);
  Result<Completion> completion = engine.take(*id);
  EXPECT_TRUE(completion.ok());
  return std::move(completion).value();
}

TEST(EngineReplay, AReplayOfTheTextCountsWhatTheEngineCounted) {
  const std::uint64_t seed = test_seed(5);
  const RowFunction rows = random_rows(kVocab, seed, 3.0f);
  std::vector<Token> text = {1, 2};
  const std::vector<Token> whole = reference(rows, text, 1.0f, 9, 60);
  text.insert(text.end(), whole.begin(), whole.end());
  const std::vector<std::pair<std::string, Script>> all = {
      {"now and then",
       [text, inner = prophet(text, 2, 0, kVocab)](DraftRequest& r) {
         return r.text.size() % 3 == 0 ? inner(r) : Status();
       }},
      {"half right", prophet(text, 100, 3, kVocab)},
      {"right", prophet(text, 2, 0, kVocab)},
      {"random tree", scripts(text)[4].second}};
  std::int64_t accepted = 0;
  std::int64_t foregone = 0;
  for (std::uint32_t i = 0; i < 200; ++i) {
    const NoiseKey key = noise_key(seed, 1000 + i);
    FakeModel target(capabilities(3, 256), rows);
    std::vector<std::unique_ptr<NamedDrafter>> drafters;
    std::vector<Drafter*> pointers;
    DrafterPlan plan;
    for (std::uint32_t d = 0; d < all.size(); ++d) {
      drafters.push_back(std::make_unique<NamedDrafter>(all[d].first, all[d].second));
      pointers.push_back(drafters.back().get());
      if (plan.chains.empty() || noise_bits(key, d) % 2 == 0) plan.chains.emplace_back();
      plan.chains.back().push_back(all[d].first);
    }
    const std::int32_t width = 2 + static_cast<std::int32_t>(i % 7);
    Request r = request({1, 2}, 1.0f, 9, 200, width);
    r.drafters = plan;
    const Completion got = stopped_after(target, pointers, std::move(r), 25);
    std::vector<Token> said = {1, 2};
    said.insert(said.end(), got.tokens.begin(), got.tokens.end());
    TextReplay replay(pointers, plan, {.width = width});
    ASSERT_TRUE(replay.run(said, /*given=*/2, /*keep=*/false, nullptr).ok());
    const ReplayStats& stats = replay.stats();
    ASSERT_EQ(stats.steps, got.speculation.steps) << "seed " << seed << ", " << i;
    ASSERT_EQ(stats.drafted, got.speculation.drafted) << "seed " << seed << ", " << i;
    ASSERT_EQ(stats.accepted, got.speculation.accepted) << "seed " << seed << ", " << i;
    for (const ReplayDrafterStats& d : stats.drafters) {
      const std::size_t index = static_cast<std::size_t>(&d - stats.drafters.data());
      const DrafterStats& wanted = got.speculation.drafters[index];
      ASSERT_EQ(d.name, wanted.name);
      ASSERT_EQ(d.calls, wanted.calls) << d.name << ", seed " << seed << ", " << i;
      ASSERT_EQ(d.drafts, wanted.drafts) << d.name << ", seed " << seed << ", " << i;
      ASSERT_EQ(d.accepted_drafts, wanted.accepted_drafts) << d.name << ", " << i;
      ASSERT_EQ(d.drafted, wanted.drafted) << d.name << ", seed " << seed << ", " << i;
      ASSERT_EQ(d.accepted, wanted.accepted) << d.name << ", seed " << seed << ", " << i;
      ASSERT_EQ(d.foregone, wanted.foregone) << d.name << ", seed " << seed << ", " << i;
      accepted += d.accepted;
      foregone += d.foregone;
    }
  }
  EXPECT_GT(accepted, 1000);
  EXPECT_GT(foregone, 100);
}

}  // namespace
}  // namespace outrider
