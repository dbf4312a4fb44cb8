// The default model is opened again without a request where it was lost or could not be opened, and
// want of room is neither: a server that says it cannot answer may be asked nothing more.
#include <gtest/gtest.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "catalog/catalog.h"
#include "testing/eventually.h"
#include "testing/runtime_fixture.h"
#include "testing/step_gate.h"
#include "testing/suffix_file.h"
#include "testing/tiny_dir.h"

namespace outrider {
namespace {

using testing::eventually;
using testing::model;

class CatalogReopen : public ::testing::Test {
 protected:
  CatalogReopen() { loader_.add_usual_files(); }

  void make(const std::string& first, const std::string& second, std::int32_t max_models = 0,
            std::vector<DrafterFile> files = {}, std::optional<ModelOptions> draft = {}) {
    CatalogOptions options{
        .max_models = max_models, .retry_ms = 1000, .free_memory = [this] { return free_.load(); }};
    options.now = [this] {
      ++looks_;
      return now_ms_.load();
    };
    catalog_ = std::move(Catalog::create({{.name = first,
                                           .target = model(first),
                                           .draft = std::move(draft),
                                           .files = std::move(files)},
                                          {.name = second, .target = model(second)}},
                                         std::move(options), loader_)
                             .value());
  }

  // A store of the suffix drafter.
  std::string store(const std::string& name) const {
    const testing::FakeVocabulary vocabulary(testing::kVocab, kNoToken);
    testing::write_suffix_store(dir_.file(name), tokenizer_id(vocabulary), {{1, 2, 3, 4}});
    return dir_.file(name);
  }

  CatalogStatus status(const std::string& name = "") const { return *catalog_->status_of(name); }
  bool becomes(ModelState state, const std::string& name = "") const {
    return eventually([&] { return status(name).state == state; });
  }

  // Its target is lost while nobody uses it.
  void lose(const std::string& name) {
    const std::shared_ptr<Runtime> lease = *catalog_->acquire(name, {});
    testing::StepGate::fake_target(*lease->target()).die_in_next_step(internal_error("it died"));
    (void)lease->run(testing::ask({1}, 1, 5));
  }

  // Of the model "target", once all is loaded: the drafters' files, and the draft.
  RuntimeStatus complete() const {
    const std::shared_ptr<Runtime> lease = *catalog_->acquire("target", {});
    EXPECT_TRUE(lease->wait_loaded(-1));
    return lease->status();
  }
  std::vector<std::string> files() const {
    std::vector<std::string> paths;
    for (const DrafterStatus& drafter : complete().drafters) {
      for (const DrafterFileStatus& file : drafter.files) paths.push_back(file.file.path);
    }
    return paths;
  }

  // Until the catalog's thread has asked for the time once more from begin to end, as it does while
  // a default model is to be opened again.
  void let_it_look() {
    const int before = looks_.load();
    EXPECT_TRUE(eventually([&] { return looks_.load() > before + 1; }));
  }

