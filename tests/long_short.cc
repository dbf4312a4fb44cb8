#include "tests/long_short.h"

#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <optional>
#include <vector>

#include "engine/engine.h"
#include "testing/sanitized.h"
#include "tests/pair.h"

#if defined(__GLIBC__)
#include <malloc.h>
#endif

namespace outrider::testing {
namespace {

constexpr int kRounds = kSanitized ? 20 : 100;
constexpr std::int32_t kTokens = 10;
constexpr std::size_t kSeeds = 3;

// Bytes that were allocated and not freed. Nothing where that is not known: with other C libraries,
// and under sanitizers, which keep what is freed for a while, and find what is never freed.
std::optional<std::uint64_t> allocated_bytes() {
#if defined(__GLIBC__)
#if __GLIBC_PREREQ(2, 33)
  if (!kSanitized) {
    const struct mallinfo2 info = mallinfo2();
    return std::uint64_t{info.uordblks} + std::uint64_t{info.hblkhd};
  }
#endif
#endif
  return std::nullopt;
}

RunOptions options_of(const std::vector<Token>& prompt, std::size_t seed) {
  RunOptions options;
  options.prompt = prompt;
  options.seed = seed;
  options.max_tokens = kTokens;
  options.width = 4;
  options.sampling.temperature = seed == 0 ? 0.0f : 1.0f;
  options.shape.branches = 2;
  return options;
}

// A prompt, and what plain decoding says behind it with each seed.
struct Text {
  std::vector<Token> prompt;
  std::array<std::vector<Token>, kSeeds> said;
};

std::uint64_t limit_above(std::uint64_t bytes) { return bytes + bytes / 20; }

}  // namespace

void expect_long_and_short(LanguageModel& target, const Vocabulary& vocabulary, Drafter& drafter,
                           const std::function<std::string()>& check_models) {
  const std::vector<Token> whole = seeded_prompt(vocabulary, 21, 120);
  Text long_text{.prompt = whole, .said = {}};
  Text beginning{.prompt = {whole.begin(), whole.begin() + 2}, .said = {}};
  Text other{.prompt = seeded_prompt(vocabulary, 22, 2), .said = {}};
  for (Text* text : {&long_text, &beginning, &other}) {
    for (std::size_t seed = 0; seed < kSeeds; ++seed) {
      RunOptions options = options_of(text->prompt, seed);
      options.width = 1;
      text->said[seed] = run_checked(target, vocabulary, {}, options, check_models).tokens;
      ASSERT_FALSE(text->said[seed].empty());
    }
  }
  ASSERT_TRUE(target.truncate(0, 0).ok());

  Engine engine(target, vocabulary, {&drafter}, {.reuse_prefix = true});
  std::optional<std::uint64_t> after_ten;
  std::int64_t drafted = 0;
  for (int round = 0; round < kRounds; ++round) {
    const std::size_t seed = static_cast<std::size_t>(round) % kSeeds;
    for (const Text* text : {&long_text, round % 2 == 0 ? &beginning : &other}) {
      SCOPED_TRACE(::testing::Message() << "round " << round << ", " << text->prompt.size());
      const RunOptions options = options_of(text->prompt, seed);
      const Result<RequestId> id = engine.add(request_of(options, vocabulary));
      ASSERT_TRUE(id.ok()) << id.status().message();
      while (engine.busy()) {
        engine.step();
        ASSERT_EQ(engine.check_integrity(), "");
        ASSERT_EQ(check_models(), "");
      }
      const Result<Completion> got = engine.take(*id);
      ASSERT_TRUE(got.ok()) << got.status().message();
      ASSERT_EQ(got->error.message(), "");
      ASSERT_EQ(got->tokens, text->said[seed]);
      EXPECT_EQ(got->speculation.reason, "");
      drafted += got->speculation.drafted;
      ASSERT_LE(target.length(0), std::ssize(text->prompt) + kTokens);
    }
    if (round == 9) after_ten = allocated_bytes();
  }
  EXPECT_GT(drafted, kRounds) << "it guessed";
  if (!after_ten) return;
  EXPECT_LE(*allocated_bytes(), limit_above(*after_ten));
  // The control: a tenth more is noticed.
  const std::vector<char> kept(*after_ten / 10);
  EXPECT_GT(*allocated_bytes(), limit_above(*after_ten)) << static_cast<const void*>(kept.data());
}

}  // namespace outrider::testing
