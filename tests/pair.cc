#include "tests/pair.h"

#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>

#include "base/random.h"
#include "llama/sampling/sampler_chain.h"
#include "llama/vocabulary/vocabulary.h"
#include "testing/tiny_pair.h"

namespace outrider::testing {
namespace {

template <typename T>
T or_abort(Result<T> result) {
  if (result.ok()) return std::move(result).value();
  std::fprintf(stderr, "cannot go on: %s\n", result.status().message().c_str());
  std::abort();
}

}  // namespace

OpenModel::OpenModel(const std::string& path, const ModelOptions& options,
                     const llama::ContextSettings& settings, bool extra_bufts)
    : file(or_abort(llama::ModelFile::load(path, options.n_gpu_layers, extra_bufts, {}))),
      model(or_abort(llama::LlamaModel::create(file, options, settings))) {}

namespace {

std::string write_tiny_target(const TempDir& dir) {
  TinyPairOptions pair;
  pair.target.weight_type = WeightType::kQ8_0;
  pair.target.eos_bias = -4.0f;
  const std::string path = dir.file("target.gguf");
  const Status written = write_tiny_pair(path, dir.file("draft.gguf"), pair);
  if (!written.ok()) {
    std::fprintf(stderr, "%s\n", written.message().c_str());
    std::abort();
  }
  return path;
}

ModelOptions tiny_options() {
  ModelOptions options;
  options.n_ctx = 256;
  options.n_batch = 64;
  options.n_threads = 1;
  return options;
}

}  // namespace

TinyTarget::TinyTarget()
    : open(write_tiny_target(dir), tiny_options(), llama::ContextSettings{}, true) {}

Request request_of(const RunOptions& options, const Vocabulary& vocabulary) {
  Request request;
  request.prompt = options.prompt;
  request.sampler = or_abort(llama::make_sampler(
      options.sampling, dynamic_cast<const llama::LlamaVocabulary&>(vocabulary)));
  request.seed = options.seed;
  request.max_tokens = options.max_tokens;
  request.width = options.width;
  request.stop = options.stop;
  request.rule = options.rule;
  request.draft = options.shape;
  request.logprobs = options.logprobs;
  return request;
}

Completion run_checked(LanguageModel& target, const Vocabulary& vocabulary,
                       std::vector<Drafter*> drafters, const RunOptions& options,
                       const std::function<std::string()>& check_models) {
  Engine engine(target, vocabulary, std::move(drafters));
  const RequestId id = or_abort(engine.add(request_of(options, vocabulary)));
  while (engine.busy()) {
    engine.step();
    EXPECT_EQ(engine.check_integrity(), "");
    if (check_models) {
      EXPECT_EQ(check_models(), "");
    }
    if (::testing::Test::HasFailure()) break;
  }
  if (engine.busy()) return {};
  return or_abort(engine.take(id));
}

namespace {

std::vector<Token> plain_tokens(const Vocabulary& vocabulary) {
  std::vector<Token> plain;
  for (Token t = 0; t < vocabulary.size(); ++t) {
    const std::string_view piece = vocabulary.piece(t);
    if (!piece.empty() && piece[0] >= ' ' && piece[0] <= '~') plain.push_back(t);
  }
  return plain;
}

std::vector<Token> random_prompt(const std::vector<Token>& plain, NoiseKey key, std::size_t n) {
  std::vector<Token> prompt;
  for (std::uint32_t k = 0; k < n; ++k) {
    prompt.push_back(plain[noise_bits(key, 1 + k) % plain.size()]);
  }
  return prompt;
}

}  // namespace

std::vector<std::vector<Token>> seeded_prompts(const Vocabulary& vocabulary, std::uint64_t seed,
                                               std::size_t count, std::size_t longest) {
  const std::vector<Token> plain = plain_tokens(vocabulary);
  std::vector<std::vector<Token>> prompts(count);
  for (std::size_t i = 0; i < count; ++i) {
    const NoiseKey key = noise_key(seed, i);
    prompts[i] = random_prompt(plain, key, 1 + noise_bits(key, 0) % longest);
  }
  return prompts;
}

std::vector<Token> seeded_prompt(const Vocabulary& vocabulary, std::uint64_t seed, std::size_t n) {
  return random_prompt(plain_tokens(vocabulary), noise_key(seed, 0), n);
}

}  // namespace outrider::testing
