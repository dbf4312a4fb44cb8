// Targets with a trained head, for the engine's tests: the target's hidden states name tokens, and
// the head aborts the test when it is given the state of any other path than the text's. So a head
// with the target's function is right in every guess only if each state is of the right token.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <utility>

#include "draft/model/block_drafter.h"
#include "draft/model/draft_model.h"
#include "engine/engine.h"
#include "testing/fake_block_model.h"
#include "testing/fake_engine.h"

namespace outrider::testing {

inline constexpr std::int32_t kHeadStates = 4;    // tokens a state names: random_rows looks at less
inline constexpr std::size_t kGuessesAtOnce = 5;  // of a DFlash head

inline Capabilities shows_states(std::int32_t n_sequences = 3, std::int32_t n_ctx = 64) {
  Capabilities caps = capabilities(n_sequences, n_ctx);
  caps.n_hidden = kHeadStates;
  caps.can_share = true;
  return caps;
}

// A head that guesses a token at a time. `encodes`: as EAGLE-3 heads do; else as prediction layers.
inline Capabilities chain_head(bool encodes, std::int32_t n_sequences = 3,
                               std::int32_t n_ctx = 64) {
  Capabilities caps = shows_states(n_sequences, n_ctx);
  caps.n_hidden_in = kHeadStates;
  caps.n_encoded = encodes ? kHeadStates : 0;
  return caps;
}

inline HeadOptions chain_head_options(bool encodes, std::size_t window = 512) {
  return {.name = encodes ? "eagle3" : "mtp", .window = window, .reads_first = !encodes};
}

// A target, and a head that has its numbers with noise.
template <bool kEncodes>
struct WithChainHead {
  static std::string name() { return std::string(chain_head_options(kEncodes).name); }

  explicit WithChainHead(float noise, std::size_t window = 512, std::int32_t n_sequences = 3,
                         std::int32_t n_ctx = 64)
      : rows(random_rows(kVocab, 7, 3.0f)),
        target(shows_states(n_sequences, n_ctx), rows),
        head(chain_head(kEncodes, n_sequences, n_ctx), noisy_rows(rows, 9, noise)),
        drafter(head, kVocab, {}, /*learns=*/true, chain_head_options(kEncodes, window)) {}

  RowFunction rows;
  FakeModel target;
  FakeModel head;
  FakeVocabulary vocabulary{kVocab};
  DraftModelDrafter drafter;
};
using WithMtp = WithChainHead<false>;
using WithEagle3 = WithChainHead<true>;

// The same with one that guesses a block. What the target says is decided as many tokens ahead, so
// that a head with its function is right in every guess of a block.
struct WithDflash {
  static std::string name() { return "dflash"; }

  explicit WithDflash(float noise, std::size_t window = 512, std::int32_t n_sequences = 3,
                      std::int32_t n_ctx = 64, float spread = 3.0f)
      : rows(lagged_rows(random_rows(kVocab, 7, spread), kGuessesAtOnce)),
        target(shows_states(n_sequences, n_ctx), rows),
        head({.n_vocab = kVocab,
              .n_ctx = n_ctx,
              .n_batch = 24,
              .n_sequences = n_sequences,
              .n_states = kHeadStates,
              .most_guesses = static_cast<std::int32_t>(kGuessesAtOnce),
              .can_share = true},
             noisy_rows(rows, 9, noise)),
        drafter(head, kVocab, {}, window) {}

  RowFunction rows;
  FakeModel target;
  FakeBlockModel head;
  FakeVocabulary vocabulary{kVocab};
  BlockDrafter drafter;
};

// What gtest calls the tests of a pair.
struct NameOfHead {
  template <typename Pair>
  static std::string GetName(int /*i*/) {  // NOLINT: gtest's name
    return Pair::name();
  }
};

template <typename Pair>
Completion run(Engine& engine, Pair& pair, Request r) {
  const RequestId id = *engine.add(std::move(r));
  run_all(engine, &pair.drafter);
  return *engine.take(id);
}

}  // namespace outrider::testing
