// The loader that the runtime and the command use, on tiny models: what comes out is what the
// adapter gives, and what does not fit is refused with a reason.
#include "backend/llama_loader.h"

#include <gtest/gtest.h>

#if defined(__linux__)
#include <sys/inotify.h>
#include <unistd.h>
#endif

#include <filesystem>
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "draft/translated/vocabulary_map.h"
#include "llama/files/gguf_header.h"
#include "llama/files/matrices.h"
#include "llama/heads/head_file.h"
#include "serve/experiences.h"
#include "testing/gguf_damage.h"
#include "testing/gguf_head_damage.h"
#include "testing/llama_fixture.h"
#include "testing/tiny_gguf_dflash.h"
#include "testing/tiny_gguf_eagle3.h"
#include "testing/tiny_pair.h"

namespace outrider {
namespace {

using testing::Row;
using testing::TempDir;

class LlamaLoaderTest : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    dir_ = new TempDir();
    testing::TinyPairOptions pair;
    pair.noise = 0.02F;
    ASSERT_TRUE(testing::write_tiny_pair(target(), draft(), pair).ok());
    testing::TinyModelOptions other;
    other.vocabulary.rotate_bytes = 1;
    ASSERT_TRUE(testing::write_tiny_gguf(dir_->file("other.gguf"), other).ok());
    // Words that the others have not.
    testing::TinyModelOptions wordy;
    wordy.vocabulary.pieces = testing::pieces_of(vocabulary_sample(), 6);
    const Status written = testing::write_tiny_gguf(dir_->file("wordy.gguf"), wordy);
    ASSERT_TRUE(written.ok()) << written.message();
  }
  static void TearDownTestSuite() {
    delete dir_;
    dir_ = nullptr;
  }

  static std::string target() { return dir_->file("target.gguf"); }
  static std::string draft() { return dir_->file("draft.gguf"); }

  static LlamaLoader loader() {
    LlamaLoaderOptions options;
    options.probe_budget_ms = 300;
    options.cache_folder = dir_->file("cache");
    return LlamaLoader(std::move(options));
  }

  static ModelOptions options(const std::string& path) {
    ModelOptions options;
    options.path = path;
    options.n_ctx = 512;
    options.n_threads = 1;
    options.n_gpu_layers = 0;
    options.widest = 4;
    return options;
  }

  static std::shared_ptr<Target> open(const ModelOptions& options) {
    Result<std::unique_ptr<Target>> opened = loader().load_target(options, {});
    EXPECT_TRUE(opened.ok()) << opened.status().message();
    return opened.ok() ? std::move(*opened) : nullptr;
  }

  static TempDir* dir_;
};

TempDir* LlamaLoaderTest::dir_ = nullptr;