  testing::TempDir dir_;
  testing::FakeLoader loader_;
  std::atomic<double> now_ms_{0.0};
  std::atomic<int> looks_{0};
  std::atomic<std::uint64_t> free_{0};  // 0: not known
  std::unique_ptr<Catalog> catalog_;
};

TEST_F(CatalogReopen, WantOfRoomIsNoFailureOfTheModelAndIsToldToWhoAsked) {
  make("target", "other", 1);
  std::shared_ptr<Runtime> busy = *catalog_->acquire("other", {});
  const Status refused = catalog_->acquire("target", {}).status();
  EXPECT_EQ(refused.code(), StatusCode::kResourceExhausted);
  EXPECT_EQ(status().state, ModelState::kAbsent);
  EXPECT_TRUE(status().error.ok());
  EXPECT_EQ(status().last_load.message(), refused.message());
  EXPECT_EQ(catalog_->acquire("target", {}).status().message(), refused.message());
  EXPECT_EQ(status().loads_ended, 1U) << "not again at once";
  EXPECT_EQ(catalog_->check_integrity(), "");
  busy.reset();
  now_ms_ = 1000.0;
  EXPECT_TRUE(catalog_->acquire("target", {}).ok());
}

TEST_F(CatalogReopen, ADefaultModelThatWasLostIsOpenedAgainWithoutARequest) {
  make("target", "other");
  lose("target");
  ASSERT_TRUE(becomes(ModelState::kFailed));
  let_it_look();
  EXPECT_EQ(loader_.loads(), 1) << "not at once";
  now_ms_ = 1000.0;
  EXPECT_TRUE(becomes(ModelState::kReady));
  EXPECT_EQ(status().n_lost, 1U);
  EXPECT_EQ(loader_.loads(), 2);
  EXPECT_EQ(catalog_->check_integrity(), "");
}

// What the server's /health tells apart.
TEST_F(CatalogReopen, AModelThatWasOnlyClosedIsNoneThatCannotAnswerWhileItIsOpenedAgain) {
  make("target", "other", 1);
  // Whether it is `reopening` while it is opened.
  const auto opened = [this] {
    loader_.hold(true);
    EXPECT_TRUE(catalog_->preload("target").ok());
    EXPECT_TRUE(eventually([this] { return loader_.loading(); }));
    EXPECT_EQ(status().state, ModelState::kLoading);
    const bool reopening = status().reopening;
    loader_.hold(false);
    EXPECT_TRUE(becomes(ModelState::kReady));
    EXPECT_FALSE(status().reopening);
    return reopening;
  };
  EXPECT_FALSE(opened()) << "at the start it never could";
  ASSERT_TRUE(catalog_->acquire("other", {}).ok());
  ASSERT_EQ(status().state, ModelState::kAbsent);
  EXPECT_TRUE(opened());
  ASSERT_TRUE(catalog_->unload("target").ok());
  EXPECT_TRUE(opened());
  lose("target");
  ASSERT_TRUE(becomes(ModelState::kFailed));
  EXPECT_FALSE(opened());
  lose("target");
  ASSERT_TRUE(becomes(ModelState::kFailed));
  loader_.add("target", {.failure = internal_error("it is broken")});
  EXPECT_FALSE(catalog_->acquire("target", {}).ok());
  loader_.add("target", {.seed = 1});
  EXPECT_FALSE(opened()) << "behind a load that failed";
}

TEST_F(CatalogReopen, ATargetThatWasLostComesBackWithTheFilesThatItHad) {
  const DrafterFile first{"suffix", store("a")};
  const DrafterFile second{"suffix", store("b")};
  make("target", "other", 0, {first});
  EXPECT_EQ(files(), std::vector<std::string>{first.path});
  {
    const std::shared_ptr<Runtime> lease = *catalog_->acquire("target", {});
    ASSERT_TRUE(lease->detach(first).ok());
    ASSERT_TRUE(lease->attach(second).ok());
  }
  lose("target");
  EXPECT_EQ(files(), std::vector<std::string>{second.path});
}

TEST_F(CatalogReopen, ATargetThatWasUnloadedThroughItsRuntimeComesBackWithItsEntrysFiles) {
  const DrafterFile first{"suffix", store("a")};
  const DrafterFile second{"suffix", store("b")};
  make("target", "other", 0, {first}, model("draft"));
  const auto unload = [this] {
    const std::shared_ptr<Runtime> lease = *catalog_->acquire("target", {});
    EXPECT_TRUE(lease->unload(ModelRole::kTarget, true).ok());
    return lease;
  };
  EXPECT_EQ(files(), std::vector<std::string>{first.path});
  (void)unload();
  EXPECT_EQ(files(), std::vector<std::string>{first.path});
  EXPECT_EQ(complete().draft.state, ModelState::kReady);
  ASSERT_TRUE(unload()->attach(second).ok());
  EXPECT_EQ(files(), std::vector<std::string>{second.path}) << "a client has chosen them";
  lose("target");
  EXPECT_EQ(files(), std::vector<std::string>{second.path});
}

TEST_F(CatalogReopen, ADraftThatWasBeingOpenedWhenItsTargetWasLostComesWithTheNextOne) {
  make("target", "other", 0, {}, model("draft"));
  ASSERT_EQ(complete().draft.state, ModelState::kReady);
  loader_.hold(true);
  {
    const std::shared_ptr<Runtime> lease = *catalog_->acquire("target", {});
    ASSERT_TRUE(lease->load(ModelRole::kDraft, model("draft")).ok());
  }
  ASSERT_TRUE(eventually([this] { return loader_.loading(); }));
  lose("target");
  ASSERT_TRUE(becomes(ModelState::kFailed));
  loader_.hold(false);
  now_ms_ = 1000.0;
  ASSERT_TRUE(becomes(ModelState::kReady));
  EXPECT_EQ(complete().draft.state, ModelState::kReady);
}

TEST_F(CatalogReopen, ADraftThatFailedIsLoadedAgainWithItsTarget) {
  loader_.add("late draft", {.failure = internal_error("it is not there yet")});
  make("target", "other", 0, {}, model("late draft"));
  ASSERT_EQ(complete().draft.state, ModelState::kFailed);
  loader_.add("late draft", {.seed = 1, .noise = 0.5f});
  lose("target");
  ASSERT_TRUE(becomes(ModelState::kFailed));
  EXPECT_EQ(complete().draft.state, ModelState::kReady);
}

TEST_F(CatalogReopen, ADefaultModelThatFindsNoMemoryUnloadsNothingUntilSomebodyAsksForIt) {
  for (const bool is_expected : {false, true}) {  // by what the machine has free
    SCOPED_TRACE(is_expected);
    free_ = is_expected ? 10 : 0;
    now_ms_ = 0.0;
    loader_.add("greedy", {.failure = resource_exhausted("no memory"), .bytes = 100});
    make("greedy", "other");
    ASSERT_TRUE(catalog_->acquire("other", {}).ok());
    ASSERT_TRUE(catalog_->preload("").ok());
    ASSERT_TRUE(becomes(ModelState::kFailed));
    EXPECT_EQ(status("other").state, ModelState::kAbsent) << "it could have helped";
    ASSERT_TRUE(catalog_->acquire("other", {}).ok());
    for (const double now : {1e6, 2e6}) {
      const std::uint64_t ended = status().loads_ended;
      now_ms_ = now;
      ASSERT_TRUE(eventually([&] { return status().loads_ended > ended; }));
      EXPECT_NE(status().error.message().find("no memory"), std::string::npos);
      EXPECT_EQ(status("other").state, ModelState::kReady);
    }
    now_ms_ = 2e6 + 1000.0;  // its own next time is later
    EXPECT_EQ(catalog_->acquire("", {}).status().code(), StatusCode::kUnsupported);
    EXPECT_EQ(status("other").state, ModelState::kAbsent);
    ASSERT_TRUE(catalog_->acquire("other", {}).ok());
    free_ = 0;
    loader_.add("greedy", {.seed = 1, .bytes = 100});
    now_ms_ = 3e6;
    EXPECT_TRUE(becomes(ModelState::kReady));
    EXPECT_EQ(status("other").state, ModelState::kReady);
    EXPECT_EQ(catalog_->check_integrity(), "");
  }
}

TEST_F(CatalogReopen, ADefaultModelThatCannotBeOpenedIsTriedAgainAfterTwiceAsLongEachTime) {
  make("broken", "other");
  ASSERT_TRUE(catalog_->preload("").ok());
  ASSERT_TRUE(becomes(ModelState::kFailed));
  double ended_ms = 0.0;
  int loads = 1;
  for (const double wait_ms : {1e3, 2e3, 4e3, 8e3, 16e3, 32e3, 60e3, 60e3}) {
    now_ms_ = ended_ms + wait_ms - 1.0;
    let_it_look();
    ASSERT_EQ(loader_.loads(), loads) << wait_ms;
    now_ms_ = ended_ms += wait_ms;
    ASSERT_TRUE(eventually([&] {
      return status().loads_ended == static_cast<unsigned>(loads) + 1;
    })) << wait_ms;
    ASSERT_EQ(loader_.loads(), ++loads);
  }
  loader_.add("broken", {.seed = 1});
  now_ms_ = ended_ms += 60e3;
  EXPECT_TRUE(becomes(ModelState::kReady));
  EXPECT_EQ(status("other").state, ModelState::kAbsent);
}

TEST_F(CatalogReopen, WhoGetsTheDefaultModelHasItOpenedSoonTheNextTimeToo) {
  make("broken", "other");
  ASSERT_TRUE(catalog_->preload("").ok());
  for (const double now : {1e3, 3e3}) {
    ASSERT_TRUE(becomes(ModelState::kFailed));
    const std::uint64_t ended = status().loads_ended;
    now_ms_ = now;
    ASSERT_TRUE(eventually([&] { return status().loads_ended > ended; }));
  }
  loader_.add("broken", {.seed = 1});
  now_ms_ = 7e3;
  ASSERT_TRUE(becomes(ModelState::kReady));
  lose("broken");
  ASSERT_TRUE(becomes(ModelState::kFailed));
  now_ms_ = 8e3;
  EXPECT_TRUE(becomes(ModelState::kReady));
}

TEST_F(CatalogReopen, WhatSomebodyClosedOrAnotherModelThatWasLostWaitsForARequest) {
  make("broken", "other");
  ASSERT_TRUE(catalog_->preload("").ok());
  ASSERT_TRUE(becomes(ModelState::kFailed));
  lose("other");
  ASSERT_TRUE(becomes(ModelState::kFailed, "other"));
  now_ms_ = 1e3;
  ASSERT_TRUE(eventually([&] { return status().loads_ended == 2; }));
  EXPECT_EQ(loader_.loads_of("other"), 1);
  ASSERT_TRUE(becomes(ModelState::kFailed));
  ASSERT_TRUE(catalog_->unload("").ok());
  now_ms_ = 1e6;
  EXPECT_EQ(status().state, ModelState::kAbsent);
  EXPECT_TRUE(catalog_->acquire("other", {}).ok());
  EXPECT_EQ(loader_.loads_of("broken"), 2);
}

}  // namespace
}  // namespace outrider
