// What tests of the draft model share: one sequence's side of the conversation, and what a model
// says.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <utility>
#include <vector>

#include "dist/gumbel.h"
#include "draft/model/draft_model.h"
#include "testing/fake_model.h"

namespace outrider::testing::draft_model {

inline constexpr std::int32_t kVocab = 10;

inline Capabilities capabilities(std::int32_t n_sequences = 2, std::int32_t n_ctx = 100) {
  return {.n_vocab = kVocab,
          .n_ctx = n_ctx,
          .n_batch = 16,
          .n_sequences = n_sequences,
          .rollback = Rollback::kAny,
          .max_leaves = 1,
          .max_width = 16};
}

// One sequence's side of the conversation with a drafter.
struct Talk {
  explicit Talk(std::vector<Token> prompt, SeqId id = 0) : seq(id), text(std::move(prompt)) {}

  DraftRequest request(std::int32_t max_nodes) {
    tree = std::make_unique<TokenTree>(text.back());
    return {.seq = seq,
            .text = text,
            .seed = 5,
            .sampler = &sampler,
            .max_nodes = max_nodes,
            .mask = 1,
            .tree = tree.get()};
  }
  std::vector<Token> drafted() const {
    std::vector<Token> tokens;
    for (NodeId id = 1; id < tree->size(); ++id) tokens.push_back(tree->token(id));
    return tokens;
  }

  SeqId seq;
  std::vector<Token> text;
  FakeSampler sampler{1.0f};
  std::unique_ptr<TokenTree> tree;
};

inline std::vector<Token> expected(const RowFunction& rows, std::vector<Token> text,
                                   std::size_t n) {
  std::vector<Token> said;
  while (said.size() < n) {
    const std::vector<float> row = rows(text);
    said.push_back(perturbed_argmax({.logits = row}, noise_key(5, text.size())));
    text.push_back(said.back());
  }
  return said;
}

// A drafter that has guessed four tokens behind a text.
struct FourGuessed {
  FourGuessed() {
    EXPECT_TRUE(drafter.begin(0, 0).ok());
    DraftRequest request[] = {talk.request(4)};
    EXPECT_TRUE(drafter.draft(request).ok());
    drafted = talk.drafted();
  }

  RowFunction rows = random_rows(kVocab, 2, 2.0f);
  FakeModel model{capabilities(), rows};
  DraftModelDrafter drafter{model, kVocab, {}};
  Talk talk{{1, 2, 3}};
  std::vector<Token> drafted;
};

}  // namespace outrider::testing::draft_model
