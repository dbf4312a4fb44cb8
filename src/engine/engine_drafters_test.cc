// Several drafters at once: merged, or one falling back on another, with the credit where it is
// due.
#include <gtest/gtest.h>

#include "engine/engine.h"
#include "testing/chi_square.h"
#include "testing/fake_engine.h"

namespace outrider {
namespace {

using namespace testing;  // NOLINT: the shared names of these tests

std::vector<Token> whole(const RowFunction& rows, std::uint64_t seed) {
  std::vector<Token> text = {1, 2};
  const std::vector<Token> said = reference(rows, text, 1.0f, seed, 60);
  text.insert(text.end(), said.begin(), said.end());
  return text;
}

// Has something in every third step only, and is right then.
Script now_and_then(const std::vector<Token>& text) {
  return [text, inner = prophet(text, 2, 0, kVocab)](DraftRequest& request) {
    return request.text.size() % 3 == 0 ? inner(request) : Status();
  };
}

const DrafterStats& of(const Completion& completion, std::string_view name) {
  for (const DrafterStats& stats : completion.speculation.drafters) {
    if (stats.name == name) return stats;
  }
  ADD_FAILURE() << "no statistics of " << name;
  return completion.speculation.drafters.at(0);
}

TEST(DrafterChain, TheFirstThatHasSomethingWinsAndAloneGetsTheCredit) {
  const RowFunction rows = random_rows(kVocab, 1, 3.0f);
  FakeModel target(capabilities(), rows);
  const FakeVocabulary vocabulary(kVocab);
  NamedDrafter first("first", now_and_then(whole(rows, 5)));
  NamedDrafter second("second", prophet(whole(rows, 5), 100, 2, kVocab));
  Request r = request({1, 2}, 1.0f, 5, 40, 4);
  r.drafters.chains = {{"first", "second"}};
  // The engine asks "second" first where both are asked: the chain's order counts, not its own.
  const Completion got = complete(target, vocabulary, {&second, &first}, std::move(r));
  EXPECT_EQ(got.tokens, reference(rows, {1, 2}, 1.0f, 5, 40));
  const DrafterStats& a = of(got, "first");
  const DrafterStats& b = of(got, "second");
  EXPECT_GT(a.drafts, 0);
  EXPECT_GT(b.drafts, 0);
  EXPECT_EQ(b.calls, a.calls - a.drafts) << "asked only where the first had nothing";
  EXPECT_EQ(a.accepted, a.drafted) << "it is always right";
  EXPECT_EQ(a.accepted_drafts, a.drafts);
  EXPECT_LT(b.accepted, b.drafted);
  EXPECT_EQ(a.drafted + b.drafted, got.speculation.drafted);
  EXPECT_EQ(a.accepted + b.accepted, got.speculation.accepted);
  EXPECT_EQ(got.speculation.accepted + got.speculation.steps, got.speculation.emitted);
}

TEST(DrafterChain, OneThatFailsOrIsNotThereLeavesTheNextInItsPlace) {
  const RowFunction rows = random_rows(kVocab, 2, 3.0f);
  const FakeVocabulary vocabulary(kVocab);
  FakeModel target(capabilities(), rows);
  NamedDrafter failing("failing", [](DraftRequest&) { return internal_error("on purpose"); });
  NamedDrafter second("second", prophet(whole(rows, 6), 100, 0, kVocab));
  Request r = request({1, 2}, 1.0f, 6, 30, 4);
  r.drafters.chains = {{"absent", "failing", "second"}};
  const Completion got = complete(target, vocabulary, {&failing, &second}, std::move(r));
  EXPECT_EQ(got.tokens, reference(rows, {1, 2}, 1.0f, 6, 30));
  EXPECT_EQ(of(got, "failing").calls, 1);
  EXPECT_EQ(of(got, "second").accepted, got.speculation.accepted);
  EXPECT_GT(got.speculation.accepted, 15);
  EXPECT_TRUE(got.speculation.enabled);
  EXPECT_EQ(got.speculation.reason, "failing failed: on purpose");
}

TEST(DrafterUnion, MergedProposalsCountForAllWhoMadeThem) {
  const RowFunction rows = random_rows(kVocab, 3, 3.0f);
  const FakeVocabulary vocabulary(kVocab);
  FakeModel target(capabilities(), rows);
  NamedDrafter right("right", prophet(whole(rows, 7), 100, 0, kVocab));
  NamedDrafter half("half", prophet(whole(rows, 7), 100, 3, kVocab));
  NamedDrafter fallback("fallback", prophet(whole(rows, 7), 100, 0, kVocab));
  Request r = request({1, 2}, 1.0f, 7, 30, 6);
  r.drafters.chains = {{"half", "fallback"}, {"right"}};
  const Completion got = complete(target, vocabulary, {&right, &half, &fallback}, std::move(r));
  EXPECT_EQ(got.tokens, reference(rows, {1, 2}, 1.0f, 7, 30));
  const DrafterStats& a = of(got, "right");
  const DrafterStats& b = of(got, "half");
  EXPECT_EQ(of(got, "fallback").calls, 0);
  EXPECT_EQ(a.calls, b.calls);
  EXPECT_EQ(a.accepted, got.speculation.accepted);
  EXPECT_GT(b.accepted, 0);
  EXPECT_LT(b.accepted, a.accepted);
  EXPECT_GT(a.drafted + b.drafted, got.speculation.drafted) << "shared nodes count for both";
  EXPECT_GT(a.foregone + b.foregone + a.accepted, 0);
}

// Whatever is asked, merged or in turn, the text is that of plain decoding.
// A weak guess that was made first must not take a sure one's place.
TEST(DrafterUnion, WhereTheTargetTakesChainsTheLikelierGuessStays) {
  const RowFunction rows = random_rows(kVocab, 1, 3.0f);
  Capabilities chains = capabilities();
  chains.max_leaves = 1;
  FakeModel target(chains, rows);
  const FakeVocabulary vocabulary(kVocab);
  NamedDrafter weak("weak", [text = whole(rows, 5)](DraftRequest& request) {
    const Token right = text[request.text.size()];
    request.tree->add(kRoot, (right + 1) % kVocab, 0.05f, request.mask);
    return Status();
  });
  NamedDrafter sure("sure", prophet(whole(rows, 5), 3, 0, kVocab));
  double now_ms = 0.0;
  target.on_evaluated([&now_ms](std::int64_t) { now_ms += 10.0; });
  for (const std::int32_t width : {4, kAutoWidth}) {
    Engine engine(target, vocabulary, {&weak, &sure}, {.now_ms = [&now_ms] { return now_ms; }});
    const std::vector<CostPoint> flat = {{.width = 1, .ms = 10.0}, {.width = 4, .ms = 10.0}};
    engine.planner().set_target_cost(CostCurve(flat));
    const RequestId id = *engine.add(request({1, 2}, 1.0f, 5, 40, width));
    while (engine.busy()) engine.step();
    const Completion got = *engine.take(id);
    EXPECT_EQ(got.tokens, reference(rows, {1, 2}, 1.0f, 5, 40));
    EXPECT_GT(of(got, "sure").accepted, 20) << width;
    EXPECT_EQ(of(got, "weak").accepted, 0);
  }
}

TEST(DrafterUnion, AnyPlanOfAnyDraftersLeavesTheText) {
  const std::uint64_t seed = test_seed(4);
  const RowFunction rows = random_rows(kVocab, seed, 3.0f);
  const std::vector<Token> text = whole(rows, 8);
  const FakeVocabulary vocabulary(kVocab);
  const std::vector<std::pair<std::string, Script>> all = scripts(text);
  for (std::uint32_t i = 0; i < 200; ++i) {
    const NoiseKey key = noise_key(seed, i);
    FakeModel target(capabilities(), rows);
    std::vector<std::unique_ptr<NamedDrafter>> drafters;
    std::vector<Drafter*> pointers;
    for (const std::pair<std::string, Script>& script : all) {
      drafters.push_back(std::make_unique<NamedDrafter>(script.first, script.second));
      pointers.push_back(drafters.back().get());
    }
    Request r = request({1, 2}, 1.0f, 8, 30, 1 + static_cast<std::int32_t>(i % 8));
    for (std::uint32_t d = 0; d < all.size(); ++d) {
      const std::uint32_t place = noise_bits(key, d) % 4;
      if (place == 0) continue;
      if (place < 3 || r.drafters.chains.empty()) {
        r.drafters.chains.push_back({all[d].first});
      } else {
        r.drafters.chains.back().push_back(all[d].first);
      }
    }
    const Completion got = complete(target, vocabulary, pointers, std::move(r));
    ASSERT_EQ(got.tokens, reference(rows, {1, 2}, 1.0f, 8, 30)) << "seed " << seed << ", " << i;
    for (const DrafterStats& d : got.speculation.drafters) {
      EXPECT_LE(d.drafts, d.calls);
      EXPECT_LE(d.accepted_drafts, d.drafts);
      EXPECT_LE(d.accepted, d.drafted);
    }
  }
}

// A guess that was accepted may be the beginning of a stop string and so be shown later, when its
// drafter is gone.
TEST(EngineDrafters, APieceThatWasHeldBackStillKnowsWhoseGuessItWas) {
  const RowFunction rows = random_rows(kVocab, 1, 3.0f);
  const std::vector<Token> text = whole(rows, 5);
  FakeModel target(capabilities(), rows);
  const FakeVocabulary vocabulary(kVocab, kNoToken);
  NamedDrafter first("first", prophet(text, 2, 0, kVocab));
  Engine engine(target, vocabulary, {&first});
  Request r = request({1, 2}, 1.0f, 5, 40, 3);
  // Begins with the text's first six tokens and is never complete.
  std::string stop;
  for (std::size_t i = 2; i < 8; ++i) stop += vocabulary.piece(text[i]);
  stop += "!";
  r.stop = {stop};
  const RequestId id = *engine.add(std::move(r));
  while (target.length(0) < 6) ASSERT_TRUE(engine.step().empty()) << "all is held back";
  engine.detach(&first, "gone");
  std::vector<Piece> pieces;
  while (engine.busy()) {
    for (const Update& update : engine.step()) {
      pieces.insert(pieces.end(), update.pieces.begin(), update.pieces.end());
    }
  }
  std::int64_t guessed = 0;
  for (const Piece& piece : pieces) {
    if (piece.by == kByTarget) {
      EXPECT_EQ(engine.name_of(piece.by), "target");
      continue;
    }
    ++guessed;
    EXPECT_EQ(engine.name_of(piece.by), "first");
  }
  EXPECT_GT(guessed, 0);
  EXPECT_EQ(engine.take(id)->speculation.reason, "gone");
}

TEST(Engine, AWidthThatTheTargetDoesNotTakeIsTold) {
  Capabilities caps = capabilities();
  caps.max_width = 4;
  ScriptedDrafter drafter(scripts({})[1].second);
  for (const std::int32_t width : {4, 9, kAutoWidth}) {
    EngineOnFake on(2, {&drafter}, caps);
    ASSERT_TRUE(on.engine.add(request({1}, 1.0f, 1, 10, width)).ok());
    run_all(on.engine);
    EXPECT_EQ(on.engine.take(1)->speculation.reason,
              width == 9 ? "the target takes at most 4 tokens in a step here, so the width is not 9"
                         : "");
  }
  EngineOnFake without(2, {}, caps);
  ASSERT_TRUE(without.engine.add(request({1}, 1.0f, 1, 10, 9)).ok());
  run_all(without.engine);
  EXPECT_EQ(without.engine.take(1)->speculation.reason.find("width"), std::string::npos);
}

}  // namespace
}  // namespace outrider
