// What the tests of LlamaModel share: a tiny model, texts, and the bits that a text must give.
#pragma once

#include <gtest/gtest.h>

#include <atomic>
#include <cstddef>
#include <cstring>
#include <memory>
#include <numeric>
#include <random>
#include <span>
#include <string>
#include <vector>

#include "llama.h"
#include "llama/files/model_file.h"
#include "llama/model/llama_model.h"
#include "testing/chi_square.h"
#include "testing/tiny_dir.h"
#include "testing/tiny_gguf.h"

namespace outrider::testing {

using Row = std::vector<float>;  // [n_vocab] logits

inline TokenTree chain(std::span<const Token> tokens) {
  TokenTree tree(tokens.front());
  for (std::size_t i = 1; i < tokens.size(); ++i) {
    tree.add(static_cast<NodeId>(i) - 1, tokens[i], 1.0f, 1);
  }
  return tree;
}

// The first `n` nodes of a chain.
inline std::vector<NodeId> path(std::int32_t n) {
  std::vector<NodeId> nodes(static_cast<std::size_t>(n));
  std::iota(nodes.begin(), nodes.end(), 0);
  return nodes;
}

inline void expect_bits(const Row& got, const Row& wanted) {
  ASSERT_EQ(got.size(), wanted.size());
  EXPECT_EQ(std::memcmp(got.data(), wanted.data(), got.size() * sizeof(float)), 0);
}

// Evaluates `token` alone and keeps it; its row, or an empty one.
inline Row step(LanguageModel& model, SeqId seq, Token token) {
  const TokenTree root(token);
  const EvalItem item{.seq = seq, .prefix = {}, .tree = &root};
  const Status status = model.evaluate({&item, 1});
  EXPECT_TRUE(status.ok()) << status.message();
  if (!status.ok()) return {};
  const std::span<const float> logits = model.logits(0, kRoot);
  const Row row(logits.begin(), logits.end());
  const std::vector<NodeId> root_only = path(1);
  EXPECT_TRUE(model.commit(seq, root_only).ok());
  return row;
}

// Evaluates and keeps `text`, in one batch.
inline void prefill(LanguageModel& model, SeqId seq, std::span<const Token> text) {
  const EvalItem item{.seq = seq, .prefix = text};
  const Status status = model.evaluate({&item, 1});
  ASSERT_TRUE(status.ok()) << status.message();
  ASSERT_TRUE(model.commit(seq, {}).ok());
}

// Raises a model's flag of interruption when llama.cpp asks for the nth time whether to go on: the
// same place on every machine. It asks behind each node of its graphs.
class InterruptAt {
 public:
  // Both must outlive the model's next evaluations.
  InterruptAt(llama::LlamaModel& model, std::atomic<bool>& flag) : flag_(flag) {
    model.set_interrupt(&flag);
    llama_set_abort_callback(
        model.handle(), [](void* self) { return static_cast<InterruptAt*>(self)->is_asked(); },
        this);
  }
  InterruptAt(const InterruptAt&) = delete;
  InterruptAt& operator=(const InterruptAt&) = delete;

  // From now on at the nth question; 0: the flag is up at once; -1: never.
  void set(std::int64_t nth) {
    asked_ = 0;
    nth_ = nth;
    flag_ = nth == 0;
  }
  std::int64_t asked() const { return asked_; }  // since set()

 private:
  bool is_asked() {
    if (++asked_ == nth_) flag_ = true;
    return flag_;
  }

  std::atomic<bool>& flag_;
  std::atomic<std::int64_t> asked_{0};
  std::int64_t nth_ = -1;
};

// Puts `n` tokens into llama.cpp behind the model's back, from position `from` on, under `id`.
inline void decode_behind(llama::LlamaModel& model, llama_seq_id id, Pos from, std::int32_t n) {
  llama_batch batch = llama_batch_init(n, /*embd=*/0, /*n_seq_max=*/1);
  batch.n_tokens = n;
  for (std::int32_t i = 0; i < n; ++i) {
    batch.token[i] = 5;
    batch.pos[i] = from + i;
    batch.n_seq_id[i] = 1;
    batch.seq_id[i][0] = id;
    batch.logits[i] = 0;
  }
  EXPECT_EQ(llama_decode(model.handle(), batch), 0);
  llama_batch_free(batch);
}

class TinyModelTest : public ::testing::Test {
 protected:
  void SetUp() override { load({}); }

  void load(const TinyModelOptions& options, bool extra_bufts = false) {
    const std::string path = dir_.file("tiny.gguf");
    ASSERT_TRUE(write_tiny_gguf(path, options).ok());
    load_file(path, extra_bufts);
  }

  void load_file(const std::string& path, bool extra_bufts = false) {
    Result<std::shared_ptr<llama::ModelFile>> file =
        llama::ModelFile::load(path, /*n_gpu_layers=*/0, extra_bufts, LoadHooks{});
    ASSERT_TRUE(file.ok()) << file.status().message();
    file_ = *file;
    reference_.reset();
  }

  const llama::ModelFile& file() const { return *file_; }

  // One thread, unless said otherwise: the tiny model is too small for more.
  Result<std::unique_ptr<llama::LlamaModel>> create(ModelOptions options,
                                                    const llama::ContextSettings& settings = {}) {
    if (options.n_threads == 0) options.n_threads = 1;
    return llama::LlamaModel::create(file_, options, settings);
  }

  std::unique_ptr<llama::LlamaModel> make(const ModelOptions& options,
                                          const llama::ContextSettings& settings = {}) {
    Result<std::unique_ptr<llama::LlamaModel>> model = create(options, settings);
    EXPECT_TRUE(model.ok()) << model.status().message();
    return model.ok() ? std::move(*model) : nullptr;
  }

  // Plain tokens, seeded.
  std::vector<Token> random_text(std::size_t n, unsigned seed) const {
    std::mt19937 random(seed);
    std::vector<Token> text(n);
    const unsigned n_plain = static_cast<unsigned>(file_->facts().n_vocab) - 10;
    for (Token& token : text) token = static_cast<Token>(5 + random() % n_plain);
    return text;
  }

  // The rows of a text that is evaluated in single steps in an empty cache.
  std::vector<Row> fresh_rows(std::span<const Token> text,
                              const llama::ContextSettings& settings = {}) {
    if (reference_ == nullptr || reference_->capabilities().n_ctx < static_cast<Pos>(text.size())) {
      reference_ =
          make({.n_ctx = std::max<std::int32_t>(1024, static_cast<Pos>(text.size()))}, settings);
    }
    EXPECT_TRUE(reference_->truncate(0, 0).ok());
    std::vector<Row> rows;
    for (const Token token : text) rows.push_back(step(*reference_, 0, token));
    return rows;
  }

  static unsigned test_seed() { return static_cast<unsigned>(testing::test_seed(1234)); }

 private:
  TempDir dir_;
  std::shared_ptr<llama::ModelFile> file_;
  std::unique_ptr<llama::LlamaModel> reference_;
};

}  // namespace outrider::testing
