// A target and drafters on real GGUFs, run through the engine: what the integration tests share.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "draft/model/draft_model.h"
#include "engine/engine.h"
#include "llama/files/model_file.h"
#include "llama/model/llama_model.h"
#include "testing/sanitized.h"
#include "testing/tiny_dir.h"

namespace outrider::testing {

// One model with a context of its own. Aborts the test when it cannot be opened.
struct OpenModel {
  OpenModel(const std::string& path, const ModelOptions& options,
            const llama::ContextSettings& settings, bool extra_bufts);

  std::shared_ptr<llama::ModelFile> file;
  std::unique_ptr<llama::LlamaModel> model;
};

// A small target with Q8_0 weights that seldom ends a text by itself, for drafters that need no
// model. Aborts the test when it cannot be made.
struct TinyTarget {
  TinyTarget();

  TempDir dir;
  OpenModel open;
};

// How many prompts it is tried with.
inline constexpr std::size_t kTinyPrompts = testing::kSanitized ? 4 : 30;

// What one run is asked for.
struct RunOptions {
  std::vector<Token> prompt;
  SamplingOptions sampling;
  std::uint64_t seed = 1;
  std::int32_t max_tokens = 24;
  std::int32_t width = 1;
  std::vector<std::string> stop;
  AcceptanceRule rule = AcceptanceRule::kCoupled;
  DraftShape shape;
  std::int32_t logprobs = -1;
};

Request request_of(const RunOptions& options, const Vocabulary& vocabulary);

// Runs one request to its end. After every step the engine's integrity, the target's and (when
// given) the draft model's are asserted; a failure is a GoogleTest failure with the reason.
Completion run_checked(LanguageModel& target, const Vocabulary& vocabulary,
                       std::vector<Drafter*> drafters, const RunOptions& options,
                       const std::function<std::string()>& check_models);

// Seeded prompts: `count` of them, 1 to `longest` tokens, plain tokens only.
std::vector<std::vector<Token>> seeded_prompts(const Vocabulary& vocabulary, std::uint64_t seed,
                                               std::size_t count, std::size_t longest);

// A seeded prompt of just `n` such tokens.
std::vector<Token> seeded_prompt(const Vocabulary& vocabulary, std::uint64_t seed, std::size_t n);

}  // namespace outrider::testing
