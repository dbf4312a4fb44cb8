// Memory that only the pass tells of, and that runs out: ended texts give way first, then one
// request, and no other.
#include <gtest/gtest.h>

#include <vector>

#include "engine/engine.h"
#include "testing/fake_engine.h"

namespace outrider {
namespace {

using namespace testing;  // NOLINT: the shared names of these tests

// Has memory for a pass while at most `most` sequences hold anything, as a model whose cache must
// be rebuilt for it.
class CrampedModel : public FakeModel {
 public:
  CrampedModel(const RowFunction& rows, int most)
      : FakeModel(testing::capabilities(/*n_sequences=*/4), rows), most_(most) {}

  Status evaluate(std::span<const EvalItem> items) override {
    int n = 0;
    for (SeqId seq = 0; seq < capabilities().n_sequences; ++seq) n += length(seq) > 0 ? 1 : 0;
    if (n > most_) return resource_exhausted("not enough memory to rebuild the cache");
    return FakeModel::evaluate(items);
  }

 private:
  int most_;
};

struct Cramped {
  explicit Cramped(int most, std::vector<Drafter*> drafters = {})
      : rows(random_rows(kVocab, 4, 3.0f)),
        target(rows, most),
        engine(target, vocabulary, std::move(drafters), {.reuse_prefix = true}) {}

  RequestId add(Token first, std::int32_t max_tokens = 10) {
    return *engine.add(request({first, 2, 3}, 1.0f, static_cast<std::uint64_t>(first), max_tokens,
                               /*width=*/4));
  }
  void expect_whole(RequestId id, Token first) {
    const Completion got = *engine.take(id);
    EXPECT_EQ(got.finish, FinishReason::kLength) << got.error.message();
    EXPECT_EQ(got.tokens,
              reference(rows, {first, 2, 3}, 1.0f, static_cast<std::uint64_t>(first), 10));
  }
  int texts_held() const {
    int n = 0;
    for (const IdleTexts::Entry& idle : engine.idle().entries()) n += idle.text().empty() ? 0 : 1;
    return n;
  }

  RowFunction rows;
  CrampedModel target;
  FakeVocabulary vocabulary{kVocab};
  Engine engine;
};

TEST(EngineMemory, EndedTextsGiveWayBeforeARequestEnds) {
  const RowFunction rows = random_rows(kVocab, 4, 3.0f);
  for (const bool drafts : {false, true}) {
    FakeModel draft(testing::capabilities(4), noisy_rows(rows, 1, 0.5f));
    DraftModelDrafter drafter(draft, kVocab, {});
    Cramped world(/*most=*/2, {drafts ? &drafter : nullptr});
    for (const Token first : {1, 5}) {
      world.add(first, 3);
      run_all(world.engine, &drafter);
    }
    ASSERT_EQ(world.texts_held(), 2);
    const RequestId a = world.add(7);
    const RequestId b = world.add(8);
    run_all(world.engine, &drafter);
    world.expect_whole(a, 7);
    world.expect_whole(b, 8);
  }
}

TEST(EngineMemory, OnlyAsManyEndedTextsGiveWayAsMust) {
  Cramped world(/*most=*/2);
  for (const Token first : {1, 5}) {
    world.add(first, 3);
    run_all(world.engine);
  }
  ASSERT_EQ(world.texts_held(), 2);
  const RequestId a = world.add(7);
  run_all(world.engine);
  world.expect_whole(a, 7);
  EXPECT_EQ(world.texts_held(), 2) << "its own, and that of the two which was put last";
}

TEST(EngineMemory, WithoutEndedTextsOneRequestEndsAndNoOther) {
  Cramped world(/*most=*/2);
  const RequestId a = world.add(1);
  const RequestId b = world.add(5);
  const RequestId c = world.add(7);
  run_all(world.engine);
  const Completion failed = *world.engine.take(a);
  EXPECT_EQ(failed.finish, FinishReason::kError);
  EXPECT_EQ(failed.error.message(), "not enough memory to rebuild the cache");
  world.expect_whole(b, 5);
  world.expect_whole(c, 7);
}

// Of errors of another kind nothing gives way.
TEST(EngineMemory, AnotherFailureLeavesEndedTexts) {
  Cramped world(/*most=*/4);
  world.add(1, 3);
  run_all(world.engine);
  const RequestId a = world.add(7);
  world.target.fail_evaluate({internal_error("broken"), internal_error("broken alone")});
  run_all(world.engine);
  EXPECT_EQ(world.engine.take(a)->error.message(), "broken alone");
  EXPECT_EQ(world.texts_held(), 1);
}

}  // namespace
}  // namespace outrider
