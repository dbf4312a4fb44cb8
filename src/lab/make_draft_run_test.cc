// Making drafts of tiny models. That they draft: made_draft_test.cc.
#include "lab/make_draft_run.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>

#include "backend/llama_loader.h"
#include "backend/loaded_target.h"
#include "lab/draft_pieces.h"
#include "lab/inspection.h"
#include "lab/tiny_options_test.h"
#include "llama/gguf/gguf_file.h"
#include "testing/gguf_damage.h"
#include "testing/slow_model.h"
#include "testing/tiny_dir.h"
#include "testing/tiny_gguf.h"

namespace outrider::lab {
namespace {

using testing::PassClock;
using testing::SlowModel;
using testing::TinyModelOptions;

// Opens the target as a slow one. Steps are said to take the same whatever their width, or nothing
// is said of them.
class SlowLoader : public ModelLoader {
 public:
  SlowLoader(std::int32_t pass_ms, PassClock& clock, bool measured)
      : pass_ms_(pass_ms), clock_(clock), measured_(measured) {}

  Result<std::unique_ptr<Target>> load_target(const ModelOptions& options,
                                              const LoadHooks& hooks) override {
    LlamaLoaderOptions how;
    how.probe_budget_ms = 50;
    how.cache_folder = std::filesystem::path();
    Result<llama::OpenedTarget> opened =
        llama::open_target(options, hooks, target_options(how, options.widest));
    if (!opened.ok()) return opened.status();
    ModelInfo info = opened->file->facts();
    PassCosts costs;
    for (const std::int32_t width : {1, 2, 4, 8, 16}) {
      if (!measured_) break;
      costs.points.push_back({.width = width, .ms = static_cast<double>(pass_ms_) + 0.01 * width});
    }
    return std::unique_ptr<Target>(std::make_unique<LoadedTarget>(LoadedTarget::Parts{
        .model = std::make_unique<SlowModel>(std::move(opened->model), pass_ms_, clock_),
        .file = std::move(opened->file),
        .exactness = std::move(opened->exactness),
        .info = std::move(info),
        .notes = {},
        .costs = std::move(costs)}));
  }
  Result<std::unique_ptr<Draft>> load_draft(const ModelOptions& options,
                                            std::shared_ptr<const Target> target,
                                            const LoadHooks& hooks) override {
    return inner_.load_draft(options, std::move(target), hooks);
  }

 private:
  std::int32_t pass_ms_;
  PassClock& clock_;
  bool measured_;
  LlamaLoader inner_;
};

class MakeDraftTest : public ::testing::Test {
 protected:
  // The target, and a runtime with it.
  void open(const TinyModelOptions& options, std::int32_t pass_ms = 10, bool measured = true) {
    ASSERT_TRUE(testing::write_tiny_gguf(target_path(), options).ok());
    runtime_.reset();
    loader_ = std::make_unique<SlowLoader>(pass_ms, clock_, measured);
    Result<std::unique_ptr<Runtime>> made =
        Runtime::create({.slots = 1, .reuse_prefix = false, .now_ms = clock_.now()}, *loader_);
    ASSERT_TRUE(made.ok());
    runtime_ = *std::move(made);
    ASSERT_TRUE(runtime_->load(ModelRole::kTarget, tiny_options(target_path())).ok());
    ASSERT_TRUE(runtime_->wait_loaded(-1));
    target_ = runtime_->target();
    ASSERT_NE(target_, nullptr) << runtime_->status().target.error.message();
    plan_.source = target_path();
    plan_.output = dir_.file("draft.gguf");
    plan_.target = tiny_options(target_path());
    plan_.draft = plan_.target;
    plan_.sample.max_tokens = 16;
    plan_.sample.sampling.temperature = 0.8f;
    plan_.sample.seed = 5;
    plan_.types = {"q4_0"};
    plan_.most_measured = 0;
    plan_.now_ms = clock_.now();
  }
  std::string target_path() const { return dir_.file("target.gguf"); }
  Harness harness(Watcher watcher = {}) {
    return {.runtime = *runtime_, .target = *target_, .watcher = std::move(watcher)};
  }
  MakeDraftResult made() {
    Result<MakeDraftResult> result = make_draft(harness(), plan_);
    EXPECT_TRUE(result.ok()) << result.status().message();
    return result.ok() ? *std::move(result) : MakeDraftResult{};
  }
  Status refused() { return make_draft(harness(), plan_).status(); }

