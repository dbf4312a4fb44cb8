// A world so small that the chance of every text is known: four tokens, and texts of three.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <functional>
#include <utility>
#include <vector>

#include "testing/fake_engine.h"

namespace outrider::testing {

inline constexpr std::int32_t kSmall = 4;
inline constexpr std::size_t kLength = 3;

inline Capabilities small_capabilities() {
  return {.n_vocab = kSmall,
          .n_ctx = 16,
          .n_batch = 32,
          .n_sequences = 8,
          .rollback = Rollback::kAny,
          .max_leaves = 8,
          .max_width = 16};
}

// Where it stands among all texts, as the two below count them.
inline std::size_t place_of_text(const std::vector<Token>& t) {
  return static_cast<std::size_t>((t[0] * kSmall + t[1]) * kSmall + t[2]);
}

// The chance of each text, by the definition. `chain`: what a chain makes of a row behind a text
// that ends with this token.
inline std::vector<double> chances_of_texts(
    const RowFunction& rows, const std::vector<Token>& prompt,
    const std::function<void(std::vector<float>&, Token)>& chain = {}) {
  std::vector<double> chances;
  for (Token a = 0; a < kSmall; ++a) {
    for (Token b = 0; b < kSmall; ++b) {
      for (Token c = 0; c < kSmall; ++c) {
        std::vector<Token> text = prompt;
        double chance = 1.0;
        for (const Token t : {a, b, c}) {
          std::vector<float> row = rows(text);
          if (chain) chain(row, text.back());
          chance *= probabilities({.logits = row})[static_cast<std::size_t>(t)];
          text.push_back(t);
        }
        chances.push_back(chance);
      }
    }
  }
  return chances;
}

// How often each text was said, of `n` requests, eight at a time. Adds what was accepted.
inline std::vector<std::int64_t> counts_of_texts(Engine& engine, std::uint64_t n,
                                                 const std::function<Request(std::uint64_t)>& nth,
                                                 std::int64_t* accepted) {
  std::vector<std::int64_t> counts(kSmall * kSmall * kSmall, 0);
  std::uint64_t begun = 0;
  std::vector<RequestId> running;
  while (begun < n || !running.empty()) {
    while (begun < n && running.size() < 8) {
      const Result<RequestId> id = engine.add(nth(begun++));
      EXPECT_TRUE(id.ok()) << id.status().message();
      if (!id.ok()) return counts;
      running.push_back(*id);
    }
    engine.step();
    std::erase_if(running, [&](RequestId id) {
      const Result<Completion> done = engine.take(id);
      if (!done.ok()) return false;
      EXPECT_EQ(done->tokens.size(), kLength);
      *accepted += done->speculation.accepted;
      ++counts[place_of_text(done->tokens)];
      return true;
    });
  }
  return counts;
}

}  // namespace outrider::testing
