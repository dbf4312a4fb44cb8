// The default model is opened again without a request where it was lost or could not be opened, and
// want of room is neither: a server that says it cannot answer may be asked nothing more.
#include <gtest/gtest.h>

#include <atomic>
#include <memory>
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
            std::vector<DrafterFile> files = {}) {
    CatalogOptions options{.max_models = max_models, .retry_ms = 1000};
    options.now = [this] {
      ++looks_;
      return now_ms_.load();
    };
    catalog_ = std::move(
        Catalog::create({{.name = first, .target = model(first), .files = std::move(files)},
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

TEST_F(CatalogReopen, ATargetThatWasLostComesBackWithTheFilesThatItHad) {
  const DrafterFile first{"suffix", store("a")};
  const DrafterFile second{"suffix", store("b")};
  make("target", "other", 0, {first});
  const auto files = [&] {
    const std::shared_ptr<Runtime> lease = *catalog_->acquire("target", {});
    EXPECT_TRUE(lease->wait_loaded(-1));
    std::vector<std::string> paths;
    for (const DrafterStatus& drafter : lease->status().drafters) {
      for (const DrafterFileStatus& file : drafter.files) paths.push_back(file.file.path);
    }
    return paths;
  };
  EXPECT_EQ(files(), std::vector<std::string>{first.path});
  {
    const std::shared_ptr<Runtime> lease = *catalog_->acquire("target", {});
    ASSERT_TRUE(lease->detach(first).ok());
    ASSERT_TRUE(lease->attach(second).ok());
  }
  lose("target");
  EXPECT_EQ(files(), std::vector<std::string>{second.path});
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
