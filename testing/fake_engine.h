// What the engine's tests share: requests on the hand-written model, a reference of plain
// decoding, and drafters that are right, wrong, or fail.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/random.h"
#include "dist/gumbel.h"
#include "draft/model/draft_model.h"
#include "engine/engine.h"
#include "testing/fake_drafter.h"
#include "testing/fake_model.h"

namespace outrider::testing {

inline constexpr std::int32_t kVocab = 12;

inline Capabilities capabilities(std::int32_t n_sequences = 3, std::int32_t n_ctx = 64) {
  return {.n_vocab = kVocab,
          .n_ctx = n_ctx,
          .n_batch = 24,
          .n_sequences = n_sequences,
          .rollback = Rollback::kAny,
          .max_leaves = 8,
          .max_width = 16};
}

// An engine on the hand-written model, whose texts follow from `model_seed`.
struct EngineOnFake {
  explicit EngineOnFake(std::uint64_t model_seed, std::vector<Drafter*> drafters = {},
                        const Capabilities& caps = capabilities())
      : rows(random_rows(kVocab, model_seed, 3.0f)),
        target(caps, rows),
        engine(target, vocabulary, std::move(drafters)) {}

  RowFunction rows;
  FakeModel target;
  FakeVocabulary vocabulary{kVocab};
  Engine engine;
};

inline Request request(std::vector<Token> prompt, float temperature, std::uint64_t seed,
                       std::int32_t max_tokens, std::int32_t width) {
  Request r;
  r.prompt = std::move(prompt);
  r.sampler = std::make_unique<FakeSampler>(temperature);
  r.seed = seed;
  r.max_tokens = max_tokens;
  r.width = width;
  return r;
}

// Runs until nothing is running; the engine's integrity, and a drafter's that can check it, is
// checked after every step.
template <typename Checked = DraftModelDrafter>
void run_all(Engine& engine, const Checked* drafter = nullptr) {
  for (int i = 0; engine.busy(); ++i) {
    ASSERT_LT(i, 2000) << "no progress";
    engine.step();
    ASSERT_EQ(engine.check_integrity(), "");
    if (drafter == nullptr) continue;
    ASSERT_EQ(drafter->check_integrity(), "");
  }
}

inline Completion complete(LanguageModel& target, const Vocabulary& vocabulary,
                           std::vector<Drafter*> drafters, Request r) {
  Engine engine(target, vocabulary, std::move(drafters));
  const Result<RequestId> id = engine.add(std::move(r));
  EXPECT_TRUE(id.ok()) << id.status().message();
  run_all(engine);
  Result<Completion> completion = engine.take(*id);
  EXPECT_TRUE(completion.ok());
  return std::move(completion).value();
}

// Steps by width and guesses by depth are the steps and the guesses. Fillers count as drafted, and
// have no depth.
inline void expect_shape_adds_up(const SpeculationStats& s) {
  std::int64_t steps = 0;
  for (const std::int64_t n : s.steps_by_width) steps += n;
  EXPECT_EQ(steps, s.steps);
  DepthStats all;
  std::int64_t before = s.steps;
  for (const DepthStats& depth : s.by_depth) {
    EXPECT_LE(depth.accepted, depth.tested);
    EXPECT_LE(depth.tested, depth.drafted);
    EXPECT_LE(depth.tested, before) << "tested behind what was accepted only";
    before = depth.accepted;
    all.drafted += depth.drafted;
    all.accepted += depth.accepted;
  }
  EXPECT_LE(all.accepted, s.accepted);
  EXPECT_LE(s.accepted - all.accepted, s.drafted - all.drafted) << "fillers";
}

// Plain decoding by the definition: no engine, no trees, one row at a time.
inline std::vector<Token> reference(const RowFunction& rows, std::vector<Token> text,
                                    float temperature, std::uint64_t seed, std::size_t n,
                                    Token end = kNoToken) {
  const std::size_t prompt = text.size();
  FakeSampler sampler(temperature);
  while (text.size() < prompt + n) {
    const std::vector<float> row = rows(text);
    const std::uint64_t position = text.size();
    text.push_back(perturbed_argmax(sampler.apply(row), noise_key(seed, position)));
    if (text.back() == end) break;
  }
  return {text.begin() + static_cast<std::ptrdiff_t>(prompt), text.end()};
}

// Drafters of every temper. Each must leave the text as it is.
inline std::vector<std::pair<std::string, Script>> scripts(const std::vector<Token>& whole) {
  return {
      {"right", prophet(whole, 100, 0, kVocab)},
      {"wrong", prophet(whole, 100, 1, kVocab)},
      {"half right", prophet(whole, 100, 3, kVocab)},
      {"empty", [](DraftRequest&) { return Status(); }},
      {"random tree",
       [](DraftRequest& r) {
         for (std::uint32_t i = 0; i < 20; ++i) {
           const NoiseKey key = noise_key(r.text.size(), i);
           r.tree->add(static_cast<NodeId>(noise_bits(key, 0) % r.tree->size()),
                       static_cast<Token>(noise_bits(key, 1) % kVocab),
                       static_cast<float>(noise_uniform(key, 2)), r.mask);
         }
         return Status();
       }},
      {"too long",
       [](DraftRequest& r) {
         add_chain(r, std::vector<Token>(200, 3));
         return Status();
       }},
      {"out of range",
       [](DraftRequest& r) {
         add_chain(r, std::vector<Token>{2, 1 << 30, -7, kVocab, 3});
         r.tree->add(kRoot, -1, 0.9f, r.mask);
         return Status();
       }},
      {"failing", [](DraftRequest&) { return internal_error("on purpose"); }},
  };
}

}  // namespace outrider::testing
