// What tests of the prompt cache share: a folder's files, and a station as far as the cache goes.
#pragma once

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <string_view>
#include <vector>

#include "serve/prompt_cache.h"
#include "testing/fake_engine.h"

namespace outrider::testing {

namespace fs = std::filesystem;

inline constexpr std::uint64_t kMuch = 1 << 20;
inline const EngineOptions kReuse = {.prompt_chunk = 8, .reuse_prefix = true};

inline std::vector<fs::path> files_in(const std::string& folder) {
  std::vector<fs::path> files;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder)) {
    files.push_back(entry.path());
  }
  return files;
}

inline std::string contents(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

inline void put_contents(const fs::path& path, std::string_view bytes) {
  std::ofstream(path, std::ios::binary | std::ios::trunc) << bytes;
}

// A prompt of 35 tokens that begins with `first`.
inline std::vector<Token> prompt_of(Token first) {
  std::vector<Token> prompt(35, 3);
  prompt[0] = first;
  return prompt;
}

// A runtime's station, as far as the cache goes: models, an engine, a cache, until it ends.
class Life {
 public:
  explicit Life(const std::string& folder, const std::string& identity = "this one",
                std::uint64_t most_bytes = kMuch, const std::string& draft_identity = "its draft")
      : draft_identity_(draft_identity), cache_(folder, most_bytes, identity) {
    cache_.restore(engine_);
    if (!draft_identity_.empty()) attach(draft_identity_);
  }

  // The draft is told of what was put back only now, as one that was loaded later.
  void attach(const std::string& draft_identity) {
    draft_identity_ = draft_identity;
    cache_.restore(engine_, drafter_, draft_identity_);
  }

  Completion run(const std::vector<Token>& prompt) {
    const Result<RequestId> id = engine_.add(request(prompt, 1.0f, 5, 10, 4));
    EXPECT_TRUE(id.ok());
    run_all(engine_, &drafter_);
    const Completion got = *engine_.take(*id);
    EXPECT_EQ(got.tokens, reference(rows_, prompt, 1.0f, 5, 10));
    return got;
  }
  Status save() { return cache_.save(engine_, &drafter_, draft_identity_); }
  void end() { EXPECT_TRUE(save().ok()); }

  const std::vector<std::string>& notes() const { return cache_.notes(); }
  void drop_used() { cache_.drop_used(engine_); }
  std::size_t waiting_bytes() const { return cache_.waiting_bytes(); }
  std::int64_t draft_tokens() const { return draft_.tokens_evaluated(); }
  std::int64_t copies() const { return target_.saves(); }  // of what the target has read
  const Engine& engine() const { return engine_; }

 private:
  RowFunction rows_ = random_rows(kVocab, 1, 3.0f);
  FakeModel target_ = FakeModel(capabilities(), rows_);
  FakeModel draft_ = FakeModel(capabilities(), noisy_rows(rows_, 2, 0.5f));
  DraftModelDrafter drafter_ = DraftModelDrafter(draft_, kVocab, {});
  const FakeVocabulary vocabulary_ = FakeVocabulary(kVocab);
  Engine engine_ = Engine(target_, vocabulary_, {&drafter_}, kReuse);
  std::string draft_identity_;
  PromptCache cache_;
};

// Reads a prompt and leaves it in the folder.
inline void leave_prompt(const std::string& folder, Token first, const std::string& identity) {
  Life life(folder, identity);
  life.run(prompt_of(first));
  life.end();
}

}  // namespace outrider::testing
