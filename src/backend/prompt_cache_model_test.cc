// Real files: what requests at once share, and what a restart leaves, with the text of each alone.
#include <gtest/gtest.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <string>
#include <system_error>
#include <vector>

#include "backend/llama_loader.h"
#include "backend/target_costs.h"
#include "serve/runtime.h"
#include "testing/gguf_file.h"
#include "testing/tiny_dir.h"
#include "testing/tiny_pair.h"

namespace outrider {
namespace {

namespace fs = std::filesystem;

class SharedPrompts : public ::testing::Test {
 protected:
  SharedPrompts()
      : loader_(LlamaLoaderOptions{.probe_budget_ms = 100, .cache_folder = fs::path()}) {}

  void SetUp() override {
    testing::TinyPairOptions pair;
    pair.target.weight_type = testing::WeightType::kQ8_0;
    pair.noise = 0.05f;
    ASSERT_TRUE(testing::write_tiny_pair(file("target"), file("draft"), pair).ok());
  }

  std::string file(const std::string& name) const { return dir_.file(name + ".gguf"); }
  std::string folder() const { return dir_.file("prompts"); }

  ModelOptions model(const std::string& name) const {
    ModelOptions o;
    o.path = file(name);
    o.n_ctx = 512;
    o.n_batch = 64;
    o.n_threads = 1;
    o.widest = 8;
    o.cache_type_k = cache_type_;
    return o;
  }

  std::unique_ptr<Runtime> make(const RuntimeOptions& options) {
    Result<std::unique_ptr<Runtime>> made = Runtime::create(options, loader_);
    EXPECT_TRUE(made.ok());
    EXPECT_TRUE((*made)->load(ModelRole::kTarget, model(target_)).ok());
    EXPECT_TRUE((*made)->load(ModelRole::kDraft, model("draft")).ok());
    EXPECT_TRUE((*made)->wait_loaded(-1));
    EXPECT_TRUE((*made)->status().target.serving) << (*made)->status().target.error.message();
    return std::move(*made);
  }

  static CompletionRequest request(std::string prompt) {
    CompletionRequest r;
    r.prompt.emplace_back(std::move(prompt));
    r.seed = 7;
    r.max_tokens = 24;
    r.sampling.temperature = 0.7f;
    r.width = 4;
    return r;
  }

  static std::shared_ptr<const CompletionResult> result_of(Runtime& runtime, CompletionId id) {
    while (true) {
      const Result<PolledCompletion> polled = runtime.poll(id, 50);
      EXPECT_TRUE(polled.ok());
      if (!polled.ok() || polled->result) return polled.ok() ? polled->result : nullptr;
    }
  }

  std::vector<Token> alone(const std::string& prompt) {
    const std::unique_ptr<Runtime> runtime = make({.slots = 1, .reuse_prefix = false});
    CompletionRequest plain = request(prompt);
    plain.speculative = false;
    return (*runtime->run(plain))->completion.tokens;
  }

  std::string notes_of(const Runtime& runtime) const {
    std::string all;
    for (const std::string& note : runtime.status().target.notes) all += note + "\n";
    return all;
  }

  // Once, between the reading of the first model's weights and whatever is asked behind it.
  void replace_at_weights(const std::string& from, const std::string& to) {
    loader_ = LlamaLoader(LlamaLoaderOptions{.probe_budget_ms = 100,
                                             .cache_folder = fs::path(),
                                             .at_weights = [old = file(from), place = file(to)] {
                                               std::error_code gone;
                                               fs::rename(old, place, gone);
                                             }});
  }

