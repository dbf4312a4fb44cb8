// Another target in the place of a model's own, and a look at a model that opens nothing.
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <thread>
#include <utility>

#include "catalog/catalog.h"
#include "testing/eventually.h"
#include "testing/runtime_fixture.h"
#include "testing/step_gate.h"

namespace outrider {
namespace {

using testing::eventually;
using testing::model;

// Models "target", "other", "broken" and "slow", and a place for one of them.
class CatalogTarget : public ::testing::Test {
 protected:
  CatalogTarget() {
    loader_.add_usual_files();
    std::vector<CatalogEntry> entries;
    for (const char* name : {"target", "other", "broken", "slow"}) {
      entries.push_back({.name = name, .target = model(name)});
    }
    catalog_ = std::move(
        Catalog::create(std::move(entries), {.max_models = 1, .retry_ms = 0}, loader_).value());
  }
  ~CatalogTarget() override { loader_.hold(false); }

  CatalogStatus status(const std::string& name) const { return *catalog_->status_of(name); }
  bool is_open(const std::string& name, const std::string& path) const {
    return status(name).state == ModelState::kReady && status(name).path == path;
  }
  // Opens it, waits until that is `path`, and closes it for another model.
  void open_and_close(const std::string& name, const std::string& path) {
    EXPECT_TRUE(catalog_->acquire(name, {}).ok());
    EXPECT_TRUE(eventually([&] { return is_open(name, path); })) << status(name).path;
    EXPECT_TRUE(catalog_->acquire(name == "other" ? "target" : "other", {}).ok());
    EXPECT_EQ(status(name).state, ModelState::kAbsent);
    EXPECT_EQ(status(name).path, path);
    EXPECT_EQ(catalog_->check_integrity(), "");
  }

