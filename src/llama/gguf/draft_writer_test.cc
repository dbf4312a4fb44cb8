// Drafts made of tiny models: they load, and compute what the model computes with what is left.
#include "llama/gguf/draft_writer.h"

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <cmath>
#include <csignal>
#include <functional>
#include <numeric>
#include <string>
#include <vector>

#include "llama/gguf/gguf_file.h"
#include "llama/gguf/vocabulary_cut.h"
#include "testing/gguf_damage.h"
#include "testing/gguf_file.h"
#include "testing/tiny_dir.h"
#include "testing/tiny_gguf.h"
#include "testing/tiny_runner.h"

namespace outrider::gguf {
namespace {

using testing::TinyModelOptions;
using testing::TinyRunner;
using testing::WeightType;

class DraftWriterTest : public ::testing::Test {
 protected:
  DraftWriterTest() { testing::silence_llama_log(); }

  std::string model(const TinyModelOptions& options = {}) {
    const Status status = testing::write_tiny_gguf(dir_.file("tiny.gguf"), options);
    EXPECT_TRUE(status.ok()) << status.message();
    return dir_.file("tiny.gguf");
  }
  TinyRunner load(const std::string& path) {
    testing::TinyRunnerOptions options;
    options.n_ctx = 128;
    options.kv_type = GGML_TYPE_F32;
    options.flash_attention = false;
    Result<TinyRunner> runner = TinyRunner::load(path, options);
    EXPECT_TRUE(runner.ok()) << runner.status().message();
    if (!runner.ok()) std::abort();
    return std::move(*runner);
  }
  std::string made(const std::string& source, const DraftRecipe& recipe) {
    const Status status = write_draft(source, dir_.file("draft.gguf"), recipe);
    EXPECT_TRUE(status.ok()) << status.message();
    return dir_.file("draft.gguf");
  }
  void expect_refused(const std::string& source, const DraftRecipe& recipe, StatusCode code,
                      const std::string& what) {
    testing::write_bytes(dir_.file("old.gguf"), "old");
    const int before = dir_.n_entries();
    const Status status = write_draft(source, dir_.file("old.gguf"), recipe);
    EXPECT_EQ(status.code(), code) << status.message();
    EXPECT_NE(status.message().find(what), std::string::npos) << status.message();
    EXPECT_EQ(testing::read_bytes(dir_.file("old.gguf")), "old");
    EXPECT_EQ(dir_.n_entries(), before) << "something was left behind";
  }