  testing::TempDir dir_;
  LlamaLoader loader_;
  std::string target_ = "target";
  std::string cache_type_;  // empty: by the exactness rule
  const std::string common_ = std::string(60, 'x') + " a long instruction that all have, " +
                              std::string(200, 'y') + " and then: ";
};

TEST_F(SharedPrompts, OfRequestsAtOnceTheLaterOnesReadOnlyTheirOwn) {
  const std::unique_ptr<Runtime> runtime = make({.slots = 4});
  std::vector<CompletionId> ids;
  const std::vector<std::string> own = {"one", "two", "three", "four"};
  for (const std::string& end : own) {
    const Result<StartedCompletion> started = runtime->start(request(common_ + end));
    ASSERT_TRUE(started.ok());
    ids.push_back(started->id);
  }
  for (std::size_t i = 0; i < own.size(); ++i) {
    const std::shared_ptr<const CompletionResult> got = result_of(*runtime, ids[i]);
    ASSERT_NE(got, nullptr);
    EXPECT_EQ(got->completion.tokens, alone(common_ + own[i]));
    if (i > 0) {
      EXPECT_GE(got->completion.cached_tokens, 256) << own[i];
    }
  }
  EXPECT_EQ(runtime->check_integrity(), "");
}

TEST_F(SharedPrompts, TheFirstRequestAfterARestartGoesOnWhereTheLastOneEnded) {
  const RuntimeOptions options = {.slots = 2, .prompt_cache = folder()};
  std::int64_t draft_read = 0;
  {
    const std::unique_ptr<Runtime> before = make(options);
    const Result<std::shared_ptr<const CompletionResult>> got = before->run(request(common_ + "a"));
    EXPECT_EQ((*got)->completion.cached_tokens, 0);
    draft_read = static_cast<std::int64_t>((*got)->completion.prompt_tokens);
  }
  EXPECT_GT(draft_read, 256);
  const std::unique_ptr<Runtime> after = make(options);
  EXPECT_EQ(notes_of(*after).find("prompt_cache"), std::string::npos) << notes_of(*after);
  const Result<std::shared_ptr<const CompletionResult>> got = after->run(request(common_ + "b"));
  EXPECT_GE((*got)->completion.cached_tokens, 256);
  EXPECT_EQ((*got)->completion.tokens, alone(common_ + "b"));
  EXPECT_GT((*got)->completion.speculation.accepted, 0);
}

TEST_F(SharedPrompts, FilesOfOtherSettingsAreIgnoredAndDamagedOnesAreNamed) {
  const RuntimeOptions options = {.slots = 2, .prompt_cache = folder()};
  (void)make(options)->run(request(common_ + "a"));
  std::vector<fs::path> files;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder())) {
    files.push_back(entry.path());
  }
  ASSERT_EQ(files.size(), 1U);
  cache_type_ = "f32";
  {
    const std::unique_ptr<Runtime> other = make(options);
    EXPECT_NE(notes_of(*other).find("nothing in '" + folder() + "' is of this model, build and "),
              std::string::npos)
        << notes_of(*other);
    EXPECT_EQ((*other->run(request(common_ + "a")))->completion.cached_tokens, 0);
  }
  fs::remove_all(folder());
  cache_type_.clear();
  (void)make(options)->run(request(common_ + "a"));
  fs::resize_file(files[0], fs::file_size(files[0]) - 100);
  const std::unique_ptr<Runtime> after = make(options);
  EXPECT_NE(notes_of(*after).find(files[0].filename().string()), std::string::npos);
  EXPECT_NE(notes_of(*after).find("damaged"), std::string::npos) << notes_of(*after);
  EXPECT_EQ((*after->run(request(common_ + "b")))->completion.cached_tokens, 0);
}

// The cells of one would be the other's text.
TEST_F(SharedPrompts, WhatASplitModelReadIsNotAnothersThatDiffersInALaterFileOnly) {
  testing::TinyModelOptions other = testing::TinyPairOptions().target;
  other.weight_type = testing::WeightType::kQ8_0;
  ++other.seed;
  ASSERT_TRUE(testing::write_tiny_gguf(file("other"), other).ok());
  ASSERT_TRUE(testing::write_gguf_split(file("target"), dir_.file("t"), {4}).ok());
  ASSERT_TRUE(testing::write_gguf_split(file("other"), dir_.file("o"), {4}).ok());
  target_ = "t-00001-of-00002";
  const RuntimeOptions options = {.slots = 2, .prompt_cache = folder()};
  (void)make(options)->run(request(common_ + "a"));
  {
    const std::unique_ptr<Runtime> again = make(options);
    EXPECT_GE((*again->run(request(common_ + "b")))->completion.cached_tokens, 256);
  }
  const Capabilities capabilities;
  const std::string key = times_key(capabilities, model(target_));
  EXPECT_NE(key, "");
  fs::copy_file(file("o-00002-of-00002"), file("t-00002-of-00002"),
                fs::copy_options::overwrite_existing);
  EXPECT_NE(times_key(capabilities, model(target_)), key);
  const std::unique_ptr<Runtime> after = make(options);
  EXPECT_NE(notes_of(*after).find("is of this model"), std::string::npos) << notes_of(*after);
  EXPECT_EQ((*after->run(request(common_ + "a")))->completion.cached_tokens, 0);
}

// A change between the samples of a fingerprint shows in nothing else. What was measured of a model
// holds for its copy.
TEST_F(SharedPrompts, AFileThatWasWrittenAgainReadsItsPromptsAgain) {
  ASSERT_TRUE(testing::write_gguf_split(file("target"), dir_.file("t"), {4}).ok());
  for (const char* name : {"target", "t-00001-of-00002"}) {
    target_ = name;
    fs::remove_all(folder());
    const RuntimeOptions options = {.slots = 2, .prompt_cache = folder()};
    (void)make(options)->run(request(common_ + "a"));
    const std::string key = times_key({}, model(target_));
    const std::string state = state_key(key, model(target_));
    const std::string last = target_ == "target" ? "target" : "t-00002-of-00002";
    fs::last_write_time(file(last), fs::last_write_time(file(last)) + std::chrono::seconds(2));
    EXPECT_EQ(times_key({}, model(target_)), key);
    EXPECT_NE(state_key(key, model(target_)), state);
    const std::unique_ptr<Runtime> after = make(options);
    EXPECT_NE(notes_of(*after).find("is of this model"), std::string::npos) << notes_of(*after);
    EXPECT_EQ((*after->run(request(common_ + "a")))->completion.cached_tokens, 0);
  }
  // Phi-3's keys are turned by other factors in a long context.
  testing::TinyModelOptions two_sets = testing::TinyPairOptions().target;
  two_sets.short_context = 1024;
  ASSERT_TRUE(testing::write_tiny_gguf(file("two"), two_sets).ok());
  ModelOptions two = model("two");
  const auto state_at = [&two](std::int32_t n_ctx) {
    two.n_ctx = n_ctx;
    return state_key("key", two);
  };
  EXPECT_EQ(state_at(512), state_at(1024));
  EXPECT_NE(state_at(1024), state_at(1025));
  EXPECT_EQ(state_key("", model("target")), "");
  EXPECT_EQ(state_key("key", model("none")), "");
}