  testing::FakeLoader loader_;
  std::unique_ptr<Catalog> catalog_;
};

TEST_F(CatalogTarget, AnotherOneThatWasLoadedIsOpenedAgainWhenTheModelWasClosed) {
  std::shared_ptr<Runtime> lease = *catalog_->acquire("target", {});
  ASSERT_TRUE(catalog_->load_target("target", model("twin")).ok());
  EXPECT_TRUE(lease->run(testing::ask({1}, 1, 5)).ok());
  lease.reset();
  open_and_close("target", "twin");
  open_and_close("target", "twin");
  EXPECT_EQ(loader_.loads_of("target"), 1);
}

TEST_F(CatalogTarget, AnotherOneThatWasLostIsOpenedAgain) {
  const std::shared_ptr<Runtime> lease = *catalog_->acquire("target", {});
  ASSERT_TRUE(catalog_->load_target("target", model("twin")).ok());
  ASSERT_TRUE(eventually([&] { return is_open("target", "twin"); }));
  testing::StepGate::fake_target(*lease->target()).die_in_next_step(internal_error("it died"));
  (void)lease->run(testing::ask({1}, 1, 5));
  EXPECT_TRUE(eventually([&] {
    return catalog_->acquire("target", {}).ok() && loader_.loads_of("twin") == 2 &&
           is_open("target", "twin");
  }));
  EXPECT_EQ(loader_.loads_of("target"), 1);
}

TEST_F(CatalogTarget, AnotherOneThatIsStillLoadedWhenTheModelIsClosedIsOpenedThen) {
  ASSERT_TRUE(catalog_->acquire("target", {}).ok());
  loader_.hold(true);
  ASSERT_TRUE(catalog_->load_target("target", model("twin")).ok());
  while (!loader_.loading()) std::this_thread::yield();
  ASSERT_TRUE(catalog_->unload("target").ok());
  EXPECT_EQ(status("target").path, "twin");
  loader_.hold(false);
  open_and_close("target", "twin");
}

TEST_F(CatalogTarget, ALoadThatFailsLeavesTheOneAtWork) {
  const std::shared_ptr<Runtime> lease = *catalog_->acquire("target", {});
  ASSERT_TRUE(catalog_->load_target("target", model("broken")).ok());
  ASSERT_TRUE(lease->wait_loaded(-1));
  EXPECT_FALSE(lease->status().target.error.ok());
  EXPECT_TRUE(is_open("target", "target"));
  EXPECT_TRUE(lease->run(testing::ask({1}, 1, 5)).ok());
}

TEST_F(CatalogTarget, AModelWhoseFileIsBrokenIsRepairedByAnotherFile) {
  EXPECT_FALSE(catalog_->acquire("broken", {}).ok());
  ASSERT_TRUE(catalog_->load_target("broken", model("twin")).ok());
  open_and_close("broken", "twin");
  EXPECT_EQ(loader_.loads_of("broken"), 1);
}

TEST_F(CatalogTarget, WhereNoneIsAtWorkABrokenFileDoesNotBringBackTheOneBefore) {
  {
    const std::shared_ptr<Runtime> lease = *catalog_->acquire("other", {});
    ASSERT_TRUE(lease->unload(ModelRole::kTarget, true).ok());
  }
  ASSERT_TRUE(catalog_->load_target("other", model("broken")).ok());
  EXPECT_EQ(catalog_->acquire("other", {}).status().message(), "'broken' is broken");
  EXPECT_EQ(status("other").state, ModelState::kFailed);
  EXPECT_EQ(status("other").path, "broken");
  EXPECT_EQ(loader_.loads_of("other"), 1);
  ASSERT_TRUE(catalog_->load_target("other", model("other")).ok());
  open_and_close("other", "other");
}

TEST_F(CatalogTarget, TheLoadThatIsGoingOnGivesWay) {
  ASSERT_TRUE(catalog_->preload("slow").ok());
  while (!loader_.loading()) std::this_thread::yield();
  ASSERT_TRUE(catalog_->load_target("slow", model("twin")).ok());
  open_and_close("slow", "twin");
  ASSERT_TRUE(catalog_->load_target("slow", model("slow")).ok());
  ASSERT_TRUE(eventually([&] { return loader_.loads_of("slow") == 2; }));
  ASSERT_TRUE(catalog_->unload("slow").ok());
  ASSERT_TRUE(catalog_->load_target("slow", model("other")).ok()) << "called off";
  open_and_close("slow", "other");
}

TEST_F(CatalogTarget, WrongOnesAreRefusedAndChangeNothing) {
  ModelOptions wrong = model("twin");
  wrong.n_batch = 0;
  EXPECT_EQ(catalog_->load_target("target", wrong).field(), "batch");
  EXPECT_EQ(catalog_->load_target("target", ModelOptions()).field(), "path");
  EXPECT_EQ(catalog_->load_target("none", model("twin")).code(), StatusCode::kNotFound);
  EXPECT_EQ(status("target").path, "target");
  EXPECT_EQ(loader_.loads(), 0);
}

TEST_F(CatalogTarget, ALookOpensNothingAndSeesWhatIsOpen) {
  {
    const std::shared_ptr<Runtime> none = *catalog_->look("target");
    EXPECT_EQ(none->status().target.state, ModelState::kAbsent);
    EXPECT_EQ(catalog_->check_integrity(), "");
  }
  EXPECT_EQ(loader_.loads(), 0);
  const std::shared_ptr<Runtime> lease = *catalog_->acquire("target", {});
  EXPECT_EQ(catalog_->look("target")->get(), lease.get());
  ASSERT_TRUE(lease->unload(ModelRole::kTarget, true).ok());
  EXPECT_EQ(catalog_->look("target")->get(), lease.get()) << "there may be results to fetch";
  EXPECT_EQ((*catalog_->look("other"))->status().target.state, ModelState::kAbsent);
  EXPECT_EQ(catalog_->look("none").status().code(), StatusCode::kNotFound);
  EXPECT_EQ(loader_.loads(), 1);
  catalog_->shut_down();
  EXPECT_EQ(catalog_->look("other").status().code(), StatusCode::kCancelled);
}

}  // namespace
}  // namespace outrider