TEST_F(LlamaLoaderTest, ATargetIsTheModelOfItsFileWithItsVocabulary) {
  const std::shared_ptr<Target> opened = open(options(target()));
  ASSERT_NE(opened, nullptr);
  EXPECT_EQ(opened->capabilities().n_ctx, 512);
  EXPECT_EQ(opened->capabilities().n_vocab, opened->vocabulary().size());
  EXPECT_EQ(opened->info().path, target());
  EXPECT_EQ(opened->info().architecture, "llama");
  EXPECT_EQ(opened->info().name, "tiny");
  EXPECT_GT(opened->info().n_params, 100'000u);
  EXPECT_GT(opened->info().size_bytes, 100'000u);
  EXPECT_EQ(opened->info().n_ctx_train, 4096);
  EXPECT_FALSE(opened->exactness().coverage.empty());

  const Result<std::shared_ptr<llama::ModelFile>> file =
      llama::ModelFile::load(target(), 0, /*extra_bufts=*/true, {});
  ASSERT_TRUE(file.ok());
  llama::ContextSettings settings;
  if ((*file)->facts().kernels.own) settings.type_k = settings.type_v = "f16";  // the rule's choice
  const Result<std::unique_ptr<llama::LlamaModel>> same =
      llama::LlamaModel::create(*file, options(target()), settings);
  ASSERT_TRUE(same.ok());
  for (const Token token : {10, 30, 20}) {
    testing::expect_bits(testing::step(opened->model(), 0, token), testing::step(**same, 0, token));
  }
}

TEST_F(LlamaLoaderTest, ASamplerIsMadeByTheOptionsOrRefusedByName) {
  const std::shared_ptr<Target> opened = open(options(target()));
  ASSERT_NE(opened, nullptr);
  const Result<std::unique_ptr<Sampler>> greedy = opened->make_sampler({.temperature = 0.0f});
  ASSERT_TRUE(greedy.ok()) << greedy.status().message();
  EXPECT_TRUE((*greedy)->greedy());
  const Result<std::unique_ptr<Sampler>> bad = opened->make_sampler({.top_p = 2.0f});
  EXPECT_EQ(bad.status().code(), StatusCode::kInvalidArgument);
  EXPECT_NE(bad.status().message().find("top_p"), std::string::npos) << bad.status().message();
}

TEST_F(LlamaLoaderTest, WithoutSpeculationALoneSequenceIsNotProbed) {
  LlamaLoaderOptions how;
  how.speculation = false;
  const Result<std::unique_ptr<Target>> opened =
      LlamaLoader(how).load_target(options(target()), {});
  ASSERT_TRUE(opened.ok()) << opened.status().message();
  EXPECT_EQ((*opened)->exactness().coverage, "not probed: every step is a single step");
}

TEST_F(LlamaLoaderTest, ADraftKeepsItsTargetAlive) {
  std::shared_ptr<Target> opened = open(options(target()));
  ASSERT_NE(opened, nullptr);
  const std::weak_ptr<Target> watched = opened;
  Result<std::unique_ptr<Draft>> draft_model = loader().load_draft(options(draft()), opened, {});
  ASSERT_TRUE(draft_model.ok()) << draft_model.status().message();
  opened.reset();
  EXPECT_FALSE(watched.expired());
  EXPECT_EQ((*draft_model)->info.path, draft());
  EXPECT_EQ((*draft_model)->drafter->name(), "draft-model");
  EXPECT_TRUE((*draft_model)->drafter->begin(0, 0).ok());
  draft_model = not_found("freed");
  EXPECT_TRUE(watched.expired());
}

// By model, adapters, machine, build and settings.
TEST_F(LlamaLoaderTest, WhatDraftersTaughtIsKeptForThisTargetAndThisDraft) {
  const std::shared_ptr<Target> opened = open(options(target()));
  ASSERT_NE(opened, nullptr);
  ASSERT_NE(opened->experiences(), nullptr);
  const auto identity = [&](const ModelOptions& options) {
    Result<std::unique_ptr<Draft>> draft = loader().load_draft(options, opened, {});
    EXPECT_TRUE(draft.ok()) << draft.status().message();
    return draft.ok() ? (*draft)->identity : "";
  };
  const std::string plain = identity(options(draft()));
  EXPECT_NE(plain, "");
  EXPECT_EQ(identity(options(draft())), plain);
  ModelOptions other = options(draft());
  other.n_threads = 2;
  EXPECT_NE(identity(other), plain);
  EXPECT_NE(identity(options(target())), plain);
  const DrafterExperience learned{.acceptance = {1.0, 2.0}};
  ASSERT_TRUE(opened->experiences()->save(plain, learned).ok());
  const std::shared_ptr<Target> again = open(options(target()));
  EXPECT_TRUE(again->experiences()->load(plain));
  ModelOptions wider = options(target());
  wider.n_threads = 2;
  EXPECT_FALSE(open(wider)->experiences()->load(plain));
}

TEST_F(LlamaLoaderTest, ADraftModelWithTheTargetsTokensAtOtherIdsDraftsAndSaysWhatItShares) {
  const std::shared_ptr<Target> opened = open(options(target()));
  ASSERT_NE(opened, nullptr);
  const Result<std::unique_ptr<Draft>> draft_model =
      loader().load_draft(options(dir_->file("other.gguf")), opened, {});
  ASSERT_TRUE(draft_model.ok()) << draft_model.status().message();
  ASSERT_FALSE((*draft_model)->notes.empty());
  EXPECT_NE((*draft_model)->notes.back().find("100 % of a sample text"), std::string::npos)
      << (*draft_model)->notes.back();
}

TEST_F(LlamaLoaderTest, ADraftModelThatSharesTooLittleIsRefusedWithBothNamesAndTheShare) {
  const std::string wordy = dir_->file("wordy.gguf");
  const std::shared_ptr<Target> opened = open(options(wordy));
  ASSERT_NE(opened, nullptr);
  const Result<std::unique_ptr<Draft>> refused = loader().load_draft(options(draft()), opened, {});
  EXPECT_EQ(refused.status().code(), StatusCode::kUnsupported);
  const std::string message = refused.status().message();
  EXPECT_EQ(message.find("the draft model '" + draft() + "' cannot draft for '" + wordy + "': "),
            0u)
      << message;
  EXPECT_NE(message.find("of a sample text; at least 50 %"), std::string::npos) << message;
}

// It would be loaded, and never draft.
TEST_F(LlamaLoaderTest, ADraftThatCannotForgetIsRefusedWhenItIsLoaded) {
  const std::shared_ptr<Target> opened = open(options(target()));
  ASSERT_NE(opened, nullptr);
  for (const testing::TinyArchitecture architecture :
       {testing::TinyArchitecture::kShortConv, testing::TinyArchitecture::kMamba}) {
    testing::TinyModelOptions recurrent;
    recurrent.architecture = architecture;
    const std::string path = dir_->file("recurrent.gguf");
    ASSERT_TRUE(testing::write_tiny_gguf(path, recurrent).ok());
    int calls = 0;
    LoadHooks hooks;
    hooks.progress = [&](double) { ++calls; };
    const Status refused = loader().load_draft(options(path), opened, hooks).status();
    EXPECT_EQ(refused.code(), StatusCode::kUnsupported);
    EXPECT_EQ(refused.message(),
              "'" + path + "' cannot be a draft model: the " +
                  testing::tiny_architecture_name(architecture) +
                  " architecture has recurrent layers, whose state cannot drop tokens that were "
                  "guessed");
    EXPECT_EQ(calls, 0) << "no weights were read";
  }
}

class HeadFiles : public LlamaLoaderTest {
 protected:
  void SetUp() override {
    testing::TinyLagOptions target;
    target.weight_type = testing::WeightType::kQ8_0;
    ASSERT_TRUE(testing::write_tiny_lag(files_.file("target.gguf"), target).ok());
    ASSERT_TRUE(testing::write_tiny_eagle3(files_.file("head.gguf"), target).ok());
  }
  std::string head() const { return files_.file("head.gguf"); }
  ModelOptions with_head() const {
    ModelOptions with = options(files_.file("target.gguf"));
    with.head = head();
    return with;
  }

  TempDir files_;
};

TEST_F(HeadFiles, AHeadIsADraftCalledAsItsArchitecture) {
  const std::shared_ptr<Target> target = open(with_head());
  ASSERT_NE(target, nullptr);
  EXPECT_EQ(target->capabilities().n_hidden, 3 * 128);
  const Result<std::unique_ptr<Draft>> draft = loader().load_draft(options(head()), target, {});
  ASSERT_TRUE(draft.ok()) << draft.status().message();
  EXPECT_EQ((*draft)->drafter->name(), "eagle3");
  EXPECT_TRUE((*draft)->drafter->wants_hidden());
  EXPECT_EQ((*draft)->info.architecture, "eagle3");
  EXPECT_NE((*draft)->identity, "");
  EXPECT_TRUE((*draft)->drafter->begin(0, 0).ok());
  EXPECT_GT(*loader().estimate_memory(options(head())), 0u);
}

TEST_F(HeadFiles, AHeadOfBlocksIsADraftToo) {
  testing::TinyLagOptions lagged;
  lagged.lags = {3, 4};
  lagged.reads_current = false;
  ASSERT_TRUE(testing::write_tiny_lag(files_.file("target.gguf"), lagged).ok());
  ASSERT_TRUE(testing::write_tiny_dflash(head(), lagged).ok());
  const std::shared_ptr<Target> target = open(with_head());
  ASSERT_NE(target, nullptr);
  EXPECT_EQ(target->capabilities().n_hidden, 2 * 128);
  const Result<std::unique_ptr<Draft>> draft = loader().load_draft(options(head()), target, {});
  ASSERT_TRUE(draft.ok()) << draft.status().message();
  EXPECT_EQ((*draft)->drafter->name(), "dflash");
  EXPECT_TRUE((*draft)->drafter->guesses_at_once());
  EXPECT_EQ((*draft)->info.architecture, "dflash");
  EXPECT_NE((*draft)->identity, "");
  EXPECT_TRUE((*draft)->drafter->begin(0, 0).ok());
}

TEST_F(HeadFiles, AHeadWhoseTargetWasOpenedWithoutItSaysWhatToDo) {
  const std::shared_ptr<Target> target = open(options(files_.file("target.gguf")));
  ASSERT_NE(target, nullptr);
  EXPECT_EQ(target->capabilities().n_hidden, 0);
  const Status late = loader().load_draft(options(head()), target, {}).status();
  EXPECT_EQ(late.code(), StatusCode::kUnsupported);
  EXPECT_NE(late.message().find("load the target again"), std::string::npos) << late.message();
  EXPECT_NE(late.message().find("inputs 0 1 2"), std::string::npos) << late.message();
}

TEST_F(HeadFiles, AHeadIsNoTarget) {
  const Status status = loader().load_target(options(head()), {}).status();
  EXPECT_EQ(status.code(), StatusCode::kUnsupported);
  EXPECT_NE(status.message().find("give it as the draft"), std::string::npos) << status.message();
}

// The target opens, whatever the file named as its head is, and the head is refused.
TEST_F(HeadFiles, HeadsThatDoNotFitAreRefusedAndTheirTargetsOpen) {
  const Result<std::vector<testing::BadHead>> heads = testing::write_bad_heads(files_.path());
  ASSERT_TRUE(heads.ok()) << heads.status().message();
  std::map<std::string, std::shared_ptr<Target>> targets;
  for (const testing::BadHead& bad : *heads) {
    if (bad.kind == testing::LlamaHeadKind::kMtp) continue;
    ModelOptions with = options(bad.target_path);
    with.head = bad.head_path;
    std::shared_ptr<Target>& target = targets[bad.target_path];
    if (target == nullptr) target = open(with);
    ASSERT_NE(target, nullptr) << bad.what;
    const Status status = loader().load_draft(options(bad.head_path), target, {}).status();
    EXPECT_FALSE(status.ok()) << bad.what;
    EXPECT_NE(status.message().find(bad.head_path), std::string::npos) << status.message();
  }
  EXPECT_GE(targets.size(), 3u);
}

TEST_F(LlamaLoaderTest, ADraftModelIsNeverElsewhere) {
  const std::shared_ptr<Target> opened = open(options(target()));
  ASSERT_NE(opened, nullptr);
  ModelOptions isolated = options(draft());
  isolated.isolate = true;
  ModelOptions spread = options(draft());
  spread.workers = {"127.0.0.1:50052"};
  for (const ModelOptions& wrong : {isolated, spread}) {
    EXPECT_EQ(loader().load_draft(wrong, opened, {}).status().code(), StatusCode::kInvalidArgument);
  }
}

TEST_F(LlamaLoaderTest, BadFilesAndBadOptionsAreErrorsThatNameThem) {
  const Result<std::vector<testing::BadModelFile>> files =
      testing::write_bad_model_files(target(), dir_->path());
  ASSERT_TRUE(files.ok()) << files.status().message();
  for (const testing::BadModelFile& bad : *files) {
    const Status status = loader().load_target(options(bad.path), {}).status();
    EXPECT_FALSE(status.ok()) << bad.what;
    EXPECT_NE(status.message().find(bad.path), std::string::npos) << status.message();
  }
  ModelOptions none = options(target());
  none.n_sequences = 0;
  EXPECT_EQ(loader().load_target(none, {}).status().code(), StatusCode::kInvalidArgument);
}

TEST_F(LlamaLoaderTest, ARaisedFlagEndsTheLoading) {
  const std::atomic<bool> cancel{true};
  const LoadHooks hooks{.progress = {}, .cancel = &cancel, .log = {}};
  EXPECT_EQ(loader().load_target(options(target()), hooks).status().code(), StatusCode::kCancelled);
}

// Without a load: a catalog asks while other models compute.
TEST_F(LlamaLoaderTest, MemoryIsEstimatedFromTheFilesHeader) {
  ModelOptions one = options(target());
  const Result<std::uint64_t> bytes = loader().estimate_memory(one);
  ASSERT_TRUE(bytes.ok()) << bytes.status().message();
  EXPECT_GT(*bytes, std::filesystem::file_size(target()) / 2);
  one.n_sequences = 4;
  EXPECT_GT(*loader().estimate_memory(one), *bytes);
  one.workers = {"127.0.0.1:1"};
  EXPECT_EQ(*loader().estimate_memory(one), 0u);
  EXPECT_EQ(loader().estimate_memory(options("/no/such.gguf")).status().code(),
            StatusCode::kNotFound);
}

#if defined(__linux__)
// How often `work` opens the file. (Closing is listened to as well: of two like events in a row
// only one is told.)
int opens_of(const std::string& path, const std::function<void()>& work) {
  const int notices = inotify_init1(IN_NONBLOCK);
  EXPECT_GE(inotify_add_watch(notices, path.c_str(), IN_OPEN | IN_CLOSE), 0);
  work();
  int opens = 0;
  inotify_event event;
  while (read(notices, &event, sizeof event) == sizeof event) {
    opens += (event.mask & IN_OPEN) != 0 ? 1 : 0;
  }
  close(notices);
  return opens;
}

// A header takes 10 to 100 ms for a vocabulary of 150,000 tokens.
TEST_F(LlamaLoaderTest, AnEstimateReadsTheHeaderOnce) {
  const std::string path = target();
  const Result<llama::GgufHeader> header = llama::read_gguf_header(path);
  ASSERT_TRUE(header.ok());
  const int of_header = opens_of(path, [&] { (void)llama::read_gguf_header(path); });
  const int of_matrices = opens_of(path, [&] { (void)llama::read_matrices(path, *header); });
  EXPECT_GE(of_header, 1);
  EXPECT_GE(of_matrices, 1);
  const int opens =
      opens_of(path, [&] { EXPECT_TRUE(loader().estimate_memory(options(path)).ok()); });
  EXPECT_EQ(opens, of_header + of_matrices);
}

TEST_F(HeadFiles, AnEstimateReadsAHeadsHeaderOnce) {
  const std::string path = head();
  const int of_head = opens_of(path, [&] { (void)llama::read_head_file(path); });
  EXPECT_GE(of_head, 1);
  EXPECT_EQ(opens_of(path, [&] { EXPECT_TRUE(loader().estimate_memory(options(path)).ok()); }),
            of_head);
}
#endif

}  // namespace
}  // namespace outrider
