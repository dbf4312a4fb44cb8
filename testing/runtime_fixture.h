// What the runtime's tests share: files of hand-written numbers, requests, and plain decoding.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "serve/runtime.h"
#include "testing/fake_engine.h"
#include "testing/fake_loader.h"

namespace outrider::testing {

inline ModelOptions model(const std::string& path, std::int32_t n_ctx = 64) {
  ModelOptions o;
  o.path = path;
  o.n_ctx = n_ctx;
  o.n_batch = 24;
  return o;
}

// With a fixed width: what the planner chooses depends on how quick the machine is.
inline CompletionRequest ask(std::vector<Token> prompt, std::uint64_t seed, std::int32_t n) {
  CompletionRequest r;
  r.width = 4;
  for (const Token token : prompt) r.prompt.emplace_back(token);
  r.sampling.temperature = 1.0f;
  r.seed = seed;
  r.max_tokens = n;
  return r;
}

// A text without end: it runs until somebody ends it, however long that takes. A full context is
// shifted.
inline CompletionRequest endless(std::vector<Token> prompt, std::uint64_t seed) {
  CompletionRequest r = ask(std::move(prompt), seed, -1);
  r.shift_keep = 0;
  return r;
}

class RuntimeTest : public ::testing::Test {
 protected:
  RuntimeTest() { loader_.add_usual_files(); }

  std::unique_ptr<Runtime> make(RuntimeOptions options = {}, const std::string& target = "target",
                                std::int32_t n_ctx = 64) {
    Result<std::unique_ptr<Runtime>> made = Runtime::create(options, loader_);
    EXPECT_TRUE(made.ok());
    if (!target.empty()) {
      EXPECT_TRUE((*made)->load(ModelRole::kTarget, model(target, n_ctx)).ok());
      EXPECT_TRUE((*made)->wait_loaded(-1));
    }
    return std::move(*made);
  }

  static std::vector<Token> alone(std::vector<Token> prompt, std::uint64_t seed, std::size_t n,
                                  std::uint64_t rows_seed = 1) {
    return reference(random_rows(kVocab, rows_seed, 3.0f), std::move(prompt), 1.0f, seed, n);
  }

  FakeLoader loader_;
};

}  // namespace outrider::testing
