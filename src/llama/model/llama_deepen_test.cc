// The mode for the probe of exactness: a cache that is deep at no cost.
#include <gtest/gtest.h>

#include <utility>
#include <vector>

#include "llama/model/llama_model.h"
#include "testing/llama_fixture.h"

namespace outrider::llama {
namespace {

using testing::expect_bits;
using testing::Row;

class LlamaDeepenTest : public testing::TinyModelTest {
 protected:
  std::unique_ptr<LlamaModel> make_probe(ContextSettings settings = {}, std::int32_t n_threads = 1,
                                         std::int32_t n_sequences = 1) {
    settings.n_cells = 640;
    settings.max_width = 16;
    settings.for_probe = true;
    return make({.n_ctx = 640, .n_sequences = n_sequences, .n_threads = n_threads}, settings);
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

TEST_F(LlamaDeepenTest, GivesTheBitsOfTheRealModel) {
  const std::unique_ptr<LlamaModel> probe = make_probe();
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

TEST_F(LlamaDeepenTest, DeepeningTakesCellsAndNotLength) {
  const std::unique_ptr<LlamaModel> probe = make_probe();
  testing::prefill(*probe, 0, random_text(24, test_seed()));
  ASSERT_EQ(probe->ledger().live(), 24);
  ASSERT_TRUE(probe->deepen(254).ok());
  EXPECT_EQ(probe->length(0), 24);
  EXPECT_EQ(probe->ledger().live(), 254);
  ASSERT_TRUE(probe->truncate(0, 24).ok());
  EXPECT_EQ(probe->ledger().live(), 254) << "the copies stay";
  const std::vector<Token> more = random_text(4, test_seed() + 1);
  const Both rows = compare(*probe, more);
  for (std::size_t i = 0; i < more.size(); ++i) expect_bits(rows.batch[i], rows.single[i]);
  EXPECT_FALSE(probe->truncate(0, 5).ok());
  ASSERT_TRUE(probe->truncate(0, 0).ok());
  EXPECT_EQ(probe->ledger().live(), 0);
  EXPECT_EQ(probe->room(0), probe->capabilities().n_ctx);

  // Afterwards it is as new.
  const std::vector<Token> text = random_text(8, test_seed() + 2);
  const std::vector<Row> wanted = fresh_rows(text);
  for (std::size_t i = 0; i < text.size(); ++i) {
    expect_bits(testing::step(*probe, 0, text[i]), wanted[i]);
  }
}

// The negative control of deepening: what a cache of copies shows is what a long text shows.
TEST_F(LlamaDeepenTest, ADeepenedCacheIsAsInexactAsALongText) {
  using Types = std::pair<const char*, const char*>;
  for (const auto& [type, type_v] :
       {Types("f16", "f16"), Types("q8_0", "q8_0"), Types("bf16", "f16")}) {
    const ContextSettings settings{.type_k = type, .type_v = type_v};
    const std::unique_ptr<LlamaModel> deep = make_probe(settings, /*n_threads=*/2);
    const std::unique_ptr<LlamaModel> far = make_probe(settings, /*n_threads=*/2);
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

TEST_F(LlamaDeepenTest, ATreesBranchesReadTheCopiesToo) {
  const std::unique_ptr<LlamaModel> model = make_probe();
  const std::vector<Token> text = random_text(24, test_seed());
  const std::vector<Token> tokens = random_text(4, test_seed() + 1);
  TokenTree tree(tokens[0]);
  tree.add(kRoot, tokens[1], 1.0f, 1);
  const NodeId branch = tree.add(kRoot, tokens[2], 1.0f, 1);
  const EvalItem item{.seq = 0, .prefix = {}, .tree = &tree};
  const auto branch_row = [&] {
    EXPECT_TRUE(model->evaluate({&item, 1}).ok());
    const std::span<const float> row = model->logits(0, branch);
    const Row copy(row.begin(), row.end());
    EXPECT_TRUE(model->commit(0, {}).ok());
    return copy;
  };
  testing::prefill(*model, 0, text);
  const Row shallow = branch_row();  // its id holds the text from now on
  ASSERT_TRUE(model->deepen(254).ok());
  const Row deep = branch_row();
  EXPECT_NE(deep, shallow);
  testing::step(*model, 0, tokens[0]);
  testing::expect_bits(deep, testing::step(*model, 0, tokens[2]));
  EXPECT_EQ(model->check_integrity(), "");
}

TEST_F(LlamaDeepenTest, OtherSequencesKeepTheirOwnTexts) {
  const std::unique_ptr<LlamaModel> model = make_probe({}, /*n_threads=*/1, /*n_sequences=*/3);
  const std::vector<Token> text = random_text(6, test_seed());
  const std::vector<Row> wanted = fresh_rows(text);
  for (int round = 0; round < 2; ++round) {
    testing::prefill(*model, 0, random_text(24, test_seed() + 1));
    ASSERT_TRUE(model->deepen(254).ok());
    for (std::size_t i = 0; i < text.size(); ++i) {
      for (const SeqId seq : {2, 1}) expect_bits(testing::step(*model, seq, text[i]), wanted[i]);
    }
    for (const SeqId seq : {1, 0, 2}) {  // the copies go while others are there
      ASSERT_TRUE(model->truncate(seq, 0).ok());
      EXPECT_EQ(model->check_integrity(), "");
    }
    EXPECT_EQ(model->ledger().live(), 0);
  }
}

TEST_F(LlamaDeepenTest, IsDeepenedOnceAndToNoMoreThanThereIs) {
  const std::unique_ptr<LlamaModel> model = make_probe();
  testing::prefill(*model, 0, random_text(24, test_seed()));
  ASSERT_TRUE(model->deepen(24).ok()) << "as many are in use";
  EXPECT_EQ(model->ledger().live(), 24);
  ASSERT_TRUE(model->deepen(254).ok());
  EXPECT_TRUE(model->deepen(254).ok());
  EXPECT_EQ(model->ledger().live(), 254);
  EXPECT_EQ(model->deepen(300).code(), StatusCode::kUnsupported);
  ASSERT_TRUE(model->truncate(0, 0).ok());
  testing::prefill(*model, 0, random_text(24, test_seed()));
  EXPECT_EQ(model->deepen(10000).code(), StatusCode::kUnsupported);
  EXPECT_EQ(model->check_integrity(), "");
  ASSERT_TRUE(model->truncate(0, 0).ok());
  EXPECT_EQ(model->ledger().live(), 0);
}

}  // namespace
}  // namespace outrider::llama