  testing::TempDir dir_;
  PassClock clock_;
  std::unique_ptr<SlowLoader> loader_;
  std::unique_ptr<Runtime> runtime_;
  std::shared_ptr<const Target> target_;
  MakeDraftPlan plan_;
};

TinyModelOptions tiny() {
  TinyModelOptions options;
  options.n_layer = 4;
  options.eos_bias = -6.0f;
  return options;
}

TEST_F(MakeDraftTest, WhereStepsAreDearTheBestIsWrittenAndInspectSaysWhatItIs) {
  open(tiny());
  const MakeDraftResult result = made();
  ASSERT_TRUE(result.chosen) << result.verdict;
  const DraftCandidate& best = result.candidates[*result.chosen];
  EXPECT_TRUE(best.prediction.pays());
  EXPECT_EQ(dir_.n_entries(), 2) << "the target and the draft";
  auto inspected = inspect(tiny_options(target_path()), {});
  ASSERT_TRUE(inspected.ok()) << inspected.status().message();
  const Status draft = inspect_draft(tiny_options(plan_.output), {}, *inspected);
  ASSERT_TRUE(draft.ok()) << draft.message();
  EXPECT_TRUE(inspected->draft->fit.usable) << inspected->draft->fit.message;
  const std::string table = inspection_table(*inspected);
  EXPECT_NE(table.find("by make-draft of target.gguf for target.gguf: " + make_text(best.make)),
            std::string::npos)
      << table;
  EXPECT_EQ(inspection_json(*inspected)["draft"]["made"]["source"], "target.gguf");
  EXPECT_TRUE(inspection_json(*inspected)["target"]["made"].is_null());
}

// How fast it is depends on the machine; that the text is the same does not.
TEST_F(MakeDraftTest, TheBestIsMeasuredAndTheTextIsThatOfPlainDecoding) {
  open(tiny());
  plan_.most_measured = 1;
  const MakeDraftResult result = made();
  std::size_t n_measured = 0;
  for (const DraftCandidate& candidate : result.candidates) {
    if (!candidate.measured) continue;
    ++n_measured;
    EXPECT_GT(candidate.measured->speedup, 0.0);
    EXPECT_TRUE(candidate.measured->interval) << "one repetition tells nothing";
    EXPECT_TRUE(candidate.measured->identical);
  }
  EXPECT_EQ(n_measured, 1U) << result.verdict;
  EXPECT_NE(make_draft_table(result).find("\nmeasured: "), std::string::npos);
  EXPECT_EQ(dir_.n_entries(), result.chosen ? 2 : 1);
}

TEST_F(MakeDraftTest, AllPartsAreTriedAndToldAsTableAndObject) {
  open(tiny());
  const MakeDraftResult result = made();
  ASSERT_FALSE(result.candidates.empty());
  bool types = false;
  bool tokens = false;
  bool layers = false;
  for (const DraftCandidate& c : result.candidates) {
    EXPECT_TRUE(c.status.ok()) << make_text(c.make) << ": " << c.status.message();
    EXPECT_GT(c.bytes, 0U);
    types = types || c.make.type == "q4_0";
    tokens = tokens || c.make.n_tokens > 0;
    layers = layers || c.make.n_left_out > 0;
  }
  EXPECT_TRUE(types && tokens && layers);
  // Nothing of the model left out: it says what the target says.
  EXPECT_GT(result.candidates[0].first_chance, 0.95);
  const std::string table = make_draft_table(result);
  for (std::size_t at = 0, end = 0; end != std::string::npos; at = end + 1) {
    end = table.find('\n', at);
    const std::string line = table.substr(at, end - at);
    if (line.find('/') == std::string::npos) {
      EXPECT_LE(line.size(), 100U) << line;
    }
  }
  const json::Json object = make_draft_json(result);
  EXPECT_EQ(object["candidates"].size(), result.candidates.size());
  EXPECT_EQ(object["candidates"][0]["made"], "as it is");
  EXPECT_EQ(object["output"], plan_.output);
  const KernelUse& kernels = target_->info().kernels;
  EXPECT_EQ(object["kernels"], kernels.name());
  EXPECT_EQ(object["kernels_reason"].is_null(), kernels.own);
  EXPECT_NE(table.find(kernels.own ? "\nkernels  Outrider's, " + kernels.instruction_set + "\n"
                                   : "\nkernels  llama.cpp's: "),
            std::string::npos)
      << table;
}

TEST_F(MakeDraftTest, WhereNonePaysNothingIsWrittenAndASentenceSaysSo) {
  // A draft of other weights, which is never right, for a target that is quick.
  open(tiny(), /*pass_ms=*/0);
  TinyModelOptions other = tiny();
  other.seed = 99;
  ASSERT_TRUE(testing::write_tiny_gguf(dir_.file("other.gguf"), other).ok());
  plan_.source = dir_.file("other.gguf");
  plan_.n_tokens.emplace();
  plan_.n_left_out.emplace();
  plan_.most_measured = 2;
  const MakeDraftResult result = made();
  EXPECT_FALSE(result.chosen);
  EXPECT_NE(result.verdict.find("no draft of 'other.gguf' pays: the best one"), std::string::npos)
      << result.verdict;
  EXPECT_TRUE(make_draft_json(result)["output"].is_null());
  EXPECT_EQ(dir_.n_entries(), 2) << "the target and the source";
}

// A copy of the target is always right; by a made-up curve it would not pay.
TEST_F(MakeDraftTest, WhereNoPassesWereMeasuredNoDraftIsJudged) {
  open(tiny(), /*pass_ms=*/10, /*measured=*/false);
  const Status status = refused();
  EXPECT_EQ(status.code(), StatusCode::kUnsupported);
  EXPECT_NE(status.message().find("what its passes of several tokens take could not be measured"),
            std::string::npos)
      << status.message();
  EXPECT_EQ(dir_.n_entries(), 1) << "the target";
}

TEST_F(MakeDraftTest, ARecurrentModelKeepsItsLayersAndANoteSaysWhy) {
  TinyModelOptions options = tiny();
  options.architecture = testing::TinyArchitecture::kShortConv;
  open(options);
  plan_.n_left_out = {1};
  std::vector<std::string> notes;
  const Result<gguf::DraftSource> source = gguf::read_draft_source(plan_.source);
  ASSERT_TRUE(source.ok());
  EXPECT_EQ(search_space(plan_, *source, nullptr, notes).status().code(), StatusCode::kUnsupported);
  plan_.n_left_out.reset();
  const auto search = search_space(plan_, *source, nullptr, notes);
  ASSERT_TRUE(search.ok());
  EXPECT_TRUE(search->n_left_out.empty());
  ASSERT_FALSE(notes.empty());
  EXPECT_NE(notes.back().find("no layers can be left out"), std::string::npos) << notes.back();
}

TEST_F(MakeDraftTest, OfARecurrentModelNoCandidateIsWritten) {
  TinyModelOptions options = tiny();
  options.architecture = testing::TinyArchitecture::kShortConv;
  open(options);
  int n_updates = 0;  // the sample's, then each candidate's
  const Status status =
      make_draft(harness({.progress = [&](const std::string&, double) { ++n_updates; }}), plan_)
          .status();
  EXPECT_EQ(status.code(), StatusCode::kUnsupported);
  EXPECT_EQ(status.message().find("'" + target_path() + "' cannot be a draft model: the lfm2"), 0U)
      << status.message();
  EXPECT_EQ(n_updates, 0);
  EXPECT_EQ(dir_.n_entries(), 1) << "the target";
}

TEST_F(MakeDraftTest, WhatCannotBeTriedIsRefusedAndNothingIsLeft) {
  open(tiny());
  testing::write_bytes(plan_.output, "old");
  const auto expect = [&](const std::string& what) {
    const Status status = refused();
    EXPECT_FALSE(status.ok());
    EXPECT_NE(status.message().find(what), std::string::npos) << status.message();
    EXPECT_EQ(testing::read_bytes(plan_.output), "old");
    EXPECT_EQ(dir_.n_entries(), 2);
  };
  plan_.n_tokens = {1 << 20};
  expect("--vocabulary has 1048576, but");
  plan_.n_tokens = {1};
  expect("(what the sample needs)");
  plan_.n_tokens.reset();
  plan_.n_left_out = {4};
  expect("--leave-out has 4, but");
  plan_.n_left_out.reset();
  plan_.source = dir_.file("missing.gguf");
  expect("missing.gguf");
}

TEST_F(MakeDraftTest, ATypeThatIsNoneIsACandidateThatCannotBeUsed) {
  open(tiny());
  plan_.types = {"q9_9"};
  plan_.n_tokens.emplace();
  plan_.n_left_out.emplace();
  const MakeDraftResult result = made();
  ASSERT_EQ(result.candidates.size(), 2U);
  EXPECT_NE(result.candidates[1].status.message().find("'q9_9'"), std::string::npos);
  EXPECT_NE(make_draft_table(result).find("not usable: unknown type"), std::string::npos);
}

TEST_F(MakeDraftTest, ACandidateForWhichMemoryIsShortIsNotUsableAndTheNextOneIsTried) {
  open(tiny());
  plan_.types.emplace();
  plan_.n_left_out = {2};
  plan_.n_tokens.emplace();
  const Result<std::uint64_t> whole = LlamaLoader().estimate_memory(plan_.draft);
  ASSERT_TRUE(whole.ok());
  plan_.free_memory = [&whole] { return *whole - 1; };
  const MakeDraftResult result = made();
  ASSERT_GT(result.candidates.size(), 1U);
  const Status& as_it_is = result.candidates[0].status;
  EXPECT_EQ(as_it_is.code(), StatusCode::kUnsupported);
  EXPECT_NE(as_it_is.message().find("of memory beside the target"), std::string::npos)
      << as_it_is.message();
  EXPECT_TRUE(result.candidates[1].status.ok()) << result.candidates[1].status.message();
  EXPECT_EQ(dir_.n_entries(), result.chosen ? 2 : 1);
}

// A copy would take as long, and as much of the disk, as the target is large.
TEST_F(MakeDraftTest, TheSourceAsItIsIsTriedWithoutACopy) {
  open(tiny());
  std::vector<std::string> titles;
  const Result<MakeDraftResult> result = make_draft(
      harness({.progress = [&](const std::string& title, double) { titles.push_back(title); }}),
      plan_);
  ASSERT_TRUE(result.ok()) << result.status().message();
  EXPECT_TRUE(result->candidates[0].status.ok());
  const auto was_told = [&](const std::string& title) {
    return std::find(titles.begin(), titles.end(), title) != titles.end();
  };
  EXPECT_TRUE(was_told("trying as it is"));
  EXPECT_FALSE(was_told("writing as it is"));
  EXPECT_TRUE(was_told("writing q4_0")) << "the control";
}

// Wherever it is interrupted: while the sample is written, a candidate written, loaded or tried.
TEST_F(MakeDraftTest, AnInterruptionAnywhereLeavesNothing) {
  open(tiny(), /*pass_ms=*/1);
  plan_.most_measured = 1;
  std::vector<std::string> titles;
  std::atomic<bool> interrupt{false};
  for (const std::string at :
       {"the target writes", "cutting the sample", "writing q4_0", "trying q4_0", "repetition 1"}) {
    interrupt = false;
    const Status status = make_draft(harness({.progress =
                                                  [&](const std::string& title, double) {
                                                    if (title.starts_with(at)) interrupt = true;
                                                  },
                                              .interrupt = &interrupt}),
                                     plan_)
                              .status();
    EXPECT_TRUE(interrupt) << at << " was never heard of";
    EXPECT_EQ(status.code(), StatusCode::kCancelled) << at << ": " << status.message();
    EXPECT_EQ(dir_.n_entries(), 1) << at;
    EXPECT_EQ(runtime_->status().draft.info, std::nullopt) << at << " left a draft loaded";
  }
}

}  // namespace
}  // namespace outrider::lab