// Its cells would be found under the name of what lies there now, by whoever opens that.
TEST_F(SharedPrompts, AFileThatIsReplacedWhileItIsLoadedLeavesNothing) {
  testing::TinyModelOptions other = testing::TinyPairOptions().target;
  other.weight_type = testing::WeightType::kQ8_0;
  ++other.seed;
  ASSERT_TRUE(testing::write_tiny_gguf(file("new"), other).ok());
  fs::last_write_time(file("new"), fs::last_write_time(file("target")) + std::chrono::seconds(2));
  replace_at_weights("new", "target");
  const RuntimeOptions options = {.slots = 2, .prompt_cache = folder()};
  {
    const std::unique_ptr<Runtime> before = make(options);
    EXPECT_FALSE(fs::exists(file("new")));
    EXPECT_NE(notes_of(*before).find("was changed while it was loaded"), std::string::npos)
        << notes_of(*before);
    EXPECT_TRUE(before->run(request(common_ + "a")).ok());
  }
  const std::unique_ptr<Runtime> after = make(options);
  EXPECT_EQ(notes_of(*after).find("was changed"), std::string::npos) << "the control";
  const Result<std::shared_ptr<const CompletionResult>> got = after->run(request(common_ + "b"));
  EXPECT_EQ((*got)->completion.cached_tokens, 0);
  EXPECT_EQ((*got)->completion.tokens, alone(common_ + "b"));
}

TEST_F(SharedPrompts, ADraftThatIsReplacedWhileItIsLoadedLeavesNothing) {
  const std::shared_ptr<Target> target = *loader_.load_target(model(target_), {});
  fs::copy_file(file("draft"), file("new"));
  fs::last_write_time(file("new"), fs::last_write_time(file("draft")) + std::chrono::seconds(2));
  replace_at_weights("new", "draft");
  const Result<std::unique_ptr<Draft>> before = loader_.load_draft(model("draft"), target, {});
  ASSERT_TRUE(before.ok()) << before.status().message();
  EXPECT_EQ((*before)->identity, "");
  EXPECT_EQ((*before)->state_identity, "");
  ASSERT_FALSE((*before)->notes.empty());
  EXPECT_NE((*before)->notes.back().find("was changed while it was loaded"), std::string::npos);
  const Result<std::unique_ptr<Draft>> after = loader_.load_draft(model("draft"), target, {});
  ASSERT_TRUE(after.ok()) << after.status().message();
  EXPECT_NE((*after)->state_identity, "") << "the control";
}

// What was learned of a draft holds for its copy, what it holds of a text does not.
TEST_F(SharedPrompts, ADraftThatWasWrittenAgainOrTakesOtherFactorsReadsItsPromptsAgain) {
  const std::shared_ptr<Target> target = *loader_.load_target(model(target_), {});
  const auto load = [&](const ModelOptions& options) {
    Result<std::unique_ptr<Draft>> draft = loader_.load_draft(options, target, {});
    EXPECT_TRUE(draft.ok()) << draft.status().message();
    return draft.ok() ? *std::move(draft) : std::make_unique<Draft>();
  };
  const std::unique_ptr<Draft> before = load(model("draft"));
  EXPECT_NE(before->state_identity, "");
  EXPECT_EQ(load(model("draft"))->state_identity, before->state_identity) << "the control";
  fs::last_write_time(file("draft"), fs::last_write_time(file("draft")) + std::chrono::seconds(2));
  const std::unique_ptr<Draft> after = load(model("draft"));
  EXPECT_EQ(after->identity, before->identity);
  EXPECT_NE(after->state_identity, before->state_identity);
  testing::TinyModelOptions two_sets = testing::TinyPairOptions().target;
  two_sets.short_context = 1024;
  ASSERT_TRUE(testing::write_tiny_gguf(file("two"), two_sets).ok());
  ModelOptions two = model("two");
  two.n_ctx = 1024;
  const std::unique_ptr<Draft> within = load(two);
  two.n_ctx = 1025;
  const std::unique_ptr<Draft> beyond = load(two);
  EXPECT_EQ(beyond->identity, within->identity);
  EXPECT_NE(beyond->state_identity, within->state_identity);
}

}  // namespace
}  // namespace outrider
