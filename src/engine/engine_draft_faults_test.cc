// Drafters that fail for one of several requests, or for a while: the others keep theirs, and every
// text stays that of plain decoding.
#include <gtest/gtest.h>

#include <map>
#include <string>
#include <vector>

#include "testing/fake_engine.h"

namespace outrider {
namespace {

using namespace testing;  // NOLINT: the shared names of these tests

// Guesses for all that ask in one call; says what it is told to for a sequence, or for the call.
class FailingForOne : public ScriptedDrafter {
 public:
  FailingForOne(Script script) : ScriptedDrafter(script), script_(std::move(script)) {}

  Status draft(std::span<DraftRequest> requests) override {
    ++calls;
    most_asked = std::max(most_asked, requests.size());
    if (!of_call.ok()) return of_call;
    for (DraftRequest& request : requests) {
      ++asked[request.seq];
      const auto failure = of_sequence.find(request.seq);
      if (failure == of_sequence.end()) {
        OUTRIDER_RETURN_IF_ERROR(script_(request));
      } else {
        request.failure = failure->second;
      }
    }
    return Status();
  }

  Status of_call;
  std::map<SeqId, Status> of_sequence;
  std::map<SeqId, int> asked;
  std::size_t most_asked = 0;
  int calls = 0;

 private:
  Script script_;
};

// Three requests for the same text of 30 tokens, which the drafter knows.
class ThreeAlike {
 public:
  explicit ThreeAlike(std::int32_t max_tokens = 30, std::int32_t n_ctx = 64)
      : n_(max_tokens),
        on(4, {&drafter}, capabilities(3, n_ctx)),
        want_(reference(on.rows, {1, 2}, 1.0f, 6, static_cast<std::size_t>(max_tokens))) {
    for (const Token token : want_) whole.push_back(token);
    for (RequestId& id : ids) id = *on.engine.add(request({1, 2}, 1.0f, 6, n_, 4));
  }

  std::vector<Completion> finish() {
    run_all(on.engine);
    std::vector<Completion> all;
    for (const RequestId id : ids) {
      all.push_back(*on.engine.take(id));
      EXPECT_EQ(all.back().tokens, want_);
      EXPECT_EQ(all.back().finish, FinishReason::kLength);
    }
    return all;
  }

 private:
  std::int32_t n_;

 public:
  std::vector<Token> whole = {1, 2};
  FailingForOne drafter{[this](DraftRequest& r) { return prophet(whole, 100, 0, kVocab)(r); }};
  EngineOnFake on;
  RequestId ids[3] = {};

 private:
  std::vector<Token> want_;
};

TEST(DraftFailure, OfOneRequestLeavesTheOthersTheirDrafter) {
  ThreeAlike world;
  world.on.engine.step();
  world.drafter.of_sequence[1] = internal_error("on purpose");
  const std::vector<Completion> all = world.finish();
  EXPECT_EQ(world.drafter.most_asked, 3U) << "they are asked for together";
  for (const std::size_t i : {0U, 2U}) {
    EXPECT_TRUE(all[i].speculation.enabled);
    EXPECT_EQ(all[i].speculation.reason, "");
    EXPECT_GT(all[i].speculation.accepted, 20);
  }
  EXPECT_FALSE(all[1].speculation.enabled);
  EXPECT_EQ(all[1].speculation.reason, "scripted failed: on purpose");
  EXPECT_EQ(all[1].speculation.accepted, 3) << "of the step before";
  EXPECT_EQ(world.drafter.asked[1], 2);
}

TEST(DraftFailure, OfTheCallConcernsAll) {
  ThreeAlike world;
  world.on.engine.step();
  world.drafter.of_call = internal_error("on purpose");
  for (const Completion& got : world.finish()) {
    EXPECT_FALSE(got.speculation.enabled);
    EXPECT_EQ(got.speculation.reason, "scripted failed: on purpose");
  }
  EXPECT_EQ(world.drafter.calls, 2);
}

// Of all, and of one: cells that others hold are free again when these have ended.
TEST(DraftFailure, ForWantOfRoomIsTriedAgain) {
  for (const bool of_all : {false, true}) {
    ThreeAlike world(/*max_tokens=*/60, /*n_ctx=*/128);
    world.on.engine.step();
    const Status no_room = resource_exhausted("no cells are left");
    if (of_all) world.drafter.of_call = no_room;
    world.drafter.of_sequence[1] = no_room;
    for (int i = 0; i < 6; ++i) world.on.engine.step();
    world.drafter.of_call = Status();
    world.drafter.of_sequence.clear();
    const std::vector<Completion> all = world.finish();
    for (std::size_t i = 0; i < 3; ++i) {
      const bool told = of_all || i == 1;
      EXPECT_TRUE(all[i].speculation.enabled);
      EXPECT_EQ(all[i].speculation.reason,
                told ? "scripted was left out of some steps: no cells are left" : "");
      EXPECT_GT(all[i].speculation.accepted, 25);
    }
  }
}

// Each time after twice as many steps, and not for ever.
TEST(DraftFailure, ForWantOfRoomIsNotTriedForEver) {
  ThreeAlike world(/*max_tokens=*/400, /*n_ctx=*/512);
  world.drafter.of_call = resource_exhausted("no cells are left");
  for (const Completion& got : world.finish()) {
    EXPECT_FALSE(got.speculation.enabled);
    EXPECT_EQ(got.speculation.reason, "scripted failed: no cells are left");
    EXPECT_EQ(got.speculation.drafters[0].calls, 9);
  }
  EXPECT_EQ(world.drafter.calls, 9);
}

// Its passes fail for all that share them. It goes on where it was when there is room again.
TEST(DraftFailure, ADraftModelWithoutCellsGoesOnWhenThereAreSome) {
  const RowFunction rows = random_rows(kVocab, 4, 3.0f);
  FakeModel target(capabilities(), rows);
  FakeModel draft(capabilities(), rows);
  DraftModelDrafter drafter(draft, kVocab, {});
  const FakeVocabulary vocabulary(kVocab);
  Engine engine(target, vocabulary, {&drafter});
  const RequestId a = *engine.add(request({1}, 1.0f, 1, 30, 4));
  const RequestId b = *engine.add(request({2}, 1.0f, 2, 30, 4));
  engine.step();
  draft.set_total_cells(3);
  for (int i = 0; i < 3; ++i) {
    engine.step();
    ASSERT_EQ(drafter.check_integrity(), "");
  }
  draft.set_total_cells(-1);
  run_all(engine, &drafter);
  for (const RequestId id : {a, b}) {
    const Completion got = *engine.take(id);
    EXPECT_EQ(got.tokens, reference(rows, {id == a ? 1 : 2}, 1.0f, id == a ? 1U : 2U, 30));
    EXPECT_TRUE(got.speculation.enabled);
    EXPECT_NE(got.speculation.reason.find("was left out of some steps"), std::string::npos);
    EXPECT_GT(got.speculation.accepted, 15);
  }
}

}  // namespace
}  // namespace outrider
