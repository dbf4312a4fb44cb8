// What is asked for again behind an unload().
#include <gtest/gtest.h>

#include <memory>
#include <thread>

#include "catalog/catalog.h"
#include "testing/eventually.h"
#include "testing/runtime_fixture.h"

namespace outrider {
namespace {

using testing::model;

class CatalogUnload : public ::testing::Test {
 protected:
  CatalogUnload() {
    loader_.add("target", {.seed = 1});
    catalog_ = std::move(
        Catalog::create({{.name = "target", .target = model("target")}}, {}, loader_).value());
  }
  ~CatalogUnload() override { loader_.hold(false); }

  ModelState state() const { return catalog_->status().front().state; }

  // A load that an unload() came behind.
  void call_off() {
    loader_.hold(true);
    ASSERT_TRUE(catalog_->preload("target").ok());
    while (!loader_.loading()) std::this_thread::yield();
    ASSERT_TRUE(catalog_->unload("target").ok());
  }

  testing::FakeLoader loader_;
  std::unique_ptr<Catalog> catalog_;
};

TEST_F(CatalogUnload, APreloadTakesBackOneThatWaitsForItsUsers) {
  std::shared_ptr<Runtime> lease = *catalog_->acquire("target", {});
  EXPECT_TRUE(catalog_->unload("target").ok());
  EXPECT_TRUE(catalog_->preload("target").ok());
  lease.reset();
  EXPECT_EQ(state(), ModelState::kReady);
  EXPECT_EQ(loader_.loads(), 1);
}

TEST_F(CatalogUnload, WhatIsPreloadedBehindACalledOffLoadIsOpened) {
  call_off();
  EXPECT_TRUE(catalog_->preload("target").ok());
  loader_.hold(false);
  EXPECT_TRUE(testing::eventually([this] { return state() == ModelState::kReady; }));
  EXPECT_EQ(catalog_->check_integrity(), "");
}

TEST_F(CatalogUnload, WhoAsksBehindACalledOffLoadGetsTheNextOne) {
  call_off();
  std::thread asker([this] {
    const Result<std::shared_ptr<Runtime>> lease = catalog_->acquire("target", {});
    EXPECT_TRUE(lease.ok()) << lease.status().message();
  });
  EXPECT_TRUE(testing::eventually([this] { return loader_.loads() == 2 || !loader_.loading(); }));
  loader_.hold(false);
  asker.join();
  EXPECT_EQ(catalog_->check_integrity(), "");
}

}  // namespace
}  // namespace outrider
