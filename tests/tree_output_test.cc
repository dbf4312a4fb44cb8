// Trees through the whole engine on a real file: whatever branches are drafted, and with several
// requests in one cache, each text is what the request alone gives with plain decoding.
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "base/random.h"
#include "llama/sampling/sampler_chain.h"
#include "testing/chi_square.h"
#include "testing/fake_drafter.h"
#include "testing/tiny_dir.h"
#include "testing/tiny_gguf.h"
#include "tests/pair.h"
#include "tests/step_widths.h"

namespace outrider {
namespace {

using testing::OpenModel;
using testing::RunOptions;
using testing::ScriptedDrafter;

constexpr std::int32_t kTokens = 60;

// Trees of up to `max_nodes` nodes at random places; now and then the right token is among the
// children, often not as the first. `wholes`: the texts as they will be; found by their beginning.
testing::Script random_trees(std::vector<std::vector<Token>> wholes, std::int32_t n_vocab) {
  return [wholes = std::move(wholes), n_vocab](DraftRequest& r) {
    const std::vector<Token>* whole = nullptr;
    for (const std::vector<Token>& w : wholes) {
      const bool fits = w.size() >= r.text.size();
      if (fits && std::equal(r.text.begin(), r.text.end(), w.begin())) whole = &w;
    }
    NodeId right = kRoot;  // the last node of the right path
    for (std::uint32_t i = 0; r.tree->size() <= r.max_nodes; ++i) {
      const NoiseKey key = noise_key(r.text.size() * 31 + r.text.front(), i);
      const std::size_t next = r.text.size() + static_cast<std::size_t>(r.tree->node(right).depth);
      const bool hit = noise_bits(key, 0) % 3 == 0 && whole != nullptr && next < whole->size();
      if (hit) {
        right = r.tree->add(right, (*whole)[next], 1.0f, r.mask);
        continue;
      }
      const NodeId parent =
          static_cast<NodeId>(noise_bits(key, 1) % static_cast<std::uint32_t>(r.tree->size()));
      const Token token =
          static_cast<Token>(5 + noise_bits(key, 2) % static_cast<std::uint32_t>(n_vocab - 10));
      r.tree->add(parent, token, 1.0f, r.mask);
    }
    return Status();
  };
}

TEST(TreeOutput, RandomTreesOfSeveralRequestsGiveThePlainTexts) {
  const std::uint64_t seed = testing::test_seed(20261121);
  const testing::TempDir dir;
  // Six layers, so that cells out of order would show (llama_tree_test.cc).
  ASSERT_TRUE(
      testing::write_tiny_gguf(dir.file("target.gguf"), {.n_layer = 6, .n_head = 4, .n_head_kv = 2})
          .ok());
  ModelOptions model;
  model.n_ctx = 200;
  model.n_batch = 64;
  model.n_threads = 1;
  OpenModel alone(dir.file("target.gguf"), model, {}, /*extra_bufts=*/false);
  model.n_sequences = 3;
  OpenModel shared(dir.file("target.gguf"), model, {}, /*extra_bufts=*/false);
  const Vocabulary& vocabulary = alone.file->text_vocabulary();
  // Each width at temperature 0, then each at 1.
  const std::vector<std::int32_t> widths = testing::every_width();
  const std::vector<std::vector<Token>> prompts =
      testing::seeded_prompts(vocabulary, seed, 2 * widths.size(), 60);

  std::vector<std::vector<Token>> plain;
  std::vector<std::vector<Token>> wholes;
  std::vector<RunOptions> options(prompts.size());
  for (std::size_t i = 0; i < prompts.size(); ++i) {
    options[i].prompt = prompts[i];
    options[i].seed = 70 + i;
    options[i].max_tokens = kTokens - static_cast<std::int32_t>(i % 12) * 3;  // they end one by one
    options[i].width = widths[i % widths.size()];
    options[i].sampling.temperature = i < widths.size() ? 0.0f : 1.0f;
    plain.push_back(testing::run_checked(*alone.model, vocabulary, {}, options[i], nullptr).tokens);
    wholes.push_back(prompts[i]);
    wholes.back().insert(wholes.back().end(), plain.back().begin(), plain.back().end());
  }

  ScriptedDrafter drafter(random_trees(wholes, vocabulary.size()));
  Engine engine(*shared.model, vocabulary, {&drafter});
  std::vector<RequestId> ids(prompts.size());
  std::size_t started = 0;
  std::int64_t accepted = 0;
  testing::SeenWidths seen;
  while (engine.busy() || started < prompts.size()) {
    while (started < prompts.size()) {
      Request request;
      request.prompt = options[started].prompt;
      request.sampler = llama::make_sampler(options[started].sampling, vocabulary.size()).value();
      request.seed = options[started].seed;
      request.max_tokens = options[started].max_tokens;
      request.width = options[started].width;
      const Result<RequestId> id = engine.add(std::move(request));
      if (!id.ok()) break;  // all sequences are taken
      ids[started++] = *id;
    }
    engine.step();
    ASSERT_EQ(engine.check_integrity(), "");
    ASSERT_EQ(shared.model->check_integrity(), "");
  }
  for (std::size_t i = 0; i < prompts.size(); ++i) {
    const Result<Completion> got = engine.take(ids[i]);
    ASSERT_TRUE(got.ok());
    EXPECT_EQ(got->tokens, plain[i]) << "prompt " << i;
    EXPECT_TRUE(got->speculation.enabled || options[i].width == 1) << got->speculation.reason;
    if (i < widths.size()) seen.add(options[i].width, got->speculation);
    accepted += got->speculation.accepted;
  }
  EXPECT_GT(accepted, 50);
  EXPECT_EQ(seen.missing(), "");
}

}  // namespace
}  // namespace outrider
