// What models of each kind of memory take back, and that nothing of it shows: after any acceptance
// count, the text goes on like one that was never speculated on.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include "llama.h"
#include "llama/model/llama_model.h"
#include "testing/llama_fixture.h"

namespace outrider::llama {
namespace {

using testing::chain;
using testing::expect_bits;
using testing::path;
using testing::prefill;
using testing::Row;
using testing::TinyArchitecture;

constexpr int kWindow = 32;

class LlamaRollbackTest : public testing::TinyModelTest,
                          public ::testing::WithParamInterface<TinyArchitecture> {
 protected:
  void SetUp() override {
    load({.architecture = GetParam(), .sliding_window = kWindow, .n_layer = 4});
  }

  Rollback expected() const {
    switch (GetParam()) {
      case TinyArchitecture::kShortConv:
        return Rollback::kSnapshot;
      case TinyArchitecture::kMamba:
        return Rollback::kSaved;
      default:
        return Rollback::kAny;
    }
  }

  // Evaluates what `seq` has not seen of `text` and keeps it; the last row.
  static Row catch_up(LlamaModel& model, SeqId seq, std::span<const Token> text) {
    const std::size_t seen = static_cast<std::size_t>(model.length(seq));
    const TokenTree root(text.back());
    const EvalItem item{
        .seq = seq, .prefix = text.subspan(seen, text.size() - 1 - seen), .tree = &root};
    const Status status = model.evaluate({&item, 1});
    EXPECT_TRUE(status.ok()) << status.message();
    if (!status.ok()) return {};
    const std::span<const float> logits = model.logits(0, kRoot);
    const Row row(logits.begin(), logits.end());
    EXPECT_TRUE(model.commit(seq, path(1)).ok());
    EXPECT_EQ(model.length(seq), static_cast<Pos>(text.size()));
    EXPECT_EQ(model.check_integrity(), "");
    return row;
  }
};

INSTANTIATE_TEST_SUITE_P(Architectures, LlamaRollbackTest,
                         ::testing::Values(TinyArchitecture::kLlama,
                                           TinyArchitecture::kSlidingWindow,
                                           TinyArchitecture::kShortConv, TinyArchitecture::kMamba),
                         [](const ::testing::TestParamInfo<TinyArchitecture>& which) {
                           return testing::tiny_architecture_name(which.param);
                         });

TEST_P(LlamaRollbackTest, TheCheckFindsWhatTheModelTakesBackAndSaysWhy) {
  const std::unique_ptr<LlamaModel> model = make({.n_ctx = 128});
  const Capabilities& can = model->capabilities();
  EXPECT_EQ(can.rollback, expected()) << can.rollback_reason;
  EXPECT_EQ(model->length(0), 0);
  EXPECT_EQ(model->check_integrity(), "");
  if (expected() == Rollback::kAny) {
    EXPECT_GT(can.max_leaves, 1) << can.branches_reason;
    EXPECT_EQ(can.rollback_reason, "");
    EXPECT_EQ(can.branches_reason, "");
    return;
  }
  EXPECT_EQ(can.max_leaves, 1);
  EXPECT_EQ(can.max_width, expected() == Rollback::kSnapshot ? 8 : 64);
  for (const std::string& reason : {can.rollback_reason, can.branches_reason}) {
    EXPECT_NE(reason.find(testing::tiny_architecture_name(GetParam())), std::string::npos);
    EXPECT_NE(reason.find("recurrent"), std::string::npos) << reason;
  }
  TokenTree branches(5);
  branches.add(kRoot, 6, 0.5f, 1);
  branches.add(kRoot, 7, 0.5f, 1);
  const EvalItem item{.seq = 0, .prefix = {}, .tree = &branches};
  const Status refused = model->evaluate({&item, 1});
  EXPECT_EQ(refused.code(), StatusCode::kInvalidArgument);
  EXPECT_NE(refused.message().find("recurrent"), std::string::npos) << refused.message();
}

TEST_P(LlamaRollbackTest, AfterEveryAcceptanceCountTheTextGoesOnLikeAFreshOne) {
  const std::unique_ptr<LlamaModel> model = make({.n_ctx = 200});
  const std::vector<Token> text = random_text(120, 21);
  const std::vector<Token> wrong = random_text(20, 22);
  const std::vector<Row> fresh = fresh_rows(text);
  for (const std::size_t before : {std::size_t{0}, std::size_t{3}, std::size_t{3 * kWindow}}) {
    for (std::int32_t width = 1; width <= 8; ++width) {
      for (std::int32_t kept = 0; kept <= width; ++kept) {
        for (const std::size_t n_prefix : {std::size_t{0}, std::size_t{4}}) {
          SCOPED_TRACE(std::to_string(kept) + " of " + std::to_string(width) + " after " +
                       std::to_string(before) + " and a prefix of " + std::to_string(n_prefix));
          ASSERT_TRUE(model->truncate(0, 0).ok());
          if (before > 0) prefill(*model, 0, std::span(text).first(before));
          const std::size_t root = before + n_prefix;
          std::vector<Token> nodes(text.begin() + static_cast<std::ptrdiff_t>(root),
                                   text.begin() + static_cast<std::ptrdiff_t>(root) + kept);
          for (std::int32_t i = kept; i < width; ++i) {
            nodes.push_back(wrong[static_cast<std::size_t>(i)]);
          }
          const TokenTree tree = chain(nodes);
          const EvalItem item{
              .seq = 0, .prefix = std::span(text).subspan(before, n_prefix), .tree = &tree};
          const Status status = model->evaluate({&item, 1});
          ASSERT_TRUE(status.ok()) << status.message();
          for (NodeId node = 0; node < kept; ++node) {
            const std::span<const float> row = model->logits(0, node);
            expect_bits({row.begin(), row.end()}, fresh[root + static_cast<std::size_t>(node)]);
          }
          ASSERT_TRUE(model->commit(0, path(kept)).ok());
          EXPECT_EQ(model->check_integrity(), "");
          const Pos all = static_cast<Pos>(root) + kept;
          const bool whole = kept == width || expected() == Rollback::kAny;
          if (whole || (expected() == Rollback::kSnapshot && kept > 0)) {
            EXPECT_EQ(model->length(0), all);
          } else if (expected() == Rollback::kSaved && width > 1) {
            EXPECT_EQ(model->length(0), static_cast<Pos>(root)) << "the prefix is kept";
          }
          ASSERT_LE(model->length(0), all);
          const std::size_t n = static_cast<std::size_t>(all) + 1;
          expect_bits(catch_up(*model, 0, std::span(text).first(n)), fresh[n - 1]);
          expect_bits(catch_up(*model, 0, std::span(text).first(n + 1)), fresh[n]);
          if (HasFailure()) return;
        }
      }
    }
  }
}

// Three texts advanced by ragged chains with rejected tails, ending now and then.
TEST_P(LlamaRollbackTest, SequencesThatComeAndGoDoNotDisturbEachOther) {
  const unsigned seed = test_seed();
  SCOPED_TRACE("OUTRIDER_TEST_SEED=" + std::to_string(seed));
  std::mt19937 random(seed);
  const auto below = [&](std::size_t n) { return static_cast<std::size_t>(random() % n); };
  const std::unique_ptr<LlamaModel> model = make({.n_ctx = 200, .n_sequences = 3});
  std::vector<std::vector<Token>> texts;
  std::vector<std::vector<Row>> fresh;
  for (unsigned i = 0; i < 3; ++i) {
    texts.push_back(random_text(150, seed + i));
    fresh.push_back(fresh_rows(texts.back()));
  }
  int rows = 0;
  int identical = 0;
  float furthest = 0.0f;
  std::vector<std::size_t> at(3, 0);  // tokens decided; those not seen are the next prefix
  for (int step = 0; step < 250; ++step) {
    std::vector<TokenTree> trees;
    trees.reserve(3);
    std::vector<EvalItem> items;
    std::vector<std::size_t> right;
    for (SeqId seq = 0; seq < 3; ++seq) {
      const std::size_t i = static_cast<std::size_t>(seq);
      if (at[i] > 140 || below(30) == 0) {
        ASSERT_TRUE(model->truncate(seq, 0).ok());
        at[i] = 0;
      }
      if (below(4) == 0) continue;
      const std::size_t seen = static_cast<std::size_t>(model->length(seq));
      right.push_back(1 + below(5));
      std::vector<Token> nodes(
          texts[i].begin() + static_cast<std::ptrdiff_t>(at[i]),
          texts[i].begin() + static_cast<std::ptrdiff_t>(at[i] + right.back()));
      for (std::size_t wrong = below(4); wrong > 0; --wrong) nodes.push_back(9);
      items.push_back({.seq = seq,
                       .prefix = std::span(texts[i]).subspan(seen, at[i] - seen),
                       .tree = &trees.emplace_back(chain(nodes))});
    }
    if (items.empty()) continue;
    const Status status = model->evaluate(items);
    ASSERT_TRUE(status.ok()) << status.message();
    for (std::size_t k = 0; k < items.size(); ++k) {
      const std::size_t i = static_cast<std::size_t>(items[k].seq);
      for (std::size_t n = 0; n < right[k]; ++n) {
        const std::span<const float> row = model->logits(k, static_cast<NodeId>(n));
        const Row& wanted = fresh[i][at[i] + n];
        ++rows;
        identical += std::memcmp(row.data(), wanted.data(), row.size_bytes()) == 0 ? 1 : 0;
        for (std::size_t t = 0; t < wanted.size(); ++t) {
          furthest = std::max(furthest, std::abs(row[t] - wanted[t]));
        }
      }
      ASSERT_TRUE(model->commit(items[k].seq, path(static_cast<std::int32_t>(right[k]))).ok());
      ASSERT_EQ(model->check_integrity(), "");
      at[i] += right[k];
      ASSERT_LE(static_cast<std::size_t>(model->length(items[k].seq)), at[i]);
    }
  }
  EXPECT_GT(rows, 1000);
  if (GetParam() == TinyArchitecture::kShortConv) {
    // Its attention cells are freed at once, and llama.cpp fills them in an order of its own when
    // sequences of unlike lengths share a batch: sums in another order, also without rejections.
    EXPECT_GT(identical, rows / 8);
    EXPECT_LT(furthest, 1.0f) << "a wrong state";
  } else {
    EXPECT_EQ(identical, rows) << "off by up to " << furthest;
  }
}

TEST_P(LlamaRollbackTest, AnInterruptedEvaluationLosesNothingThatIsNotSaid) {
  const std::unique_ptr<LlamaModel> model =
      make({.n_ctx = 1200, .n_sequences = 2, .n_batch = 1100});
  const std::vector<Token> text = random_text(1200, 31);
  const std::vector<Row> fresh = fresh_rows(std::span(text).first(40));
  std::atomic<bool> flag{false};
  testing::InterruptAt interrupt(*model, flag);
  // Never, which tells how often llama.cpp asks; before the evaluation; then ever later in it, up
  // to its end.
  std::vector<std::int64_t> places = {-1};
  for (std::size_t i = 0; i < places.size(); ++i) {
    interrupt.set(-1);
    ASSERT_TRUE(model->truncate(0, 0).ok());
    ASSERT_TRUE(model->truncate(1, 0).ok());
    prefill(*model, 0, std::span(text).first(30));
    const TokenTree tree = chain(std::span(text).subspan(34, 3));
    const std::vector<EvalItem> items{
        {.seq = 0, .prefix = std::span(text).subspan(30, 4), .tree = &tree},
        {.seq = 1, .prefix = std::span(text).first(1090)}};
    interrupt.set(places[i]);
    const Status status = model->evaluate(items);
    const std::int64_t last = interrupt.asked();
    interrupt.set(-1);
    if (places[i] < 0) {
      ASSERT_TRUE(status.ok()) << status.message();
      ASSERT_GT(last, 100);
      places.insert(places.end(), {0, 1, last / 4, last / 2, 3 * last / 4, last - 1, last});
      ASSERT_TRUE(model->commit(0, path(3)).ok());
      ASSERT_TRUE(model->commit(1, {}).ok());
      continue;
    }
    ASSERT_EQ(status.code(), StatusCode::kCancelled) << places[i] << ": " << status.message();
    EXPECT_EQ(model->check_integrity(), "");
    if (expected() == Rollback::kAny) {
      EXPECT_EQ(model->length(0), 30);
    }
    ASSERT_LE(model->length(0), 34);
    EXPECT_EQ(model->length(1), 0);
    expect_bits(catch_up(*model, 0, std::span(text).first(38)), fresh[37]);
  }
}

TEST_P(LlamaRollbackTest, SequencesCanBeCutOnlyWhereTheModelAllowsIt) {
  const std::unique_ptr<LlamaModel> model = make({.n_ctx = 200, .n_sequences = 2});
  const std::vector<Token> text = random_text(100, 41);
  const std::vector<Row> fresh = fresh_rows(text);
  prefill(*model, 1, std::span(text).first(7));
  for (const Pos length : {1, kWindow - 1, kWindow, 60, 99}) {
    ASSERT_TRUE(model->truncate(0, 0).ok());
    prefill(*model, 0, text);
    const Status cut = model->truncate(0, length);
    if (expected() == Rollback::kAny) {
      ASSERT_TRUE(cut.ok()) << cut.message();
      const std::size_t n = static_cast<std::size_t>(length);
      expect_bits(catch_up(*model, 0, std::span(text).first(n + 1)), fresh[n]);
    } else {
      EXPECT_EQ(cut.code(), StatusCode::kUnsupported);
      EXPECT_EQ(model->length(0), 100) << "nothing has changed";
    }
  }
}

// Where it cannot be shared, the text is read, and nothing is left of the one before.
TEST_P(LlamaRollbackTest, ATextIsSharedOnlyWhereAllOfTheStateIsInTheCache) {
  const std::unique_ptr<LlamaModel> model = make({.n_ctx = 200, .n_sequences = 2});
  const std::vector<Token> text = random_text(100, 43);
  const std::vector<Row> fresh = fresh_rows(text);
  prefill(*model, 0, text);
  prefill(*model, 1, std::span(text).subspan(50, 9));
  const Status shared = model->share(0, 1, 60);
  const bool can = GetParam() == TinyArchitecture::kLlama;
  EXPECT_EQ(model->capabilities().can_share, can);
  EXPECT_EQ(shared.code(), can ? StatusCode::kOk : StatusCode::kUnsupported) << shared.message();
  EXPECT_EQ(model->length(1), can ? 60 : 0);
  EXPECT_EQ(model->length(0), 100);
  expect_bits(catch_up(*model, 1, std::span(text).first(70)), fresh[69]);
}

// Behind another sequence's cells, so that none is where it was.
TEST_P(LlamaRollbackTest, ASavedTextGoesOnInAnotherModelLikeAFreshOne) {
  const std::vector<Token> text = random_text(100, 44);
  const std::vector<Row> fresh = fresh_rows(text);
  Result<std::vector<std::uint8_t>> bytes = internal_error("");
  {
    const std::unique_ptr<LlamaModel> model = make({.n_ctx = 200, .n_sequences = 2});
    prefill(*model, 0, std::span(text).first(90));
    bytes = model->save(0);
    ASSERT_TRUE(bytes.ok()) << bytes.status().message();
  }
  const std::unique_ptr<LlamaModel> model = make({.n_ctx = 200, .n_sequences = 2});
  prefill(*model, 0, std::span(text).subspan(50, 9));
  prefill(*model, 1, std::span(text).subspan(50, 7));
  const Status restored = model->restore(1, *bytes, 90);
  ASSERT_TRUE(restored.ok()) << restored.message();
  EXPECT_EQ(model->length(1), 90);
  EXPECT_EQ(model->check_integrity(), "");
  expect_bits(catch_up(*model, 1, text), fresh[99]);
  // A length that is not the state's.
  EXPECT_EQ(model->restore(1, *bytes, 89).code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(model->length(1), 0);
  EXPECT_EQ(model->check_integrity(), "");
  EXPECT_EQ(model->length(0), 9);
}

// One text is cut so far that reading past its cells costs more than rebuilding the cache. Behind
// that a windowed model could not cut the other one any more.
TEST_P(LlamaRollbackTest, ATextIsStillCutWhenAnotherLeftManyCells) {
  if (expected() != Rollback::kAny) return;  // texts of the others cannot be cut at all
  const bool windowed = GetParam() == TinyArchitecture::kSlidingWindow;
  const std::unique_ptr<LlamaModel> model = make({.n_ctx = 800, .n_sequences = 2});
  const std::vector<Token> text = random_text(400, 46);
  prefill(*model, 0, text);
  prefill(*model, 1, std::span(text).first(200));
  ASSERT_TRUE(model->truncate(0, 100).ok());
  ASSERT_EQ(model->ledger().parked(), 300);
  const std::vector<Row> fresh = fresh_rows(std::span(text).first(201));
  expect_bits(catch_up(*model, 1, std::span(text).first(201)), fresh[200]);
  EXPECT_EQ(model->compactions(), windowed ? 0 : 1);
  for (const SeqId seq : {1, 0}) {
    const Status cut = model->truncate(seq, 50);
    ASSERT_TRUE(cut.ok()) << cut.message();
    expect_bits(catch_up(*model, seq, std::span(text).first(51)), fresh[50]);
  }
}

// Of a sliding window's layers only the cells are put back that the text's end sees. So it is
// behind a rebuilt cache, too.
TEST_P(LlamaRollbackTest, ARestoredTextIsCutOnlyWhereItsWindowIsStillThere) {
  const std::vector<Token> text = random_text(100, 45);
  const std::vector<Row> fresh = fresh_rows(text);
  const std::span<const Token> read = std::span(text).first(90);
  const std::unique_ptr<LlamaModel> before = make({.n_ctx = 200, .n_sequences = 2});
  prefill(*before, 0, read);
  const Result<std::vector<std::uint8_t>> bytes = before->save(0);
  ASSERT_TRUE(bytes.ok()) << bytes.status().message();
  const std::unique_ptr<LlamaModel> model = make({.n_ctx = 200, .n_sequences = 2});
  for (const bool rebuilt : {false, true}) {
    if (rebuilt && expected() != Rollback::kAny) continue;  // its cache is never rebuilt
    for (const Pos length : {1, 40, 70, 89}) {
      SCOPED_TRACE((rebuilt ? "rebuilt, cut to " : "restored, cut to ") + std::to_string(length));
      ASSERT_TRUE(model->truncate(1, 0).ok());
      if (rebuilt) {
        prefill(*model, 1, read);
        ASSERT_TRUE(model->compact().ok());
      } else {
        ASSERT_TRUE(model->restore(1, *bytes, 90).ok());
      }
      const Status cut = model->truncate(1, length);
      if (GetParam() == TinyArchitecture::kLlama) {
        EXPECT_TRUE(cut.ok()) << cut.message();
      } else if (length < 89) {  // all that the window holds behind 89 tokens may be there
        EXPECT_EQ(cut.code(), StatusCode::kUnsupported) << cut.message();
      }
      EXPECT_EQ(model->length(1), cut.ok() ? length : 90);
      if (!cut.ok()) {
        ASSERT_TRUE(model->truncate(1, 0).ok());
      }
      const std::size_t n = static_cast<std::size_t>(length);
      for (std::size_t i = n; i < n + 4; ++i) {
        expect_bits(catch_up(*model, 1, std::span(text).first(i + 1)), fresh[i]);
      }
    }
  }
}

}  // namespace
}  // namespace outrider::llama
