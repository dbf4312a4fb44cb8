// Every head that does not fit its target is refused before llama.cpp sees it, with the file and
// what is wrong; heads that fit are not.
#include "llama/heads/head_file.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "llama/files/gguf_header.h"
#include "testing/gguf_damage.h"
#include "testing/gguf_file.h"
#include "testing/gguf_head_damage.h"
#include "testing/tiny_dir.h"
#include "testing/tiny_gguf_dflash.h"
#include "testing/tiny_gguf_eagle3.h"

namespace outrider::llama {
namespace {

HeadTarget target_at(const std::string& path) {
  const Result<GgufHeader> header = read_gguf_header(path);
  EXPECT_TRUE(header.ok()) << header.status().message();
  return {.path = path,
          .architecture = header->architecture,
          .n_layer = header->n_layer - header->n_prediction,
          .n_embd = header->n_embd,
          .n_vocab = header->n_vocab};
}

// t.gguf, and an EAGLE-3 head for it, h.gguf.
void write_pair(const testing::TempDir& dir) {
  const testing::TinyLagOptions target;
  ASSERT_TRUE(testing::write_tiny_lag(dir.file("t.gguf"), target).ok());
  testing::TinyEagle3Options options;
  options.taps = {0, 1, 3};
  options.tokens = {80, 82, 81};
  ASSERT_TRUE(testing::write_tiny_eagle3(dir.file("h.gguf"), target, options).ok());
}

TEST(HeadFile, AHeadThatFitsItsTargetIsReadAndPasses) {
  const testing::TempDir dir;
  ASSERT_NO_FATAL_FAILURE(write_pair(dir));
  const Result<HeadFile> head = read_head_file(dir.file("h.gguf"));
  ASSERT_TRUE(head.ok()) << head.status().message();
  EXPECT_EQ(head->kind, HeadKind::kEagle3);
  EXPECT_EQ(head->layers, (std::vector<std::int32_t>{0, 1, 3}));
  EXPECT_EQ(head->target_ids, (std::vector<std::int64_t>{80, 82, 81}));
  EXPECT_EQ(head->states().text(), "inputs 0 1 3");
  const Status fits = check_head(*head, target_at(dir.file("t.gguf")));
  EXPECT_TRUE(fits.ok()) << fits.message();
  HeadTarget other = target_at(dir.file("t.gguf"));
  ++other.n_vocab;
  EXPECT_EQ(check_head(*head, other).code(), StatusCode::kUnsupported);

  const Result<HeadFile> none = read_head_file(dir.file("t.gguf"));
  ASSERT_TRUE(none.ok()) << none.status().message();
  EXPECT_EQ(none->kind, HeadKind::kNone);
  EXPECT_FALSE(read_head_file(dir.file("missing.gguf")).ok());
}

TEST(HeadFile, AHeadInSeveralFilesIsTheWhole) {
  const testing::TempDir dir;
  ASSERT_NO_FATAL_FAILURE(write_pair(dir));
  const Result<HeadFile> whole = read_head_file(dir.file("h.gguf"));
  ASSERT_TRUE(whole.ok()) << whole.status().message();
  for (std::size_t cut = 0; cut <= whole->tensors.size(); ++cut) {
    const Result<std::string> first =
        testing::write_gguf_split(dir.file("h.gguf"), dir.file("split"), {cut});
    ASSERT_TRUE(first.ok()) << first.status().message();
    const Result<HeadFile> head = read_head_file(*first);
    ASSERT_TRUE(head.ok()) << head.status().message();
    EXPECT_EQ(head->tensors.size(), whole->tensors.size());
    EXPECT_EQ(head->target_ids, whole->target_ids);
    EXPECT_GT(head->file_bytes, whole->file_bytes);
    const Status fits = check_head(*head, target_at(dir.file("t.gguf")));
    EXPECT_TRUE(fits.ok()) << fits.message();
  }
}

TEST(HeadFile, ADflashHeadSaysWhatItsBlocksAre) {
  const testing::TempDir dir;
  testing::TinyLagOptions target;
  target.lags = {5, 6};
  target.reads_current = false;
  ASSERT_TRUE(testing::write_tiny_lag(dir.file("t.gguf"), target).ok());
  testing::TinyDflashOptions options;
  options.block_size = 7;
  options.taps = {2};
  ASSERT_TRUE(testing::write_tiny_dflash(dir.file("whole.gguf"), target, options).ok());
  const auto change = [](gguf_context* gguf) {
    gguf_set_val_bool(gguf, "dflash.attention.causal", true);
  };
  ASSERT_TRUE(testing::copy_changed(dir.file("whole.gguf"), dir.file("h.gguf"), change, "").ok());
  const Result<HeadFile> head = read_head_file(dir.file("h.gguf"));
  ASSERT_TRUE(head.ok()) << head.status().message();
  EXPECT_EQ(head->kind, HeadKind::kDflash);
  EXPECT_EQ(head->states().text(), "inputs 2");
  EXPECT_EQ(head->block.n_tokens, 7);
  EXPECT_EQ(head->block.mask, testing::kTinyPad);
  EXPECT_TRUE(head->block.causal);
  const HeadTarget fitting = target_at(dir.file("t.gguf"));
  EXPECT_TRUE(check_head(*head, fitting).ok()) << check_head(*head, fitting).message();
  // What llama.cpp takes where a file says nothing.
  ASSERT_TRUE(testing::copy_without_key(dir.file("whole.gguf"), dir.file("silent.gguf"),
                                        "dflash.block_size")
                  .ok());
  const Result<HeadFile> silent = read_head_file(dir.file("silent.gguf"));
  ASSERT_TRUE(silent.ok());
  EXPECT_EQ(silent->block.n_tokens, 16);
  EXPECT_FALSE(silent->block.causal);
}

// Heads of the same architecture that guess in other ways.
TEST(HeadFile, VariationsOfDflashAreRefusedAsWhatTheyAre) {
  const testing::TempDir dir;
  testing::TinyLagOptions target;
  target.lags = {3, 4};
  target.reads_current = false;
  ASSERT_TRUE(testing::write_tiny_lag(dir.file("t.gguf"), target).ok());
  ASSERT_TRUE(testing::write_tiny_dflash(dir.file("h.gguf"), target).ok());
  const Result<HeadFile> plain = read_head_file(dir.file("h.gguf"));
  ASSERT_TRUE(plain.ok());
  for (const auto& [tensor, name] :
       {std::pair("markov_w1.weight", "DSpark"), std::pair("selector_hidden.weight", "DFlash2"),
        std::pair("hc_head_fn.weight", "DeepSeek V4")}) {
    HeadFile head = *plain;
    head.tensors.push_back({.name = tensor, .type = "f32", .size = {1, 1, 1, 1}});
    const Status status = check_head(head, target_at(dir.file("t.gguf")));
    EXPECT_EQ(status.code(), StatusCode::kUnsupported);
    EXPECT_NE(status.message().find(name), std::string::npos) << status.message();
  }
}

using Reasons = std::vector<std::pair<std::string, std::string>>;

// Each head of the kind is refused with its file and the reason for what is wrong with it.
void expect_refused(testing::LlamaHeadKind kind, const Reasons& reasons, std::size_t at_least) {
  const testing::TempDir dir;
  const Result<std::vector<testing::BadHead>> heads = testing::write_bad_heads(dir.path());
  ASSERT_TRUE(heads.ok()) << heads.status().message();
  std::size_t n = 0;
  for (const testing::BadHead& bad : *heads) {
    if (bad.kind != kind) continue;
    ++n;
    const Result<HeadFile> head = read_head_file(bad.head_path);
    ASSERT_TRUE(head.ok()) << bad.what << ": " << head.status().message();
    const Status status = check_head(*head, target_at(bad.target_path));
    EXPECT_FALSE(status.ok()) << bad.what;
    EXPECT_NE(status.message().find(bad.head_path), std::string::npos) << status.message();
    bool is_told = false;
    for (const auto& [what, reason] : reasons) {
      if (bad.what.find(what) != 0) continue;
      is_told = true;
      EXPECT_NE(status.message().find(reason), std::string::npos)
          << bad.what << ": " << status.message();
    }
    EXPECT_TRUE(is_told) << bad.what;
  }
  EXPECT_GE(n, at_least);
}

TEST(HeadFile, EveryEagle3HeadThatLlamaCppAbortsOnOrMisreadsIsRefusedByName) {
  const Reasons reasons = {
      {"a target without taps", "hy_v3"},
      {"a tap above", "layer 9"},
      {"a tap below", "layer -1"},
      {"a tap behind the last", "layer 4, and the target's layers are 0 to 3"},
      {"two taps", "must name 3"},
      {"two layers", "block_count is 2"},
      {"a wrong width of the target", "64 numbers (target_hidden_size)"},
      {"no fc", "fc.weight is missing"},
      {"another width", "128 numbers (target_hidden_size), and the target's have 64"},
      {"d2t without an output", "output.weight"},
      {"an output of few tokens", "d2t"},
      {"an id in d2t", "d2t names the token"},
  };
  expect_refused(testing::LlamaHeadKind::kEagle3, reasons, 13);
}

TEST(HeadFile, EveryDflashHeadThatLlamaCppAbortsOnOrMisreadsIsRefusedByName) {
  const Reasons reasons = {
      {"a target without taps", "hy_v3"},
      {"a tap behind the last", "layer 4, and the target's layers are 0 to 3"},
      {"a tap above", "layer 600"},
      {"no taps", "names no layers"},
      {"another width", "128 numbers (embedding_length), and the target's 64"},
      {"no mask token", "mask_token_id"},
      {"a block of one token", "block_size is 1, but must be at least 2"},
      {"a block of no token", "block_size is 0"},
  };
  expect_refused(testing::LlamaHeadKind::kDflash, reasons, 8);
}

}  // namespace
}  // namespace outrider::llama
