// Opening models: settings, insisting, verdicts that are kept, failures.
#include "llama/open_target.h"

#include <gtest/gtest.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <system_error>

#include "llama/draft_file.h"
#include "llama/exactness/exactness_cache.h"
#include "llama/kernels/own_kernels.h"
#include "testing/gguf_damage.h"
#include "testing/llama_fixture.h"
#include "testing/llama_open_target.h"
#include "testing/requantize.h"

namespace outrider::llama {
namespace {

using testing::OpenTargetTest;
using testing::Row;

TEST_F(OpenTargetTest, InsistingGivesExactWidthsOrARefusal) {
  int refused = 0;
  for (const char* type : {"F32", "Q4_0", "Q4_K_S", "Q2_K", "IQ4_XS"}) {
    const std::string path = model(type);
    ModelOptions with = options(path, ExactMode::kOn);
    if (own_kernels().available) {
      EXPECT_TRUE(open_target(with, {}, target()).ok()) << type << ": own kernels are exact";
    }
    with.kernels = KernelChoice::kStock;
    Result<OpenedTarget> opened = open_target(with, {}, target());
    if (!opened.ok()) {
      ++refused;
      EXPECT_EQ(opened.status().code(), StatusCode::kUnsupported);
      const std::string message = opened.status().message();
      EXPECT_NE(message.find(path), std::string::npos) << type << ": " << message;
      EXPECT_NE(message.find("exact=on"), std::string::npos);
      EXPECT_NE(message.find("exact=auto"), std::string::npos) << "what would be right";
      with.exact = ExactMode::kAuto;
      OpenedTarget any = open(with, target());
      EXPECT_EQ(first_inexact(*any.model, 2), 2) << type;
      continue;
    }
    const std::int32_t widest = opened->settings.max_width;
    EXPECT_GE(widest, 2);
    EXPECT_EQ(widest, opened->model->capabilities().max_width);
    EXPECT_EQ(first_inexact(*opened->model, widest), widest + 1) << type;
    if (widest < 8) {
      EXPECT_EQ(opened->exactness.verdict(), "exact up to width " + std::to_string(widest));
      EXPECT_EQ(opened->model->capabilities().n_batch, widest)
          << "prompts keep to exact widths too";
    }
  }
  if (refused == 0) GTEST_SKIP() << "this machine computes all of them exactly";
}

TEST_F(OpenTargetTest, InsistingRefusesTheUsersOwnInexactSettings) {
  ModelOptions with = options(model("Q4_0"));
  with.kernels = KernelChoice::kStock;
  with.cache_type_k = with.cache_type_v = "f16";
  with.n_threads = 2;
  OpenedTarget reported = open(with, target());
  EXPECT_EQ(reported.settings.type_k, "f16") << "the user's choice wins";
  ASSERT_EQ(reported.notes.size(), 1u);
  EXPECT_NE(reported.notes[0].find("f16"), std::string::npos);
  if (reported.exactness.kind == Exactness::Kind::kExact) GTEST_SKIP() << "exact on this machine";
  with.exact = ExactMode::kOn;
  const Result<OpenedTarget> refused = open_target(with, {}, target());
  EXPECT_EQ(refused.status().code(), StatusCode::kUnsupported);
  EXPECT_NE(refused.status().message().find("cache_type_k=bf16"), std::string::npos);
}

TEST_F(OpenTargetTest, InsistingRefusesMoreSequencesThanABatchMayHave) {
  const std::string path = model("IQ4_XS");
  ModelOptions with = options(path);
  with.kernels = KernelChoice::kStock;
  const OpenedTarget alone = open(with, target());
  if (alone.exactness.kind != Exactness::Kind::kUpToWidth) GTEST_SKIP() << "no limit here";
  with.exact = ExactMode::kOn;
  with.n_sequences = alone.exactness.width + 1;
  const Result<OpenedTarget> refused = open_target(with, {}, target());
  EXPECT_EQ(refused.status().code(), StatusCode::kUnsupported);
  EXPECT_NE(refused.status().message().find("sequences at once"), std::string::npos);
}

TEST_F(OpenTargetTest, TheVerdictIsKeptAndAskedForOnce) {
  const std::string path = model("Q4_0");
  const OpenedTarget first = open(options(path), target());
  const OpenedTarget second = open(options(path), target());
  EXPECT_FALSE(first.probe_cached);
  EXPECT_TRUE(second.probe_cached);
  EXPECT_EQ(second.probe_seconds, 0.0);
  EXPECT_EQ(second.exactness.verdict(), first.exactness.verdict());
  EXPECT_EQ(second.exactness.coverage, first.exactness.coverage + ", cached");
  EXPECT_FALSE(open(options(path), target(/*widest=*/9)).probe_cached) << "a wider question";
  EXPECT_TRUE(open(options(path), target(/*widest=*/4)).probe_cached) << "a narrower one";
  ModelOptions other = options(path);
  other.n_threads = 2;
  EXPECT_FALSE(open(other, target()).probe_cached) << "other threads";
  other = options(path);
  other.cache_type_k = "q8_0";
  EXPECT_FALSE(open(other, target()).probe_cached) << "another cache";
}

// A verdict on the old file would be the new one's.
TEST_F(OpenTargetTest, OfAFileThatIsReplacedWhileItIsOpenedNoVerdictIsKept) {
  namespace fs = std::filesystem;
  const std::string path = model("Q4_0");
  const std::string next = dir_.file("next.gguf");
  fs::copy_file(path, next);
  fs::last_write_time(next, fs::last_write_time(path) + std::chrono::seconds(2));
  LoadHooks hooks;
  hooks.progress = [&](double fraction) {
    std::error_code gone;
    if (fraction >= 1.0) fs::rename(next, path, gone);
  };
  const Result<OpenedTarget> replaced = open_target(options(path), hooks, target());
  ASSERT_TRUE(replaced.ok()) << replaced.status().message();
  EXPECT_FALSE(fs::exists(next));
  EXPECT_FALSE(open(options(path), target()).probe_cached);
  EXPECT_TRUE(open(options(path), target()).probe_cached) << "the control";
}

TEST_F(OpenTargetTest, ADamagedOrUnwritableCacheDoesNoHarm) {
  const std::string path = model("Q4_0");
  TargetOptions with = target(/*widest=*/2);
  ASSERT_TRUE(open(options(path), with).file != nullptr);
  for (const std::filesystem::directory_entry& entry :
       std::filesystem::directory_iterator(*with.cache_folder / "exactness")) {
    testing::write_bytes(entry.path().string(), "{\"version\":1");
  }
  const OpenedTarget again = open(options(path), with);
  EXPECT_FALSE(again.probe_cached);
  EXPECT_EQ(again.exactness.verdict(), "exact");
  EXPECT_TRUE(open(options(path), with).probe_cached) << "it was written anew";

  testing::write_bytes(dir_.file("a file"), "not a folder");
  with.cache_folder = dir_.file("a file");
  EXPECT_EQ(open(options(path), with).exactness.verdict(), "exact");
  with.cache_folder = std::filesystem::path();
  EXPECT_EQ(open(options(path), with).exactness.verdict(), "exact");
}

TEST_F(OpenTargetTest, SettingsAreTheSameWithAndWithoutSpeculation) {
  for (const ExactMode exact : {ExactMode::kAuto, ExactMode::kOn, ExactMode::kOff}) {
    for (const char* type : {"Q4_0", "Q4_K_S", "IQ4_XS"}) {
      const std::string path = model(type);
      const OpenedTarget with = open(options(path, exact), target());
      TargetOptions single = target(/*widest=*/1);
      single.speculation = false;
      const OpenedTarget without = open(options(path, exact), single);
      EXPECT_EQ(with.extra_bufts, without.extra_bufts);
      EXPECT_EQ(with.settings.flash_attention, without.settings.flash_attention);
      EXPECT_EQ(with.settings.type_k, without.settings.type_k);
      EXPECT_EQ(with.settings.type_v, without.settings.type_v);
      EXPECT_EQ(with.settings.n_cells, without.settings.n_cells);
      EXPECT_EQ(with.model->capabilities().n_batch, without.model->capabilities().n_batch)
          << "prompts are cut into the same pieces";
      if (exact == ExactMode::kAuto) {
        EXPECT_EQ(without.exactness.verdict(), "exact");
        EXPECT_EQ(without.exactness.width, 1);
        EXPECT_EQ(without.probe_seconds, 0.0) << "single steps need no probe";
      }
    }
  }
}

TEST_F(OpenTargetTest, AShortBudgetIsReportedAndTheEnvironmentGivesOne) {
  const std::string path = model("Q4_0");
  TargetOptions with = target(/*widest=*/16);
  with.probe_budget_ms = 0.001;
  const OpenedTarget cut = open(options(path), with);
  EXPECT_NE(cut.exactness.coverage.find("cut off by the budget"), std::string::npos);
  EXPECT_LT(cut.exactness.width, 16);

  with.probe_budget_ms = 0.0;
  setenv("OUTRIDER_PROBE_BUDGET_MS", "0.001", /*overwrite=*/1);
  // Each goes on where the one before ended, until all widths were compared.
  std::int32_t width = cut.exactness.width;
  for (int n = 0; width < 16; ++n) {
    ASSERT_LT(n, 30);
    const OpenedTarget next = open(options(path), with);
    EXPECT_FALSE(next.probe_cached);
    EXPECT_GE(next.exactness.width, width);
    width = next.exactness.width;
  }
  EXPECT_TRUE(open(options(path), with).probe_cached);
  unsetenv("OUTRIDER_PROBE_BUDGET_MS");
}

TEST_F(OpenTargetTest, ABudgetInTheEnvironmentThatIsNoneIsAnErrorThatNamesTheVariable) {
  const std::string path = model("Q4_0");
  TargetOptions with = target(/*widest=*/2);
  with.probe_budget_ms = 0.0;
  for (const char* wrong : {"soon", "0", "-5", "10s", "nan", "inf", " "}) {
    setenv("OUTRIDER_PROBE_BUDGET_MS", wrong, /*overwrite=*/1);
    const Status status = open_target(options(path), {}, with).status();
    EXPECT_EQ(status.code(), StatusCode::kInvalidArgument) << wrong;
    EXPECT_EQ(status.message(), "OUTRIDER_PROBE_BUDGET_MS is '" + std::string(wrong) +
                                    "', but must be a number of milliseconds above 0");
  }
  with.probe_budget_ms = 50.0;
  EXPECT_TRUE(open_target(options(path), {}, with).ok()) << "it is not asked";
  with.probe_budget_ms = 0.0;
  setenv("OUTRIDER_PROBE_BUDGET_MS", "", /*overwrite=*/1);
  EXPECT_TRUE(open_target(options(path), {}, with).ok()) << "as if it were not there";
  unsetenv("OUTRIDER_PROBE_BUDGET_MS");
}

TEST_F(OpenTargetTest, CancellingDuringTheProbeCancelsTheOpening) {
  const std::string path = model("Q4_0");
  std::atomic<bool> cancel = false;
  LoadHooks hooks;
  hooks.cancel = &cancel;
  TargetOptions with = target();
  with.probe_progress = [&](double fraction) {
    if (fraction > 0.1) cancel = true;
  };
  const Result<OpenedTarget> opened = open_target(options(path), hooks, with);
  EXPECT_EQ(opened.status().code(), StatusCode::kCancelled);
  cancel = false;
  with.probe_progress = nullptr;
  const Result<OpenedTarget> again = open_target(options(path), hooks, with);
  ASSERT_TRUE(again.ok());
  EXPECT_FALSE(again->probe_cached) << "half a probe is not kept";
}

TEST_F(OpenTargetTest, FailuresAreTheLoadersOwn) {
  EXPECT_EQ(open_target(options(dir_.file("none.gguf")), {}, target()).status().code(),
            StatusCode::kNotFound);
  const std::string good = model("Q4_0");
  const Result<std::vector<testing::BadModelFile>> bad =
      testing::write_bad_model_files(good, dir_.path());
  ASSERT_TRUE(bad.ok());
  for (const testing::BadModelFile& file : *bad) {
    const Result<OpenedTarget> opened = open_target(options(file.path), {}, target());
    EXPECT_FALSE(opened.ok()) << file.what;
    EXPECT_NE(opened.status().message().find(file.path), std::string::npos) << file.what;
  }
  EXPECT_EQ(open_target(options(good), {}, target(/*widest=*/0)).status().code(),
            StatusCode::kInvalidArgument);
  ModelOptions odd = options(good);
  odd.cache_type_k = "q9_9";
  EXPECT_EQ(open_target(odd, {}, target()).status().code(), StatusCode::kInvalidArgument);
}

TEST_F(OpenTargetTest, ModelsWithRecurrentLayersAreProbedInTheirOwnContext) {
  for (const testing::TinyArchitecture architecture :
       {testing::TinyArchitecture::kShortConv, testing::TinyArchitecture::kMamba}) {
    const std::string name = testing::tiny_architecture_name(architecture);
    SCOPED_TRACE(name);
    const std::string path = dir_.file(name + ".gguf");
    ASSERT_TRUE(testing::write_tiny_gguf(path, {.architecture = architecture}).ok());
    for (const ExactMode mode : {ExactMode::kAuto, ExactMode::kOn}) {
      const OpenedTarget opened = open(options(path, mode), target(/*widest=*/4));
      ASSERT_NE(opened.model, nullptr);
      EXPECT_EQ(opened.exactness.verdict(), "exact") << opened.exactness.reason;
      EXPECT_NE(opened.exactness.coverage.find("widths 2-4"), std::string::npos)
          << opened.exactness.coverage;
      EXPECT_EQ(opened.model->length(0), 0);
      EXPECT_GE(opened.model->capabilities().max_width, 4);
    }
    ModelOptions several = options(path);
    several.n_sequences = 2;
    const OpenedTarget opened = open(several, target(/*widest=*/4));
    const bool hybrid = architecture == testing::TinyArchitecture::kShortConv;
    EXPECT_EQ(opened.exactness.verdict(), hybrid ? "distributional" : "exact");
    EXPECT_EQ(opened.exactness.reason.empty(), !hybrid) << opened.exactness.reason;
    several.exact = ExactMode::kOn;
    EXPECT_EQ(open_target(several, {}, target(/*widest=*/4)).ok(), !hybrid);
  }
}

TEST_F(OpenTargetTest, TheProbeOfAnOrdinaryModelComparesTrees) {
  ModelOptions with = options(model("Q8_0"));
  EXPECT_NE(open(with, target()).exactness.coverage.find("trees to "), std::string::npos);
  with.kernels = KernelChoice::kStock;
  const OpenedTarget opened = open(with, target());
  EXPECT_NE(opened.exactness.coverage.find("trees to 8 nodes"), std::string::npos)
      << opened.exactness.coverage;
}

TEST(DraftFileOptions, AHeadWhoseTargetIsOnAGpuHasTheGpuEvenWithoutLayersThere) {
  const ModelOptions options{.path = "head.gguf", .n_gpu_layers = 0};
  ModelFacts facts;
  EXPECT_TRUE(draft_file_options(options, true, nullptr).keeps_off_gpus()) << "a draft model";
  for (const bool on_processor : {true, false}) {
    facts.all_on_cpu = on_processor;
    const FileOptions how = draft_file_options(options, true, &facts);
    EXPECT_TRUE(how.head);
    EXPECT_EQ(how.keeps_off_gpus(), on_processor);
    EXPECT_EQ(how.n_gpu_layers, 0);
  }
}

TEST_F(OpenTargetTest, ADraftTakesTheFastestSettings) {
  ModelOptions with = options(model("Q4_0"), ExactMode::kOn);
  Result<std::unique_ptr<LlamaModel>> draft = open_draft(with, {});
  ASSERT_TRUE(draft.ok()) << draft.status().message();
  EXPECT_EQ((*draft)->settings().type_k, "f16");
  EXPECT_TRUE((*draft)->file()->facts().extra_bufts);
  with.cache_type_k = with.cache_type_v = "q8_0";
  EXPECT_EQ((*open_draft(with, {}))->settings().type_v, "q8_0");
}

// The last row of a text of a few tokens.
Row row_after(LanguageModel& model) {
  Row row;
  for (const Token token : {1, 70, 80, 90, 100}) row = testing::step(model, 0, token);
  return row;
}

TEST_F(OpenTargetTest, AFileMayBeMappedOrReadAndItsRotationsChanged) {
  const ModelOptions usual = options(model("Q8_0"));
  Result<std::unique_ptr<LlamaModel>> opened = open_draft(usual, {});
  ASSERT_TRUE(opened.ok()) << opened.status().message();
  const Row wanted = row_after(**opened);
  for (const bool use_mmap : {false, true}) {
    for (const bool use_mlock : {false, true}) {
      ModelOptions o = usual;
      o.use_mmap = use_mmap;
      o.use_mlock = use_mlock;
      o.tensor_split = {1.0f, 2.0f};  // there is no GPU to take a share
      opened = open_draft(o, {});
      ASSERT_TRUE(opened.ok()) << opened.status().message();
      EXPECT_EQ(row_after(**opened), wanted);
    }
  }
  for (const bool base : {false, true}) {
    ModelOptions o = usual;
    (base ? o.rope_freq_base : o.rope_freq_scale) = base ? 500.0f : 0.5f;
    opened = open_draft(o, {});
    ASSERT_TRUE(opened.ok()) << opened.status().message();
    EXPECT_NE(row_after(**opened), wanted);
  }
  ModelOptions o = usual;
  o.tensor_split.assign(1000, 1.0f);
  const Status status = open_draft(o, {}).status();
  EXPECT_EQ(status.code(), StatusCode::kInvalidArgument);
  EXPECT_NE(status.message().find("tensor_split has 1000 shares"), std::string::npos);
}

}  // namespace
}  // namespace outrider::llama
