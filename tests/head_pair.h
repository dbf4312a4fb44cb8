// A tiny target with a trained head, and what must hold of every kind of head: the tests of MTP,
// EAGLE-3 and DFlash say how theirs is opened, and which files they try.
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "draft/base/drafter.h"
#include "llama/open_head.h"
#include "llama/open_target.h"
#include "testing/llama_heads.h"
#include "testing/tiny_dir.h"
#include "tests/pair.h"

namespace outrider::testing {

struct HeadPair {
  // `as_llama_cpp`: with its kernels and its types of cache, so that numbers are its own.
  explicit HeadPair(std::int32_t n_sequences = 1, bool as_llama_cpp = false);

  // A failure of the test when it cannot be opened.
  static llama::OpenedTarget open(const ModelOptions& options);

  const Vocabulary& vocabulary() const { return target.file->text_vocabulary(); }
  std::function<bool(Token)> is_end() const {
    return [this](Token token) { return vocabulary().is_end_of_generation(token); };
  }

  // The model of the head in options.head, opened beside the target by `opener`, one of
  // llama/open_head.h. A failure of the test, and null, when it cannot be.
  template <typename Model>
  std::unique_ptr<Model> open_head(Result<std::unique_ptr<Model>> (*opener)(
      const llama::HeadFile&, const ModelOptions&, const llama::LlamaModel&, const LoadHooks&)) {
    const Result<llama::HeadFile> file = llama::read_head_file(options.head);
    EXPECT_TRUE(file.ok()) << file.status().message();
    if (!file.ok()) return nullptr;
    ModelOptions of_head = options;
    of_head.path = options.head;
    Result<std::unique_ptr<Model>> opened = opener(*file, of_head, *target.model, {});
    EXPECT_TRUE(opened.ok()) << opened.status().message();
    return opened.ok() ? std::move(*opened) : nullptr;
  }

  // `made` is what guesses; `check_models` tells what is wrong with the models that it runs.
  template <typename Made>
  void guess_with(std::unique_ptr<Made> made, std::function<std::string()> check_models) {
    check_head = [models = std::move(check_models), &own = *made] {
      const std::string wrong = models();
      return wrong.empty() ? own.check_integrity() : wrong;
    };
    drafter = std::move(made);
  }

  // Integrity of the target, then of the head and its drafter.
  std::string check() const;
  Completion run(const RunOptions& options, bool speculative);

  TempDir dir;
  ModelOptions options;                     // of target.gguf in `dir`
  llama::OpenedTarget target;               // set by whoever writes the file
  std::unique_ptr<Drafter> drafter;         // guess_with()'s; null: there is none
  std::function<std::string()> check_head;  // likewise
};

// 24 tokens with seed 7, drafted in chains.
RunOptions head_run(const std::vector<Token>& prompt, float temperature, std::int32_t width);

// The text is that of plain decoding at three temperatures, at 0 with every width (step_widths.h);
// from 5 tokens on with the branches of `wide`. Fails, too, where the steps at 0 are not as wide as
// they may be. `also` (may be empty) gets each plain run.
void expect_plain_text(
    HeadPair& pair, const DraftShape& wide,
    const std::function<void(const RunOptions&, const Completion& plain)>& also = {});

struct HeadCounts {
  std::int64_t drafted = 0;
  std::int64_t accepted = 0;
  std::size_t deepest = 0;
};
// Of a few prompts of `least` tokens or more, at temperature 1.
HeadCounts head_counts(HeadPair& pair, std::size_t least, std::int32_t width);

// Behind each token of a text that the target says: what the drafter guesses greedily, and what
// llama.cpp does with the same head, at most `most` tokens of each. Fails where they differ, and
// where `noisy` and nothing but right guesses was compared. `how`: the head's kind and file.
void expect_llama_cpps_guesses(HeadPair& pair, LlamaHeadsOptions how, std::size_t most, bool noisy);

// Three texts at once, twice, are those that each has alone. [i] `widths` of their steps.
void expect_slots_as_alone(HeadPair& pair, const std::vector<std::int32_t>& widths);

// Stopped at any length up to `most` tokens, and gone on with, the text stays what it is when
// nobody stops it (`to_the_end`: at the edge of the context), and the integrity too.
void expect_any_end_and_beginning(HeadPair& pair, std::size_t most, bool to_the_end);

}  // namespace outrider::testing
