// Memory that runs out at each allocation of an evaluation of a real model: the model is as it was,
// or empty, and in any case knows which of llama.cpp's cells are whose. And none for a copy of its
// cells: it goes on as long as it can without.
//
// This program has an operator new of its own (failing_new.h). llama.cpp's allocations on this
// thread fail as well.
#include <cstdio>
#include <memory>
#include <new>
#include <numeric>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "llama/files/model_file.h"
#include "llama/model/llama_model.h"
#include "testing/sanitized.h"
#include "testing/tiny_dir.h"
#include "testing/tiny_gguf.h"
#include "tests/allocation/failing_new.h"

namespace outrider::llama {
namespace {

using failing_new::left_here;
using failing_new::no_arrays;
using failing_new::refused_arrays;

constexpr std::int64_t kStride = testing::kSanitized ? 3 : 1;

std::vector<float> row_of(LlamaModel& model, NodeId node) {
  const std::span<const float> row = model.logits(0, node);
  return {row.begin(), row.end()};
}

// Two sequences: one with a text, behind which a tree is checked while the other's text is read.
struct Work {
  std::vector<Token> text = std::vector<Token>(30);
  TokenTree tree = TokenTree(60);
  std::vector<NodeId> path;

  Work() {
    std::iota(text.begin(), text.end(), 20);
    for (int i = 0; i < 6; ++i) tree.add(i % 3, 61 + i, 0.5f, 1);
    path = {kRoot, tree.child(kRoot, 61)};
  }
  Status begin(LlamaModel& model) const {
    const EvalItem prompt{.seq = 0, .prefix = text};
    OUTRIDER_RETURN_IF_ERROR(model.evaluate({&prompt, 1}));
    return model.commit(0, {});
  }
  // Both end with the second sequence empty again.
  Status step(LlamaModel& model) const {
    const EvalItem items[] = {{.seq = 0, .prefix = {}, .tree = &tree}, {.seq = 1, .prefix = text}};
    OUTRIDER_RETURN_IF_ERROR(model.evaluate(items));
    OUTRIDER_RETURN_IF_ERROR(model.commit(0, path));
    OUTRIDER_RETURN_IF_ERROR(model.commit(1, {}));
    OUTRIDER_RETURN_IF_ERROR(model.truncate(0, static_cast<Pos>(text.size())));
    return model.truncate(1, 0);
  }
};

class LlamaAllocation : public ::testing::Test {
 protected:
  void SetUp() override {
    const std::string path = folder_.file("tiny.gguf");
    ASSERT_TRUE(testing::write_tiny_gguf(path, {}).ok());
    Result<std::shared_ptr<ModelFile>> file = ModelFile::load(path, {}, {});
    ASSERT_TRUE(file.ok()) << file.status().message();
    Result<std::unique_ptr<LlamaModel>> made = LlamaModel::create(
        *file, {.n_ctx = 512, .n_sequences = 2, .n_batch = 128, .n_threads = 1}, {});
    ASSERT_TRUE(made.ok()) << made.status().message();
    model_ = std::move(*made);
  }

  // The rows of the tree's nodes behind the text, from an empty model on.
  std::vector<float> rows() {
    EXPECT_TRUE(work_.begin(*model_).ok());
    const EvalItem item{.seq = 0, .prefix = {}, .tree = &work_.tree};
    EXPECT_TRUE(model_->evaluate({&item, 1}).ok());
    std::vector<float> all;
    for (NodeId node = 0; node < work_.tree.size(); ++node) {
      const std::vector<float> row = row_of(*model_, node);
      all.insert(all.end(), row.begin(), row.end());
    }
    EXPECT_TRUE(model_->commit(0, {}).ok());
    for (const SeqId seq : {0, 1}) EXPECT_TRUE(model_->truncate(seq, 0).ok());
    return all;
  }

  testing::TempDir folder_;
  Work work_;
  std::unique_ptr<LlamaModel> model_;
};

TEST_F(LlamaAllocation, AStepThatFailsHalfWayLeavesAllWholeOrNothing) {
  const std::vector<float> expected = rows();
  // The largest graph first: where ggml's memory for one grows and there is none, it is freed twice
  // later (docs/bugs.md).
  ASSERT_TRUE(work_.begin(*model_).ok());
  ASSERT_TRUE(work_.step(*model_).ok());
  ASSERT_TRUE(model_->truncate(0, 0).ok());
  std::int64_t thrown = 0;
  std::int64_t told = 0;
  for (std::int64_t n = 1;; n += kStride) {
    ASSERT_LT(n, 100'000);
    ASSERT_TRUE(work_.begin(*model_).ok());
    left_here = n;
    bool threw = false;
    Status status;
    try {
      status = work_.step(*model_);
    } catch (const std::bad_alloc&) {
      threw = true;
    }
    const bool failed = left_here == 0;
    left_here = 0;
    ASSERT_EQ(model_->check_integrity(), "") << "at allocation " << n;
    if (threw) {
      ++thrown;
      for (const SeqId seq : {0, 1}) ASSERT_EQ(model_->length(seq), 0) << "at allocation " << n;
    } else if (!status.ok()) {
      ++told;
    }
    for (const SeqId seq : {0, 1}) ASSERT_TRUE(model_->truncate(seq, 0).ok());
    ASSERT_EQ(rows(), expected) << "at allocation " << n;
    if (!failed) break;
  }
  EXPECT_GT(thrown, 0);
  std::printf("%lld allocations thrown, %lld told\n", static_cast<long long>(thrown),
              static_cast<long long>(told));
}

// Each try copies live cells up to where memory ends, so one in every pass made all of them slow.
TEST_F(LlamaAllocation, ARebuildingThatFindsNoMemoryIsNotTriedAgainInTheNextPass) {
  const std::vector<Token> text(100, 20);
  const TokenTree root(60);
  const std::vector<NodeId> path = {kRoot};
  const auto read = [&](SeqId seq, std::size_t n) {
    const EvalItem prompt{.seq = seq, .prefix = std::span(text).first(n)};
    OUTRIDER_RETURN_IF_ERROR(model_->evaluate({&prompt, 1}));
    return model_->commit(seq, {});
  };
  const auto step = [&] {
    const EvalItem item{.seq = 1, .prefix = {}, .tree = &root};
    OUTRIDER_RETURN_IF_ERROR(model_->evaluate({&item, 1}));
    return model_->commit(1, path);
  };
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(read(0, 100).ok());
  ASSERT_TRUE(read(1, 10).ok());
  ASSERT_TRUE(step().ok());
  ASSERT_TRUE(model_->truncate(0, 0).ok());
  ASSERT_EQ(model_->ledger().parked(), 300);
  std::vector<Status> told;
  std::vector<std::int64_t> tried;
  // A copy of cells is an array, and nothing else that a step makes behind a wider one.
  no_arrays = true;
  for (int i = 0; i < 3; ++i) {
    told.push_back(step());
    tried.push_back(refused_arrays);
  }
  no_arrays = false;
  for (const Status& status : told) EXPECT_TRUE(status.ok()) << status.message();
  EXPECT_EQ(tried, (std::vector<std::int64_t>{1, 1, 1}));
  EXPECT_EQ(model_->compactions(), 0);
  // With less to copy it is tried again.
  ASSERT_TRUE(model_->truncate(1, 5).ok());
  ASSERT_TRUE(step().ok());
  EXPECT_EQ(model_->compactions(), 1);
  EXPECT_EQ(model_->ledger().parked(), 0);
  EXPECT_EQ(model_->check_integrity(), "");
}

}  // namespace
}  // namespace outrider::llama
