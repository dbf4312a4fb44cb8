#include "llama/model/llama_model.h"

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "llama/base/handles.h"
#include "testing/llama_fixture.h"

namespace outrider::llama {
namespace {

using testing::chain;
using testing::decode_behind;
using testing::expect_bits;
using testing::path;
using testing::prefill;
using testing::Row;
using testing::step;

class LlamaModelTest : public testing::TinyModelTest {};

void expect_says(const Status& status, StatusCode code, const std::string& words) {
  EXPECT_EQ(status.code(), code) << status.message();
  EXPECT_NE(status.message().find(words), std::string::npos) << status.message();
}

// Everything that a later request could notice of an earlier, failed one.
void expect_unchanged(LlamaModel& model, const std::vector<Pos>& lengths) {
  for (std::size_t seq = 0; seq < lengths.size(); ++seq) {
    EXPECT_EQ(model.length(static_cast<SeqId>(seq)), lengths[seq]) << "sequence " << seq;
  }
  EXPECT_EQ(model.check_integrity(), "");
}

TEST_F(LlamaModelTest, SingleStepsGiveLlamasOwnLogits) {
  std::unique_ptr<LlamaModel> model = make({.n_ctx = 300});
  const std::vector<Token> text = random_text(300, 1);

  llama_context_params params = llama_context_default_params();
  params.n_ctx = 512;
  params.flash_attn_type = LLAMA_FLASH_ATTN_TYPE_ENABLED;
  params.type_k = GGML_TYPE_BF16;
  params.type_v = GGML_TYPE_F16;
  params.n_threads = 1;
  params.n_threads_batch = 1;
  const ContextHandle context(llama_init_from_model(file().handle(), params));
  for (const Token token : text) {
    Token copy = token;
    ASSERT_EQ(llama_decode(context.get(), llama_batch_get_one(&copy, 1)), 0);
    const float* expected = llama_get_logits_ith(context.get(), 0);
    const Row row = step(*model, 0, token);
    ASSERT_EQ(std::memcmp(row.data(), expected, row.size() * sizeof(float)), 0);
  }
}

// On a device a pass goes on when it has been begun; llama.cpp counts what was waited for.
TEST_F(LlamaModelTest, WhatIsReadWithoutRowsWasComputedWhenTheCallReturns) {
  const std::unique_ptr<LlamaModel> model = make({.n_ctx = 100});
  llama_synchronize(model->handle());
  llama_perf_context_reset(model->handle());
  const std::vector<Token> text = random_text(10, 3);
  prefill(*model, 0, text);
  EXPECT_EQ(llama_perf_context(model->handle()).n_p_eval, 10);
}

TEST_F(LlamaModelTest, CapabilitiesSayWhatWasAskedFor) {
  const std::unique_ptr<LlamaModel> model =
      make({.n_ctx = 100, .n_sequences = 3, .n_batch = 64}, {.max_width = 9});
  const Capabilities& can = model->capabilities();
  EXPECT_EQ(can.n_vocab, file().facts().n_vocab);
  EXPECT_EQ(can.n_ctx, 100);
  EXPECT_EQ(can.n_batch, 64);
  EXPECT_EQ(can.n_sequences, 3);
  EXPECT_EQ(can.rollback, Rollback::kAny) << can.rollback_reason;
  EXPECT_EQ(can.max_leaves, 8) << "a root and eight others";
  EXPECT_EQ(can.max_width, 9);
  EXPECT_GE(model->settings().n_cells, 300 + 512);
  EXPECT_EQ(model->room(2), 100);
  EXPECT_TRUE(model->notes().empty());
  expect_unchanged(*model, {0, 0, 0});
}

TEST_F(LlamaModelTest, ZeroContextIsWhatTheModelWasTrainedWith) {
  EXPECT_EQ(make({.n_ctx = 0})->capabilities().n_ctx, 4096);
  const std::unique_ptr<LlamaModel> longer = make({.n_ctx = 5000});
  ASSERT_EQ(longer->notes().size(), 1u);
  EXPECT_NE(longer->notes()[0].find("4096"), std::string::npos);
}

TEST_F(LlamaModelTest, ABatchSmallerThanTheSequencesIsWidened) {
  const std::unique_ptr<LlamaModel> model = make({.n_ctx = 64, .n_sequences = 8, .n_batch = 1});
  EXPECT_EQ(model->capabilities().n_batch, 8);
  EXPECT_EQ(model->capabilities().max_width, 8);
}

TEST_F(LlamaModelTest, OptionsOutOfRangeAreRefusedByName) {
  const auto refuses = [this](const ModelOptions& options, const ContextSettings& settings,
                              StatusCode code, const std::string& words) {
    expect_says(create(options, settings).status(), code, words);
  };
  const ModelOptions ok{.n_ctx = 64};
  refuses({.n_ctx = -1}, {}, StatusCode::kInvalidArgument, "context size is -1");
  refuses({.n_ctx = 64, .n_sequences = 0}, {}, StatusCode::kInvalidArgument, "sequences is 0");
  refuses({.n_ctx = 64, .n_sequences = 65}, {}, StatusCode::kInvalidArgument, "1 to 64");
  refuses({.n_ctx = 64, .n_batch = 0}, {}, StatusCode::kInvalidArgument, "batch size is 0");
  refuses({.n_ctx = 64, .n_threads = -1}, {}, StatusCode::kInvalidArgument, "threads is -1");
  refuses({.n_ctx = 64, .n_threads = 100000}, {}, StatusCode::kInvalidArgument, "threads");
  refuses(ok, {.max_width = 0}, StatusCode::kInvalidArgument, "width is 0");
  refuses(ok, {.type_k = "q8"}, StatusCode::kInvalidArgument, "'q8' is not a cache type");
  refuses(ok, {.type_v = ""}, StatusCode::kInvalidArgument, "f16, bf16");
  refuses(ok, {.flash_attention = false, .type_v = "q8_0"}, StatusCode::kInvalidArgument,
          "flash_attn");
  refuses({.n_ctx = 2000000000}, {}, StatusCode::kResourceExhausted, "GiB");
  refuses({.n_ctx = 2000000000, .n_sequences = 2}, {}, StatusCode::kResourceExhausted, "smaller");
}

TEST_F(LlamaModelTest, OtherCacheTypesWork) {
  for (const char* type : {"f32", "f16", "bf16", "q4_0", "q5_1", "iq4_nl"}) {
    SCOPED_TRACE(type);
    Result<std::unique_ptr<LlamaModel>> model =
        create({.n_ctx = 64}, {.type_k = type, .type_v = type});
    ASSERT_TRUE(model.ok()) << model.status().message();
    EXPECT_EQ(step(**model, 0, 5).size(), static_cast<std::size_t>(file().facts().n_vocab));
  }
  EXPECT_TRUE(create({.n_ctx = 64}, {.flash_attention = false, .type_v = "f16"}).ok());
}

TEST_F(LlamaModelTest, EveryAcceptanceCountLeavesTheRightTokens) {
  std::unique_ptr<LlamaModel> model = make({.n_ctx = 200});
  const std::vector<Token> text = random_text(200, 2);
  for (std::int32_t width = 1; width <= 8; ++width) {
    for (std::int32_t kept = 0; kept <= width; ++kept) {
      SCOPED_TRACE(std::to_string(kept) + " of " + std::to_string(width));
      ASSERT_TRUE(model->truncate(0, 0).ok());
      const TokenTree tree = chain(std::span(text).subspan(3, static_cast<std::size_t>(width)));
      const EvalItem item{.seq = 0, .prefix = std::span(text).first(3), .tree = &tree};
      ASSERT_TRUE(model->evaluate({&item, 1}).ok());
      EXPECT_EQ(model->length(0), 0) << "tentative, not committed";
      ASSERT_TRUE(model->commit(0, path(kept)).ok());
      expect_unchanged(*model, {3 + kept});
      expect_bits(step(*model, 0, text[static_cast<std::size_t>(3 + kept)]),
                  fresh_rows(std::span(text).first(static_cast<std::size_t>(4 + kept))).back());
    }
  }
}

TEST_F(LlamaModelTest, APathThatIsNoPathIsRefusedAndTheSequenceIsAsBefore) {
  std::unique_ptr<LlamaModel> model = make({.n_ctx = 64});
  ASSERT_EQ(step(*model, 0, 7).size(), static_cast<std::size_t>(file().facts().n_vocab));
  const std::vector<Token> text{8, 9, 10};
  const TokenTree tree = chain(text);
  const EvalItem item{.seq = 0, .prefix = {}, .tree = &tree};
  for (const std::vector<NodeId>& bad :
       {std::vector<NodeId>{1}, std::vector<NodeId>{0, 2}, std::vector<NodeId>{0, 1, 2, 3},
        std::vector<NodeId>{-1}, std::vector<NodeId>{0, 0}}) {
    ASSERT_TRUE(model->evaluate({&item, 1}).ok());
    EXPECT_EQ(model->commit(0, bad).code(), StatusCode::kInvalidArgument);
    expect_unchanged(*model, {1});
  }
}

TEST_F(LlamaModelTest, WrongEvaluationsAreRefusedAndChangeNothing) {
  std::unique_ptr<LlamaModel> model =
      make({.n_ctx = 60, .n_sequences = 2, .n_batch = 20}, {.max_width = 4});
  const std::vector<Token> text = random_text(60, 3);
  step(*model, 1, 11);
  const std::int32_t n_vocab = file().facts().n_vocab;
  const auto refuses = [&](const std::vector<EvalItem>& items, StatusCode code,
                           const std::string& words) {
    expect_says(model->evaluate(items), code, words);
    expect_unchanged(*model, {0, 1});
  };
  for (const Token bad : {-1, n_vocab, 1 << 30}) {
    const std::vector<Token> tokens{5, bad};
    const TokenTree tree = chain(tokens);
    refuses({{.seq = 0, .prefix = tokens}}, StatusCode::kInvalidArgument, std::to_string(bad));
    refuses({{.seq = 0, .prefix = {}, .tree = &tree}}, StatusCode::kInvalidArgument,
            "not in the vocabulary");
  }
  const TokenTree wide = chain(std::span(text).first(5));
  refuses({{.seq = 0, .prefix = {}, .tree = &wide}}, StatusCode::kInvalidArgument, "width of 5");
  refuses({}, StatusCode::kInvalidArgument, "no token");
  refuses({{.seq = 0, .prefix = {}}}, StatusCode::kInvalidArgument, "no token");
  const EvalItem twice{.seq = 0, .prefix = std::span(text).first(2)};
  refuses({twice, twice}, StatusCode::kInvalidArgument, "twice");
  refuses({{.seq = 0, .prefix = std::span(text).first(21)}}, StatusCode::kInvalidArgument,
          "at most 20");
}

TEST_F(LlamaModelTest, TheContextsEdgeIsExact) {
  constexpr std::int32_t kContext = 40;
  std::unique_ptr<LlamaModel> model = make({.n_ctx = kContext}, {.max_width = 6});
  const std::vector<Token> text = random_text(64, 4);
  for (std::int32_t left = 0; left <= 7; ++left) {
    ASSERT_TRUE(model->truncate(0, 0).ok());
    const EvalItem prompt{
        .seq = 0, .prefix = std::span(text).first(static_cast<std::size_t>(kContext - left))};
    ASSERT_TRUE(model->evaluate({&prompt, 1}).ok());
    ASSERT_TRUE(model->commit(0, {}).ok());
    EXPECT_EQ(model->room(0), left);
    for (std::int32_t width = 1; width <= 6; ++width) {
      const TokenTree tree = chain(std::span(text).first(static_cast<std::size_t>(width)));
      const EvalItem item{.seq = 0, .prefix = {}, .tree = &tree};
      const Status status = model->evaluate({&item, 1});
      if (width <= left) {
        ASSERT_TRUE(status.ok()) << status.message();
        ASSERT_TRUE(model->commit(0, {}).ok());
      } else {
        expect_says(status, StatusCode::kResourceExhausted, "context holds 40");
      }
      expect_unchanged(*model, {kContext - left});
    }
  }
}

TEST_F(LlamaModelTest, SequencesThatShareACacheSeeWhatIsLeft) {
  std::unique_ptr<LlamaModel> model =
      make({.n_ctx = 200, .n_sequences = 2, .n_batch = 256}, {.n_cells = 256});
  ASSERT_EQ(model->settings().n_cells, 256);
  const std::vector<Token> text = random_text(200, 5);
  const EvalItem first{.seq = 0, .prefix = std::span(text).first(180)};
  ASSERT_TRUE(model->evaluate({&first, 1}).ok());
  ASSERT_TRUE(model->commit(0, {}).ok());
  EXPECT_EQ(model->room(0), 20) << "its context";
  EXPECT_EQ(model->room(1), 76) << "the cache";
  const EvalItem second{.seq = 1, .prefix = std::span(text).first(77)};
  expect_says(model->evaluate({&second, 1}), StatusCode::kResourceExhausted, "room for 76");
  expect_unchanged(*model, {180, 0});
  const EvalItem fits{.seq = 1, .prefix = std::span(text).first(76)};
  ASSERT_TRUE(model->evaluate({&fits, 1}).ok());
  ASSERT_TRUE(model->commit(1, {}).ok());
  EXPECT_EQ(model->room(0), 0);
  ASSERT_TRUE(model->truncate(0, 0).ok());
  EXPECT_EQ(model->room(1), 124);
  // The first one's cells are parked below the second's; only a rebuilt cache has room for these.
  const EvalItem more{.seq = 1, .prefix = std::span(text).first(100)};
  ASSERT_TRUE(model->evaluate({&more, 1}).ok());
  ASSERT_TRUE(model->commit(1, {}).ok());
  EXPECT_EQ(model->compactions(), 1);
  expect_unchanged(*model, {0, 176});
}

TEST_F(LlamaModelTest, ACacheIsNotRebuiltWithMemoryThatIsNotThere) {
  std::unique_ptr<LlamaModel> model = make({.n_ctx = 800, .n_sequences = 2, .n_batch = 512});
  std::uint64_t free = 1;
  model->ask_for_memory([&free] { return free; });
  const std::vector<Token> text = random_text(450, 5);
  prefill(*model, 0, std::span(text).first(300));
  prefill(*model, 1, std::span(text).first(20));
  ASSERT_TRUE(model->truncate(0, 0).ok());
  ASSERT_TRUE(model->ledger().compaction_due(1)) << "to save time";
  expect_bits(step(*model, 1, text[20]), fresh_rows(std::span(text).first(21)).back());
  EXPECT_EQ(model->compactions(), 0);
  expect_says(model->compact(), StatusCode::kResourceExhausted, "to rebuild the cache");
  expect_unchanged(*model, {0, 21});
  for (const std::uint64_t unknown_or_enough : {std::uint64_t{0}, std::uint64_t{1} << 40}) {
    free = unknown_or_enough;
    EXPECT_TRUE(model->compact().ok());
  }
  EXPECT_EQ(model->compactions(), 2);
  expect_unchanged(*model, {0, 21});
  expect_bits(step(*model, 1, text[21]), fresh_rows(std::span(text).first(22)).back());
}

TEST_F(LlamaModelTest, TokensThatNeedARebuiltCacheSayWhatMemoryIsMissing) {
  std::unique_ptr<LlamaModel> model =
      make({.n_ctx = 200, .n_sequences = 2, .n_batch = 256}, {.n_cells = 256});
  model->ask_for_memory([] { return std::uint64_t{1}; });
  const std::vector<Token> text = random_text(200, 5);
  prefill(*model, 0, std::span(text).first(180));
  prefill(*model, 1, std::span(text).first(20));
  ASSERT_TRUE(model->truncate(0, 0).ok());
  const EvalItem more{.seq = 1, .prefix = std::span(text).subspan(20, 100)};
  expect_says(model->evaluate({&more, 1}), StatusCode::kResourceExhausted, "are free");
  expect_unchanged(*model, {0, 20});
}

TEST_F(LlamaModelTest, CellsThatSomebodyElseTookAreWonBack) {
  std::unique_ptr<LlamaModel> model = make({.n_ctx = 256}, {.n_cells = 256});
  const std::vector<Token> text = random_text(100, 6);
  prefill(*model, 0, std::span(text).first(60));
  // Fills the cache behind the ledger's back, under an id that is nobody's.
  decode_behind(*model, /*id=*/200, /*from=*/0, /*n=*/196);
  const Row row = step(*model, 0, text[60]);
  EXPECT_EQ(model->compactions(), 1);
  expect_bits(row, fresh_rows(std::span(text).first(61)).back());
}

TEST_F(LlamaModelTest, AFailedDecodeIsReportedWithLlamasReasonAndUndone) {
  std::unique_ptr<LlamaModel> model = make({.n_ctx = 256, .n_sequences = 2});
  const std::vector<Token> text = random_text(40, 7);
  prefill(*model, 0, std::span(text).first(20));
  prefill(*model, 1, std::span(text).first(10));
  // A token behind the ledger's back: llama.cpp then refuses the next position of sequence 0.
  decode_behind(*model, /*id=*/0, /*from=*/20, /*n=*/1);
  EXPECT_NE(model->check_integrity(), "");
  const TokenTree root(text[10]);
  const std::vector<EvalItem> items{{.seq = 1, .prefix = {}, .tree = &root},
                                    {.seq = 0, .prefix = std::span(text).subspan(20, 2)}};
  expect_says(model->evaluate(items), StatusCode::kInternal, "inconsistent sequence positions");
  expect_unchanged(*model, {20, 10});
  expect_bits(step(*model, 0, text[20]), fresh_rows(std::span(text).first(21)).back());
}

TEST_F(LlamaModelTest, ARaisedInterruptEndsTheEvaluationAtOnce) {
  std::unique_ptr<LlamaModel> model = make({.n_ctx = 64});
  std::atomic<bool> flag{true};
  model->set_interrupt(&flag);
  const TokenTree root(5);
  const EvalItem item{.seq = 0, .prefix = {}, .tree = &root};
  EXPECT_EQ(model->evaluate({&item, 1}).code(), StatusCode::kCancelled);
  expect_unchanged(*model, {0});
  flag = false;
  EXPECT_TRUE(model->evaluate({&item, 1}).ok());
  ASSERT_TRUE(model->commit(0, path(1)).ok());
  model->set_interrupt(nullptr);
  flag = true;
  EXPECT_TRUE(model->evaluate({&item, 1}).ok());
}

TEST_F(LlamaModelTest, AnInterruptInTheMiddleOfAPromptLeavesNothingBehind) {
  std::unique_ptr<LlamaModel> model = make({.n_ctx = 1200, .n_sequences = 2, .n_batch = 1100});
  const std::vector<Token> text = random_text(1200, 8);
  prefill(*model, 0, std::span(text).first(30));
  prefill(*model, 1, std::span(text).first(5));
  std::atomic<bool> flag{false};
  testing::InterruptAt interrupt(*model, flag);
  const TokenTree root(text[30]);
  // The prompt takes several of llama.cpp's own batches of 512, so that some are done already.
  const std::vector<EvalItem> items{{.seq = 0, .prefix = {}, .tree = &root},
                                    {.seq = 1, .prefix = std::span(text).subspan(5, 1090)}};
  ASSERT_TRUE(model->evaluate(items).ok());
  ASSERT_TRUE(model->commit(0, {}).ok());
  ASSERT_TRUE(model->commit(1, {}).ok());
  ASSERT_TRUE(model->truncate(1, 5).ok());
  const std::int64_t last = interrupt.asked();
  ASSERT_GT(last, 100);
  // Before the evaluation, then ever later in it, up to its end.
  for (const std::int64_t at :
       {std::int64_t{0}, std::int64_t{1}, last / 4, last / 2, 3 * last / 4, last - 1, last}) {
    interrupt.set(at);
    const Status status = model->evaluate(items);
    ASSERT_EQ(status.code(), StatusCode::kCancelled) << at << ": " << status.message();
    expect_unchanged(*model, {30, 5});
  }
  interrupt.set(-1);
  expect_bits(step(*model, 0, text[30]), fresh_rows(std::span(text).first(31)).back());
  expect_bits(step(*model, 1, text[5]), fresh_rows(std::span(text).first(6)).back());
}

TEST_F(LlamaModelTest, TruncatedTextsGoOnLikeFreshOnes) {
  std::unique_ptr<LlamaModel> model = make({.n_ctx = 400, .n_sequences = 2});
  const std::vector<Token> text = random_text(300, 9);
  prefill(*model, 1, std::span(text).first(40));
  for (const Pos length : {0, 1, 39, 255, 256, 257, 299}) {
    prefill(*model, 0, text);
    ASSERT_TRUE(model->truncate(0, length).ok());
    expect_unchanged(*model, {length, 40});
    const std::size_t n = static_cast<std::size_t>(length);
    expect_bits(step(*model, 0, text[n]), fresh_rows(std::span(text).first(n + 1)).back());
    ASSERT_TRUE(model->truncate(0, 0).ok());
  }
}

}  // namespace
}  // namespace outrider::llama
