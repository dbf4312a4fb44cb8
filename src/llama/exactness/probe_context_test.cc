#include "llama/exactness/probe_context.h"

#include <gtest/gtest.h>

#include "llama/probe/probe.h"
#include "llama/probe/probe_walk.h"
#include "testing/llama_fixture.h"

namespace outrider::llama {
namespace {

using testing::expect_bits;
using testing::Row;

class ProbeContextTest : public testing::TinyModelTest {
 protected:
  std::shared_ptr<ModelFile> shared_file() { return make({.n_ctx = 64})->file(); }

  std::unique_ptr<ProbeContext> make_probe(const ContextSettings& settings = {},
                                           std::int32_t n_threads = 1) {
    Result<std::unique_ptr<ProbeContext>> probe = ProbeContext::create(
        shared_file(), {.n_threads = n_threads}, settings, /*n_cells=*/640, /*widest=*/16);
    EXPECT_TRUE(probe.ok()) << probe.status().message();
    return probe.ok() ? std::move(*probe) : nullptr;
  }

  // Rows of a batch of `width` behind what the model holds, and of as many single steps.
  struct Both {
    std::vector<Row> batch;
    std::vector<Row> single;
  };
  Both compare(LanguageModel& model, std::span<const Token> tokens) {
    Both rows;
    const Pos base = model.length(0);
    const TokenTree tree = testing::chain(tokens);
    const EvalItem item{.seq = 0, .prefix = {}, .tree = &tree};
    EXPECT_TRUE(model.evaluate({&item, 1}).ok());
    for (NodeId node = 0; node < tree.size(); ++node) {
      const std::span<const float> row = model.logits(0, node);
      rows.batch.emplace_back(row.begin(), row.end());
    }
    EXPECT_TRUE(model.commit(0, {}).ok());
    for (const Token token : tokens) rows.single.push_back(testing::step(model, 0, token));
    EXPECT_TRUE(model.truncate(0, base).ok());
    return rows;
  }
};

TEST_F(ProbeContextTest, GivesTheBitsOfTheRealModel) {
  const std::unique_ptr<ProbeContext> probe = make_probe();
  const std::vector<Token> text = random_text(40, test_seed());
  const std::vector<Row> wanted = fresh_rows(text);
  for (std::size_t i = 0; i < text.size(); ++i) {
    expect_bits(testing::step(*probe, 0, text[i]), wanted[i]);
  }
  EXPECT_EQ(probe->length(0), 40);
  ASSERT_TRUE(probe->truncate(0, 10).ok());
  EXPECT_EQ(probe->length(0), 10);
  expect_bits(testing::step(*probe, 0, text[10]), wanted[10]);
}

TEST_F(ProbeContextTest, DeepeningTakesCellsAndNotLength) {
  const std::unique_ptr<ProbeContext> probe = make_probe();
  testing::prefill(*probe, 0, random_text(24, test_seed()));
  const std::int32_t room = probe->room(0);
  ASSERT_TRUE(probe->deepen(254).ok());
  EXPECT_EQ(probe->length(0), 24);
  EXPECT_EQ(probe->room(0), room - 230);
  ASSERT_TRUE(probe->truncate(0, 24).ok());
  EXPECT_EQ(probe->room(0), room - 230) << "the copies stay";
  const std::vector<Token> more = random_text(4, test_seed() + 1);
  const Both rows = compare(*probe, more);
  for (std::size_t i = 0; i < more.size(); ++i) expect_bits(rows.batch[i], rows.single[i]);
  EXPECT_FALSE(probe->truncate(0, 5).ok());
  ASSERT_TRUE(probe->truncate(0, 0).ok());
  EXPECT_EQ(probe->room(0), probe->capabilities().n_ctx);

  // Afterwards it is as new.
  const std::vector<Token> text = random_text(8, test_seed() + 2);
  const std::vector<Row> wanted = fresh_rows(text);
  for (std::size_t i = 0; i < text.size(); ++i) {
    expect_bits(testing::step(*probe, 0, text[i]), wanted[i]);
  }
}

// The negative control of deepening: what a cache of copies shows is what a long text shows.
TEST_F(ProbeContextTest, ADeepenedCacheIsAsInexactAsALongText) {
  using Types = std::pair<const char*, const char*>;
  for (const auto& [type, type_v] :
       {Types("f16", "f16"), Types("q8_0", "q8_0"), Types("bf16", "f16")}) {
    const ContextSettings settings{.type_k = type, .type_v = type_v};
    const std::unique_ptr<ProbeContext> deep = make_probe(settings, /*n_threads=*/2);
    const std::unique_ptr<ProbeContext> far = make_probe(settings, /*n_threads=*/2);
    testing::prefill(*deep, 0, random_text(24, test_seed()));
    ASSERT_TRUE(deep->deepen(520).ok());
    for (unsigned piece = 0; piece < 2; ++piece) {
      testing::prefill(*far, 0, random_text(260, test_seed() + piece));
    }
    const std::vector<Token> more = random_text(4, test_seed() + 9);
    const Both a = compare(*deep, more);
    const Both b = compare(*far, more);
    EXPECT_EQ(a.batch == a.single, b.batch == b.single) << type;
    if (std::string(type) != "f16") {
      EXPECT_TRUE(a.batch == a.single);
    }
  }
}

TEST_F(ProbeContextTest, SeveralSequencesKeepTheirOwnTexts) {
  Result<std::unique_ptr<ProbeContext>> made = ProbeContext::create(
      shared_file(), {.n_sequences = 8, .n_threads = 1}, {}, /*n_cells=*/256, /*widest=*/16);
  ASSERT_TRUE(made.ok()) << made.status().message();
  ProbeContext& probe = **made;
  EXPECT_EQ(probe.capabilities().n_sequences, 3) << "more would tell nothing";
  const std::vector<Token> text = random_text(6, test_seed());
  const std::vector<Row> wanted = fresh_rows(text);
  for (std::size_t i = 0; i < text.size(); ++i) {
    for (const SeqId seq : {2, 0, 1}) expect_bits(testing::step(probe, seq, text[i]), wanted[i]);
  }
}

TEST_F(ProbeContextTest, AnInterruptedEvaluationLeavesTheSequenceAsItWas) {
  const std::unique_ptr<ProbeContext> probe = make_probe();
  const std::vector<Token> text = random_text(5, test_seed());
  const std::vector<Row> wanted = fresh_rows(text);
  testing::prefill(*probe, 0, std::span(text).first(4));
  std::atomic<bool> stop = true;
  probe->set_interrupt(&stop);
  const TokenTree root(text[4]);
  const EvalItem item{.seq = 0, .prefix = {}, .tree = &root};
  EXPECT_EQ(probe->evaluate({&item, 1}).code(), StatusCode::kCancelled);
  EXPECT_EQ(probe->length(0), 4);
  stop = false;
  expect_bits(testing::step(*probe, 0, text[4]), wanted[4]);
}

TEST_F(ProbeContextTest, RefusesWhatDoesNotFit) {
  const Result<std::unique_ptr<ProbeContext>> bad =
      ProbeContext::create(shared_file(), {}, {.type_k = "q9_9"}, 640, 16);
  EXPECT_EQ(bad.status().code(), StatusCode::kInvalidArgument);
  const std::unique_ptr<ProbeContext> probe = make_probe();
  const std::vector<Token> text = random_text(513, test_seed());
  const EvalItem item{.seq = 0, .prefix = text, .tree = nullptr};
  EXPECT_EQ(probe->evaluate({&item, 1}).code(), StatusCode::kResourceExhausted);
  EXPECT_EQ(probe->length(0), 0);
}

}  // namespace
}  // namespace outrider::llama