  testing::TempDir dir_;
};

std::vector<Token> some_text(const TinyRunner& runner) {
  return runner.tokenize("Once upon a time there was the one and the other", true, false);
}

TEST_F(DraftWriterTest, AnEmptyRecipeCopiesTheModel) {
  const std::string source = model();
  TinyRunner before = load(source);
  TinyRunner after = load(made(source, {}));
  EXPECT_EQ(after.logits(some_text(before)).value(), before.logits(some_text(before)).value());
}

TEST_F(DraftWriterTest, EveryTypeLoadsAndSaysNearlyTheSame) {
  TinyModelOptions options;
  options.n_embd = 256;  // the block of the K types
  options.n_head = 4;
  options.weight_type = WeightType::kF32;
  const std::string source = model(options);
  TinyRunner before = load(source);
  const std::vector<Token> text = some_text(before);
  const auto expected = before.logits(text).value();
  for (const char* type : {"f16", "bf16", "q8_0", "q6_K", "q5_1", "q5_0", "q5_K", "q4_1", "q4_0",
                           "iq4_nl", "q4_K", "Q3_K", "q2_K"}) {
    SCOPED_TRACE(type);
    DraftRecipe recipe;
    recipe.type = type;
    const std::string path = made(source, recipe);
    const Result<DraftSource> read = read_draft_source(path);
    ASSERT_TRUE(read.ok()) << read.status().message();
    EXPECT_EQ(strcasecmp(read->type.c_str(), type), 0) << read->type;
    TinyRunner after = load(path);
    // Two bits a weight leave a random model little; the others stay near.
    const double least = std::string(type) == "q2_K" || std::string(type) == "Q3_K" ? 0.0 : 0.3;
    EXPECT_GE(testing::greedy_agreement(after.logits(text).value(), expected), least);
  }
}

TEST_F(DraftWriterTest, AQuantisedModelIsQuantisedAgain) {
  TinyModelOptions options;
  options.weight_type = WeightType::kQ8_0;
  DraftRecipe recipe;
  recipe.type = "q4_0";
  const std::string source = model(options);
  EXPECT_EQ(read_draft_source(source)->type, "q8_0");
  const std::string path = made(source, recipe);
  EXPECT_EQ(read_draft_source(path)->type, "q4_0");
  EXPECT_LT(read_draft_source(path)->bytes, read_draft_source(source)->bytes * 3 / 4);
  load(path);
}

TEST_F(DraftWriterTest, TheSameBytesWhateverTheThreads) {
  const std::string source = model();
  DraftRecipe recipe;
  recipe.type = "q4_1";
  std::string bytes;
  for (const std::int32_t n_threads : {1, 2, 5}) {
    ASSERT_TRUE(
        write_draft(source, dir_.file("draft.gguf"), recipe, {.n_threads = n_threads}).ok());
    const std::string now = testing::read_bytes(dir_.file("draft.gguf"));
    EXPECT_TRUE(bytes.empty() || now == bytes) << n_threads;
    bytes = now;
  }
}

TEST_F(DraftWriterTest, LeftOutTokensTakeNothingFromTheOthersLogits) {
  for (const bool tied : {false, true}) {
    TinyModelOptions options;
    options.tied_output = tied;
    const std::string source = model(options);
    TinyRunner before = load(source);
    const Result<GgufReader> file = GgufReader::open(source);
    const Result<FileVocabulary> vocabulary = FileVocabulary::read(*file);
    ASSERT_TRUE(vocabulary.ok());
    TokenSelection selection(*vocabulary);
    const std::vector<Token> text = some_text(before);
    for (const Token token : text) selection.keep(token);
    DraftRecipe recipe;
    recipe.tokens = selection.kept();
    ASSERT_LT(recipe.tokens.size(), vocabulary->tokens.size());
    TinyRunner after = load(made(source, recipe));
    const auto expected = before.logits(text).value();
    std::vector<Token> mapped;
    for (const Token token : text) {
      mapped.push_back(
          static_cast<Token>(std::lower_bound(recipe.tokens.begin(), recipe.tokens.end(), token) -
                             recipe.tokens.begin()));
    }
    EXPECT_EQ(after.tokenize("Once upon a time there was the one and the other", true, false),
              mapped);
    const auto got = after.logits(mapped).value();
    for (std::size_t at = 0; at < got.size(); ++at) {
      for (std::size_t i = 0; i < recipe.tokens.size(); ++i) {
        const auto id = static_cast<std::size_t>(recipe.tokens[i]);
        ASSERT_NEAR(got[at][i], expected[at][id], 1e-4) << "position " << at << ", token " << id;
      }
    }
  }
}

// Without any layer but the first, the model is the one that was written with one layer.
TEST_F(DraftWriterTest, LeftOutLayersLeaveTheOthersAsTheyAre) {
  TinyModelOptions options;
  options.n_layer = 4;
  options.weight_type = WeightType::kF32;
  const std::string source = model(options);
  DraftRecipe recipe;
  recipe.layers = {0, 3};
  const std::string path = made(source, recipe);
  const Result<GgufReader> whole = GgufReader::open(source);
  const Result<GgufReader> cut = GgufReader::open(path);
  ASSERT_TRUE(cut.ok());
  EXPECT_EQ(cut->u32("llama.block_count").value(), 2U);
  const auto bytes_of = [](const GgufReader& file, const std::string& name) {
    std::vector<std::uint8_t> data;
    for (std::size_t i = 0; i < file.tensors().size(); ++i) {
      if (file.tensors()[i].name != name) continue;
      EXPECT_TRUE(file.read_tensor(i, data).ok());
    }
    return data;
  };
  EXPECT_FALSE(bytes_of(*cut, "blk.1.ffn_up.weight").empty());
  EXPECT_EQ(bytes_of(*cut, "blk.1.ffn_up.weight"), bytes_of(*whole, "blk.3.ffn_up.weight"));
  EXPECT_EQ(bytes_of(*cut, "blk.0.attn_q.weight"), bytes_of(*whole, "blk.0.attn_q.weight"));
  EXPECT_TRUE(bytes_of(*cut, "blk.2.attn_q.weight").empty());
  TinyRunner runner = load(path);
  EXPECT_EQ(llama_model_n_layer(runner.model()), 2);
  EXPECT_TRUE(runner.greedy(some_text(runner), 8).ok());
}

TEST_F(DraftWriterTest, LayersKeepTheirKindOfAttention) {
  TinyModelOptions options;
  options.architecture = testing::TinyArchitecture::kSlidingWindow;  // olmo2: in turns
  options.n_layer = 6;
  const std::string source = model(options);
  DraftRecipe recipe;
  recipe.layers = {0, 3, 4, 5};
  const Result<GgufReader> cut = GgufReader::open(made(source, recipe));
  ASSERT_TRUE(cut.ok());
  const std::int64_t id = gguf_find_key(cut->metadata(), "olmo2.attention.sliding_window_pattern");
  ASSERT_EQ(gguf_get_arr_n(cut->metadata(), id), 4U);
  const auto* flags = static_cast<const std::uint32_t*>(gguf_get_arr_data(cut->metadata(), id));
  EXPECT_EQ(std::vector<std::uint32_t>(flags, flags + 4), (std::vector<std::uint32_t>{1, 0, 1, 0}));
  TinyRunner runner = load(dir_.file("draft.gguf"));
  EXPECT_TRUE(runner.greedy(some_text(runner), 8).ok());
}

// llama.cpp reads the pattern as a list or as a number of one type; ggml aborts at another one.
TEST_F(DraftWriterTest, APatternOfAnotherTypeIsRefused) {
  TinyModelOptions options;
  options.architecture = testing::TinyArchitecture::kSlidingWindow;
  options.n_layer = 6;
  const std::string source = model(options);
  const char* const key = "olmo2.attention.sliding_window_pattern";
  const auto changed = [&](const std::function<void(gguf_context*)>& change) {
    const std::string path = dir_.file("changed.gguf");
    EXPECT_TRUE(testing::copy_changed(source, path, change, /*left_out=*/"").ok());
    return path;
  };
  DraftRecipe recipe;
  recipe.layers = {0, 3, 4, 5};
  expect_refused(changed([&](gguf_context* gguf) { gguf_set_val_str(gguf, key, "4"); }), recipe,
                 StatusCode::kUnsupported, std::string(key) + " is neither a list nor a number");
  expect_refused(changed([&](gguf_context* gguf) { gguf_set_val_u16(gguf, key, 4); }), recipe,
                 StatusCode::kUnsupported, "of type u32, but u16");
  expect_refused(changed([&](gguf_context* gguf) { gguf_set_val_bool(gguf, key, true); }), recipe,
                 StatusCode::kUnsupported, "of type u32, but bool");

  const std::string whole = changed([&](gguf_context* gguf) { gguf_set_val_u32(gguf, key, 3); });
  const Result<GgufReader> cut = GgufReader::open(made(whole, recipe));
  ASSERT_TRUE(cut.ok());
  const auto* flags = static_cast<const std::uint32_t*>(
      gguf_get_arr_data(cut->metadata(), gguf_find_key(cut->metadata(), key)));
  EXPECT_EQ(std::vector<std::uint32_t>(flags, flags + 4), (std::vector<std::uint32_t>{1, 1, 1, 0}));
}

// Its metadata says two layers, and no tensor is of any.
TEST_F(DraftWriterTest, AFileWithoutTensorsOfLayersIsRefused) {
  std::string bytes = testing::read_bytes(model());
  for (std::size_t at = 0; (at = bytes.find("blk.", at)) != std::string::npos; ++at) {
    bytes[at] = 'x';
  }
  testing::write_bytes(dir_.file("none.gguf"), bytes);
  DraftRecipe recipe;
  recipe.layers = {0};
  expect_refused(dir_.file("none.gguf"), recipe, StatusCode::kUnsupported,
                 "it has no tensors of layers");
}

TEST_F(DraftWriterTest, AMatrixWithoutColumnsStaysOne) {
  const Result<GgufReader> file = GgufReader::open(model());
  ASSERT_TRUE(file.ok());
  std::vector<TensorInfo> tensors = file->tensors();
  tensors.push_back({.name = "nothing.weight", .type = GGML_TYPE_F32, .shape = {0, 5}});
  const auto source = [&](std::size_t i, std::vector<std::uint8_t>& data) {
    data.clear();
    return i < file->tensors().size() ? file->read_tensor(i, data) : Status();
  };
  std::string bytes;
  const auto sink = [&](std::span<const std::uint8_t> part) {
    bytes.append(part.begin(), part.end());
    return Status();
  };
  ASSERT_TRUE(write_gguf(file->metadata(), tensors, source, sink).ok());
  testing::write_bytes(dir_.file("more.gguf"), bytes);
  DraftRecipe recipe;
  recipe.type = "q4_0";
  const Result<GgufReader> draft = GgufReader::open(made(dir_.file("more.gguf"), recipe));
  ASSERT_TRUE(draft.ok());
  EXPECT_EQ(draft->tensors().back().name, "nothing.weight");
  EXPECT_EQ(draft->tensors().back().bytes(), 0U);
}

TEST_F(DraftWriterTest, NotesAreInTheFile) {
  DraftRecipe recipe;
  recipe.notes = {{"source", "a.gguf"}, {"layers", "3 of 4"}};
  const Result<GgufReader> file = GgufReader::open(made(model(), recipe));
  ASSERT_TRUE(file.ok());
  EXPECT_EQ(file->string("outrider.draft.source").value(), "a.gguf");
  EXPECT_EQ(file->string("outrider.draft.layers").value(), "3 of 4");
}

TEST_F(DraftWriterTest, WhatCannotBeMadeIsRefusedWithTheReason) {
  const std::string source = model();
  DraftRecipe recipe;
  recipe.type = "q9_9";
  expect_refused(source, recipe, StatusCode::kInvalidArgument, "'q9_9'; give one of f32");
  recipe = {};
  recipe.tokens = {3, 3};
  expect_refused(source, recipe, StatusCode::kInvalidArgument, "token 3 is out of range or not");
  recipe.tokens = {1 << 20};
  expect_refused(source, recipe, StatusCode::kInvalidArgument, "token 1048576 is out of range");
  recipe = {};
  recipe.layers = {0, 2};
  expect_refused(source, recipe, StatusCode::kInvalidArgument, "layer 2 is out of range");
  expect_refused(dir_.file("missing.gguf"), {}, StatusCode::kNotFound, "missing.gguf");
  const Result<std::string> split = testing::write_gguf_split(source, dir_.file("split"), {2});
  ASSERT_TRUE(split.ok()) << split.status().message();
  expect_refused(*split, {}, StatusCode::kUnsupported, "llama-gguf-split --merge");

  TinyModelOptions recurrent;
  recurrent.architecture = testing::TinyArchitecture::kShortConv;
  recurrent.n_layer = 4;
  recipe = {};
  recipe.layers = {0, 1};
  expect_refused(model(recurrent), recipe, StatusCode::kUnsupported,
                 "layer 1 has other tensors than the first");
  EXPECT_FALSE(read_draft_source(dir_.file("tiny.gguf"))->cuts_layers.ok());
  EXPECT_TRUE(read_draft_source(dir_.file("tiny.gguf"))->cuts_tokens.ok());
}

TEST_F(DraftWriterTest, TheSourceIsNeverOverwritten) {
  const std::string source = model();
  const std::string before = testing::read_bytes(source);
  EXPECT_EQ(write_draft(source, source, {}).code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(write_draft(source, dir_.path() + "/./tiny.gguf", {}).code(),
            StatusCode::kInvalidArgument);
  EXPECT_TRUE(testing::read_bytes(source) == before);
}

TEST_F(DraftWriterTest, AnInterruptionLeavesNothing) {
  const std::string source = model();
  DraftRecipe recipe;
  recipe.type = "q4_0";
  std::atomic<bool> cancel{false};
  const Status status =
      write_draft(source, dir_.file("draft.gguf"), recipe,
                  {.cancel = &cancel, .progress = [&](double done) { cancel = done > 0.4; }});
  EXPECT_EQ(status.code(), StatusCode::kCancelled);
  EXPECT_EQ(dir_.n_entries(), 1);
}

// Stands in for a full disk: files of this process may not grow over 100 kB for a while.
TEST_F(DraftWriterTest, ADiskThatTakesNoMoreIsAnErrorAndLeavesNothing) {
  const std::string source = model();
  rlimit old_limit;
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &old_limit), 0);
  rlimit small = old_limit;
  small.rlim_cur = 100000;
  const auto old_handler = std::signal(SIGXFSZ, SIG_IGN);
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &small), 0);
  const Status status = write_draft(source, dir_.file("draft.gguf"), {});
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &old_limit), 0);
  std::signal(SIGXFSZ, old_handler);
  EXPECT_FALSE(status.ok());
  EXPECT_NE(status.message().find("draft.gguf"), std::string::npos) << status.message();
  EXPECT_EQ(dir_.n_entries(), 1);
}

}  // namespace
}  // namespace outrider::gguf
