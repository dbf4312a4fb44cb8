// What tests of drafters in the runtime share: requests for them, their files, what is told of
// them.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "draft/drafter_table.h"
#include "draft/ngram/ngram_file.h"
#include "request/draft_defaults.h"
#include "testing/runtime_fixture.h"
#include "testing/suffix_file.h"
#include "testing/tiny_dir.h"

namespace outrider::testing {

inline DrafterPlan plan(const std::string& expression) {
  return *parse_drafter_plan(expression, kDrafterNames);
}

class DrafterTest : public RuntimeTest {
 protected:
  CompletionRequest asking(const std::string& drafters, std::vector<Token> prompt,
                           std::uint64_t seed, std::int32_t n) {
    CompletionRequest r = ask(std::move(prompt), seed, n);
    r.drafters = plan(drafters);
    set_default_branches(r.draft, r.rule, r.width);
    return r;
  }

  // A store of what this request will say: right guesses all the way.
  std::string right_store(const std::string& name, std::vector<Token> prompt, std::uint64_t seed,
                          std::size_t n) {
    return store(name, kVocab, {whole_text(std::move(prompt), seed, n)});
  }
  std::string store(const std::string& name, std::int32_t n_vocab,
                    const std::vector<std::vector<Token>>& texts) {
    const FakeVocabulary vocabulary(n_vocab, kNoToken);
    write_suffix_store(dir_.file(name), tokenizer_id(vocabulary), texts);
    return dir_.file(name);
  }
  // An n-gram file that has seen `text` so often that even strict thresholds are met.
  std::string ngrams(const std::string& name, std::int32_t n_vocab, std::vector<Token> text) {
    NgramCache cache;
    for (int i = 0; i < 4; ++i) cache.count(text, 0, 1, kMaxNgram);
    const FakeVocabulary vocabulary(n_vocab, kNoToken);
    const Status saved = save_ngrams(cache, tokenizer_id(vocabulary), dir_.file(name));
    EXPECT_TRUE(saved.ok()) << saved.message();
    return dir_.file(name);
  }
  // Prompt and answer of a request.
  std::vector<Token> whole_text(std::vector<Token> prompt, std::uint64_t seed, std::size_t n) {
    const std::vector<Token> said = alone(prompt, seed, n);
    prompt.insert(prompt.end(), said.begin(), said.end());
    return prompt;
  }

  static DrafterStatus status_of(const Runtime& runtime, const std::string& name) {
    for (const DrafterStatus& drafter : runtime.status().drafters) {
      if (drafter.name == name) return drafter;
    }
    ADD_FAILURE() << name << " is not listed";
    return {};
  }
  // The only file of the drafter.
  static DrafterFileStatus file_of(const Runtime& runtime, const std::string& name = "suffix") {
    const DrafterStatus drafter = status_of(runtime, name);
    EXPECT_EQ(drafter.files.size(), 1U);
    return drafter.files.empty() ? DrafterFileStatus{} : drafter.files[0];
  }

  static const DrafterStats* stats_of(const Completion& completion, const std::string& name) {
    for (const DrafterStats& stats : completion.speculation.drafters) {
      if (stats.name == name) return &stats;
    }
    return nullptr;
  }

  TempDir dir_;
};

}  // namespace outrider::testing
