// How near the planner's choices come to those of an oracle, on made-up machines.
//
// The oracle has the same draft model and the same machine, knows which of the draft's guesses will
// be accepted before they are made, and pays for drafting them as everybody does. It drafts as far
// as that pays and not at all elsewhere, so that the text takes the least time that any choice of
// chains could. What it never pays for, a planner must: finding out what the draft is worth,
// guesses that turn out wrong, and the draft's reading of what it missed while suspended.
//
// Example: 3 guesses would be right behind the text. It may send 0 to 3 of them; with j of them the
// step takes j passes of the draft and one of the target with 1 + j tokens, and gives j + 1 tokens.
// From the text's end backwards, the best of these at each place is the best for the whole text.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "lab/oracle.h"
#include "testing/planned_world.h"

namespace outrider::lab {
namespace {

using namespace testing;  // NOLINT: the shared names of these tests

constexpr std::size_t kFarthest = 15;  // guesses of the oracle in a step
const std::vector<Token> kPrompt = {1, 2};

// [place] how many of the draft's guesses behind the text's first `place` tokens are right.
std::vector<std::size_t> right_guesses(const RowFunction& draft, const std::vector<Token>& text,
                                       std::uint64_t seed) {
  std::vector<std::size_t> right(text.size());
  std::vector<Token> context = kPrompt;
  for (std::size_t place = 0; place < text.size(); ++place) {
    const std::size_t n = std::min(kFarthest, text.size() - place);
    const std::vector<Token> guesses = reference(draft, context, 1.0f, seed, n);
    while (right[place] < n && guesses[right[place]] == text[place + right[place]]) {
      ++right[place];
    }
    context.push_back(text[place]);
  }
  return right;
}

// A step of at least `tokens`: where a wider one takes less, it is filled with anything.
double step_ms(const PlanMachine& machine, std::size_t tokens) {
  double least = 1e300;
  for (std::size_t width = tokens; width <= kFarthest + 1; ++width) {
    least = std::min(least, machine.ms(static_cast<std::int32_t>(width)));
  }
  return least;
}

double oracle_ms(const PlannedSetting& setting, const std::vector<Token>& text,
                 std::uint64_t seed) {
  const std::vector<std::size_t> right = right_guesses(setting.draft_rows, text, seed);
  const double pass_ms = setting.draft_share * setting.machine.ms(1);
  std::vector<double> rest(text.size() + 1, 0.0);  // [place] the least time from there on
  for (std::size_t place = text.size(); place-- > 1;) {
    rest[place] = 1e300;
    for (std::size_t sent = 0; sent <= right[place] && place + sent < text.size(); ++sent) {
      const double ms = static_cast<double>(sent) * pass_ms + step_ms(setting.machine, 1 + sent);
      rest[place] = std::min(rest[place], ms + rest[place + sent + 1]);
    }
  }
  return step_ms(setting.machine, kPrompt.size()) + rest[1];
}

TEST(Oracle, IsWhatTheMadeUpWorldSays) {
  for (const PlanMachine& machine : plan_machines()) {
    for (const auto& [name, rows] : drafts()) {
      const PlannedSetting setting{.machine = machine, .draft_rows = rows, .draft_share = 0.15};
      const std::vector<Token> text =
          reference(PlannedWorld::target_rows(), kPrompt, 1.0f, 7, kPlannedTokens);
      FakeModel model(PlannedWorld::capabilities(1), rows);
      DraftModelDrafter drafter(model, kVocab, {}, /*learns=*/false);
      FakeSampler sampler(1.0f);
      const double pass_ms = setting.draft_share * machine.ms(1);
      const OracleDrafter with{.drafter = &drafter, .first_ms = pass_ms, .further_ms = pass_ms};
      const Result<double> ms =
          oracle_ms(kPrompt, text, sampler, std::span(&with, 1),
                    {.seed = 7, .width = kFarthest + 1, .step_ms = [&](std::int32_t w) {
                       return machine.ms(w);
                     }});
      ASSERT_TRUE(ms.ok()) << ms.status().message();
      EXPECT_NEAR(*ms + step_ms(machine, kPrompt.size()), oracle_ms(setting, text, 7), 1e-6)
          << machine.name << ", " << name;
    }
  }
}

TEST(Oracle, TakesTheDrafterThatIsWorthItAtEachPlace) {
  // Two drafters that know the text, one of them at even places only, but for less.
  const std::vector<Token> text = {3, 4, 5, 6, 3, 4, 5, 6, 3};
  const auto knows = [&text](DraftRequest& r, bool even) {
    const std::size_t place = r.text.size() - kPrompt.size();
    if (even && place % 2 == 1) return Status();
    NodeId at = kRoot;
    for (std::size_t i = place; i < text.size() && r.tree->size() <= r.max_nodes; ++i) {
      at = r.tree->add(at, text[i], 0.9f, r.mask);
    }
    return Status();
  };
  ScriptedDrafter dear([&](DraftRequest& r) { return knows(r, false); });
  ScriptedDrafter cheap([&](DraftRequest& r) { return knows(r, true); });
  const std::vector<OracleDrafter> with = {{.drafter = &dear, .first_ms = 5, .further_ms = 5},
                                           {.drafter = &cheap, .first_ms = 1, .further_ms = 1}};
  FakeSampler sampler(1.0f);
  OracleOptions options{.width = 4, .step_ms = [](std::int32_t w) { return 10.0 + w; }};
  // Eight tokens behind the first: one plain (11), then 4 (14 + 3 * 1) from place 2, and the last
  // three (13 + 2 * 1) from place 6.
  const Result<double> ms = oracle_ms(kPrompt, text, sampler, with, options);
  ASSERT_TRUE(ms.ok()) << ms.status().message();
  EXPECT_DOUBLE_EQ(*ms, 11.0 + 17.0 + 15.0);
  const std::atomic<bool> interrupt{true};
  options.interrupt = &interrupt;
  EXPECT_EQ(oracle_ms(kPrompt, text, sampler, with, options).status().code(),
            StatusCode::kCancelled);
}

TEST(Planner, IsAtThreeQuartersOfAnOracleOrNearer) {
  for (const PlanMachine& machine : plan_machines()) {
    double sum = 0.0;
    int n = 0;
    for (const double share : {0.05, 0.15, 0.5}) {
      for (const auto& [name, rows] : drafts()) {
        const PlannedSetting setting{.machine = machine, .draft_rows = rows, .draft_share = share};
        PlannedWorld world(setting);
        for (const std::uint64_t seed : {5, 6}) world.run(kAutoWidth, seed);  // what is it worth?
        double planned = 0.0;
        double best = 0.0;
        for (const std::uint64_t seed : {7, 8, 9}) {
          const std::vector<Token> text =
              reference(PlannedWorld::target_rows(), kPrompt, 1.0f, seed, kPlannedTokens);
          planned += world.run(kAutoWidth, seed);
          best += oracle_ms(setting, text, seed);
        }
        EXPECT_LE(best, planned * 1.0001) << "nothing is faster than the oracle";
        EXPECT_GT(best / planned, 0.67)
            << machine.name << ", a draft that is " << name << " and takes " << share;
        sum += std::log(best / planned);
        ++n;
      }
    }
    std::printf("%-7s %.3f of the oracle\n", machine.name.c_str(), std::exp(sum / n));
    EXPECT_GT(std::exp(sum / n), 0.75) << machine.name;
  }
}

}  // namespace
}  // namespace outrider::lab
