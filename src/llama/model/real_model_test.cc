// The adapter on a real model: SmolLM2-135M-Instruct requantised to Q4_0, from `./dev models`.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "llama/model/llama_model.h"
#include "llama/vocabulary/vocab_match.h"
#include "llama/vocabulary/vocabulary.h"
#include "testing/llama_trees.h"

namespace outrider::llama {
namespace {

class RealModelAdapter : public ::testing::Test {
 protected:
  void SetUp() override {
    const char* folder = std::getenv("OUTRIDER_MODELS_DIR");
    if (folder == nullptr) GTEST_SKIP() << "OUTRIDER_MODELS_DIR does not name the models";
    folder_ = folder;
  }

  std::shared_ptr<ModelFile> load(const std::string& name) {
    Result<std::shared_ptr<ModelFile>> file =
        ModelFile::load(folder_ / name, 0, /*extra_bufts=*/false, LoadHooks{});
    EXPECT_TRUE(file.ok()) << file.status().message() << ": run ./dev models";
    return file.ok() ? *file : nullptr;
  }

  std::filesystem::path folder_;
};

std::unique_ptr<LlamaModel> make(const std::shared_ptr<ModelFile>& file, std::int32_t n_sequences) {
  return LlamaModel::create(file, {.n_ctx = 640, .n_sequences = n_sequences, .n_threads = 1}, {})
      .value();
}

TokenTree chain(const Token* tokens, std::size_t n) {
  TokenTree tree(tokens[0]);
  for (std::size_t i = 1; i < n; ++i) tree.add(static_cast<NodeId>(i) - 1, tokens[i], 1.0f, 1);
  return tree;
}

// Three texts, advanced by ragged widths with rejected tails, in one cache. What is kept is always
// the text itself, so that every row can be compared with single steps. Returns the rows that were
// not bit for bit the same.
int advance_together(LlamaModel& model, LlamaModel& single,
                     const std::array<std::vector<Token>, 3>& texts, std::size_t n) {
  std::mt19937 random(3);
  std::array<std::vector<std::vector<float>>, 3> rows;
  while (std::any_of(rows.begin(), rows.end(), [&](const auto& r) { return r.size() < n; })) {
    std::vector<TokenTree> trees;
    std::vector<EvalItem> items;
    std::vector<std::size_t> kept;
    trees.reserve(3);
    for (SeqId seq = 0; seq < 3; ++seq) {
      const std::size_t i = static_cast<std::size_t>(seq);
      const std::size_t at = rows[i].size();
      if (at >= n || random() % 5 == 0) continue;
      const std::size_t right = std::min<std::size_t>(1 + random() % 4, n - at);
      std::vector<Token> tokens(texts[i].begin() + static_cast<std::ptrdiff_t>(at),
                                texts[i].begin() + static_cast<std::ptrdiff_t>(at + right));
      for (std::size_t wrong = random() % 4; wrong > 0; --wrong) tokens.push_back(100);
      kept.push_back(right);
      items.push_back({.seq = seq,
                       .prefix = {},
                       .tree = &trees.emplace_back(chain(tokens.data(), tokens.size()))});
    }
    if (items.empty()) continue;
    EXPECT_TRUE(model.evaluate(items).ok());
    for (std::size_t k = 0; k < items.size(); ++k) {
      std::vector<NodeId> path;
      for (NodeId node = 0; node < static_cast<NodeId>(kept[k]); ++node) {
        const std::span<const float> row = model.logits(k, node);
        rows[static_cast<std::size_t>(items[k].seq)].emplace_back(row.begin(), row.end());
        path.push_back(node);
      }
      EXPECT_TRUE(model.commit(items[k].seq, path).ok());
    }
    EXPECT_EQ(model.check_integrity(), "");
  }
  int different = 0;
  for (std::size_t i = 0; i < 3; ++i) {
    EXPECT_TRUE(single.truncate(0, 0).ok());
    for (std::size_t at = 0; at < n; ++at) {
      const TokenTree root(texts[i][at]);
      const EvalItem item{.seq = 0, .prefix = {}, .tree = &root};
      EXPECT_TRUE(single.evaluate({&item, 1}).ok());
      different += std::memcmp(single.logits(0, kRoot).data(), rows[i][at].data(),
                               rows[i][at].size() * sizeof(float)) != 0;
      const std::array<NodeId, 1> keep{kRoot};
      EXPECT_TRUE(single.commit(0, keep).ok());
    }
  }
  return different;
}

TEST_F(RealModelAdapter, ThreeRaggedSequencesWithRejectionsGiveTheBitsOfSingleSteps) {
  const std::shared_ptr<ModelFile> file = load("smollm2-q4_0.gguf");
  ASSERT_NE(file, nullptr);
  const char* const subjects[] = {"the sea", "a clock", "three prime numbers"};
  std::array<std::vector<Token>, 3> texts;
  for (std::size_t i = 0; i < 3; ++i) {
    std::string text;
    for (int line = 0; line < 40; ++line) {
      text += "Line " + std::to_string(line) + " is about " + subjects[i] + ".\n";
    }
    texts[i] = file->vocabulary().tokenize(text, true, false).value();
    ASSERT_GE(texts[i].size(), 200u);
  }
  const std::unique_ptr<LlamaModel> model = make(file, 3);
  const std::unique_ptr<LlamaModel> single = make(file, 1);
  EXPECT_EQ(advance_together(*model, *single, texts, 120), 0);
  EXPECT_GT(model->ledger().parked() + model->compactions(), 0);
}

// Trees of random tokens, by `model`, against single steps.
testing::TreeWorld tree_world(const std::shared_ptr<ModelFile>& file, LlamaModel& model,
                              int check_all) {
  std::vector<std::unique_ptr<LlamaModel>> singles;
  for (std::int32_t i = 0; i < model.capabilities().n_sequences; ++i) {
    singles.push_back(LlamaModel::create(file, {.n_ctx = 1100, .n_threads = 1}, {}).value());
  }
  return testing::TreeWorld(
      model, std::move(singles),
      {.seed = 11, .first_token = 100, .n_tokens = 40000, .check_all = check_all});
}

std::unique_ptr<LlamaModel> make_for_trees(const std::shared_ptr<ModelFile>& file,
                                           std::int32_t n_sequences, bool keep_cell_order) {
  return LlamaModel::create(file, {.n_ctx = 1100, .n_sequences = n_sequences, .n_threads = 1},
                            {.keep_cell_order = keep_cell_order})
      .value();
}

TEST_F(RealModelAdapter, EveryTreeShapeGivesTheBitsOfSingleStepsOver1000Positions) {
  const std::shared_ptr<ModelFile> file = load("smollm2-q4_0.gguf");
  ASSERT_NE(file, nullptr);
  const std::unique_ptr<LlamaModel> model = make_for_trees(file, 1, true);
  testing::TreeWorld world = tree_world(file, *model, /*check_all=*/4);
  std::vector<std::pair<testing::TreeShape, NodeId>> cases;  // shapes and which node is kept
  for (int n = 1; n <= 4; ++n) {
    for (const testing::TreeShape& shape : testing::tree_shapes(n)) {
      for (NodeId end = kNoNode; end < n; ++end) cases.emplace_back(shape, end);
    }
  }
  ASSERT_EQ(cases.size(), 43u);
  for (std::size_t i = 0; world.length(0) < 1000 && !HasFatalFailure(); ++i) {
    const std::pair<testing::TreeShape, NodeId>& c = cases[i % cases.size()];
    world.step({{.seq = 0, .shape = c.first, .end = c.second}});
  }
  EXPECT_GT(world.outcome().rows, 1000);
  EXPECT_EQ(world.outcome().identical, world.outcome().rows) << world.outcome().first_difference;
  EXPECT_GT(world.outcome().most_parked, 0);
}

TEST_F(RealModelAdapter, RandomTreesUpTo64NodesGiveTheBitsOfSingleSteps) {
  const std::shared_ptr<ModelFile> file = load("smollm2-q4_0.gguf");
  ASSERT_NE(file, nullptr);
  const std::unique_ptr<LlamaModel> model = make_for_trees(file, 1, true);
  testing::TreeWorld world = tree_world(file, *model, /*check_all=*/0);
  while (world.length(0) < 300 && !HasFatalFailure()) {
    const int n = 1 + world.below(64);
    world.step({{.seq = 0,
                 .shape = testing::random_shape(world.random(), n, 63),
                 .n_pieces = 1 + world.below(3)}});
  }
  EXPECT_EQ(world.outcome().identical, world.outcome().rows) << world.outcome().first_difference;
}

// Three sequences that come and go with trees of up to 8 nodes.
testing::TreeWorld::Outcome trees_together(const std::shared_ptr<ModelFile>& file,
                                           bool keep_cell_order, int n_steps) {
  const std::unique_ptr<LlamaModel> model = make_for_trees(file, 3, keep_cell_order);
  testing::TreeWorld world = tree_world(file, *model, /*check_all=*/0);
  for (int step = 0; step < n_steps; ++step) {
    std::vector<testing::TreeWorld::Item> items;
    for (SeqId seq = 0; seq < 3; ++seq) {
      if (world.below(4) == 0) continue;
      items.push_back({.seq = seq,
                       .shape = testing::random_shape(world.random(), 1 + world.below(8), 6),
                       .n_prefix = world.below(8) == 0 ? world.below(60) : 0,
                       .n_pieces = keep_cell_order ? 1 + world.below(3) : 1});
      if (world.below(30) == 0 && world.length(seq) > 0)
        world.cut(seq, world.below(2) * 20 % world.length(seq));
    }
    if (!items.empty()) world.step(items);
  }
  return world.outcome();
}

TEST_F(RealModelAdapter, ThreeSequencesOfTreesComingAndGoingGiveTheBitsOfSingleSteps) {
  const std::shared_ptr<ModelFile> file = load("smollm2-q4_0.gguf");
  ASSERT_NE(file, nullptr);
  const testing::TreeWorld::Outcome outcome = trees_together(file, true, 150);
  EXPECT_GT(outcome.rows, 500);
  EXPECT_GT(outcome.most_parked, 0);
  EXPECT_EQ(outcome.identical, outcome.rows) << outcome.first_difference;
}

// The negative control.
TEST_F(RealModelAdapter, CellsFreedOutOfOrderChangeTheBitsOfTrees) {
  const std::shared_ptr<ModelFile> file = load("smollm2-q4_0.gguf");
  ASSERT_NE(file, nullptr);
  const testing::TreeWorld::Outcome outcome = trees_together(file, false, 40);
  EXPECT_GT(outcome.rows, 100);
  EXPECT_LT(outcome.identical, outcome.rows / 2) << "of " << outcome.rows;
}

TEST_F(RealModelAdapter, ARequantisedDraftHasTheTargetsVocabulary) {
  const std::shared_ptr<ModelFile> target = load("smollm2-q4_0.gguf");
  const std::shared_ptr<ModelFile> draft = load("draft-q3_k_s.gguf");
  ASSERT_TRUE(target != nullptr && draft != nullptr);
  const VocabularyMatch match = match_vocabularies(target->vocabulary(), draft->vocabulary());
  EXPECT_EQ(match.kind, VocabularyMatch::Kind::kIdentical) << match.message;
  EXPECT_EQ(target->vocabulary().size(), 49152);
}

TEST_F(RealModelAdapter, TextComesBackFromItsTokens) {
  const std::shared_ptr<ModelFile> file = load("smollm2-q4_0.gguf");
  ASSERT_NE(file, nullptr);
  for (const std::string& text : {std::string("Hello, world!\n\n  def f(x):\n\treturn x**2"),
                                  std::string("na\xC3\xAFve \xE2\x82\xAC 5"),
                                  std::string("\xE4\xBD\xA0\xE5\xA5\xBD\xF0\x9F\x98\x80")}) {
    const std::vector<Token> tokens = file->vocabulary().tokenize(text, false, false).value();
    EXPECT_EQ(file->vocabulary().detokenize(tokens).value(), text);
  }
  const std::string prompt =
      file->vocabulary().chat_text({{.role = "user", .content = "Hi"}}).value();
  EXPECT_NE(prompt.find("<|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\n"),
            std::string::npos)
      << prompt;
}

}  // namespace
}  // namespace outrider::llama
