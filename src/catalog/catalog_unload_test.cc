// What is asked for again behind an unload(), and what runs on without a lease: a completion that a
// client has started and comes back for (/rpc).
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <thread>

#include "catalog/catalog.h"
#include "testing/eventually.h"
#include "testing/runtime_fixture.h"
#include "testing/step_gate.h"

namespace outrider {
namespace {

using testing::model;

class CatalogUnload : public ::testing::Test {
 protected:
  CatalogUnload() {
    loader_.add("target", {.seed = 1});
    // A target that is lost is not opened again but by a request.
    catalog_ = std::move(
        Catalog::create({{.name = "target", .target = model("target")}}, {.retry_ms = 1e9}, loader_)
            .value());
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

TEST_F(CatalogUnload, ATargetThatEndsByItselfIsToldAlsoOnceItIsOpenAgain) {
  const std::shared_ptr<Runtime> lease = *catalog_->acquire("target", {});
  EXPECT_TRUE(testing::eventually([this] { return catalog_->status().front().complete; }));
  EXPECT_EQ(catalog_->status().front().n_lost, 0U);
  testing::StepGate::fake_target(*lease->target()).die_in_next_step(internal_error("it died"));
  (void)lease->run(testing::ask({1}, 1, 5));
  EXPECT_TRUE(testing::eventually([this] { return catalog_->status().front().n_lost == 1; }));
  EXPECT_FALSE(catalog_->status().front().complete);
  EXPECT_NE(catalog_->status().front().lost.message().find("it died"), std::string::npos);
  ASSERT_TRUE(catalog_->acquire("target", {}).ok());
  EXPECT_EQ(catalog_->status().front().n_lost, 1U);
  EXPECT_EQ(catalog_->status().front().loads_ended, 2U);
  ASSERT_TRUE(lease->unload(ModelRole::kTarget, true).ok());
  ASSERT_TRUE(catalog_->acquire("target", {}).ok());
  EXPECT_EQ(catalog_->status().front().n_lost, 1U) << "somebody unloaded it";
}

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

TEST_F(CatalogUnload, WaitsForACompletionThatRunsWithoutALease) {
  testing::StepGate gate;
  loader_.add("target", {.seed = 1, .on_evaluated = gate.hold()});
  ASSERT_TRUE((*catalog_->acquire("target", {}))->start(testing::ask({1, 2}, 3, 5)).ok());
  gate.wait_until_held();
  EXPECT_TRUE(catalog_->unload("target").ok());
  EXPECT_EQ(state(), ModelState::kReady);
  EXPECT_EQ(catalog_->check_integrity(), "");
  gate.open();
  EXPECT_TRUE(testing::eventually([this] { return state() == ModelState::kAbsent; }));
  EXPECT_EQ(catalog_->check_integrity(), "");
}

// Two models, and a place for one of them.
class CatalogOfOnePlace : public CatalogUnload {
 protected:
  CatalogOfOnePlace() {
    loader_.add("other", {.seed = 2});
    catalog_ = std::move(Catalog::create({{.name = "target", .target = model("target")},
                                          {.name = "other", .target = model("other")}},
                                         {.max_models = 1, .retry_ms = 0}, loader_)
                             .value());
  }

  // Whose lease has ended when this returns.
  CompletionId start_endless() {
    return (*catalog_->acquire("target", {}))->start(testing::endless({1, 2}, 3))->id;
  }
  // Ends it and fetches its result.
  void end(CompletionId id) {
    const std::shared_ptr<Runtime> lease = *catalog_->acquire("target", {});
    ASSERT_TRUE(lease->cancel(id).ok());
    for (bool finished = false; !finished;) {
      const Result<PolledCompletion> polled = lease->poll(id, 1000);
      ASSERT_TRUE(polled.ok()) << polled.status().message();
      finished = polled->finished;
    }
  }
};

TEST_F(CatalogOfOnePlace, AModelWhoseCompletionWasStartedByRpcIsNotClosed) {
  const CompletionId id = start_endless();
  EXPECT_EQ(catalog_->acquire("other", {}).status().code(), StatusCode::kResourceExhausted);
  EXPECT_EQ(state(), ModelState::kReady);
  end(id);
  EXPECT_TRUE(catalog_->acquire("other", {}).ok());
  EXPECT_EQ(state(), ModelState::kAbsent);
  EXPECT_EQ(catalog_->check_integrity(), "");
}

TEST_F(CatalogOfOnePlace, WhatAModelHasCountedStaysWhenItIsClosedAndOpenedAgain) {
  const auto say = [this](std::int32_t n) {
    ASSERT_TRUE((*catalog_->acquire("target", {}))->run(testing::ask({1, 2}, 3, n)).ok());
  };
  const auto totals = [this] { return catalog_->status_of("target")->totals; };
  say(5);
  EXPECT_EQ(totals().generated_tokens, 5);
  ASSERT_TRUE(catalog_->acquire("other", {}).ok());
  ASSERT_EQ(state(), ModelState::kAbsent);
  EXPECT_EQ(totals().generated_tokens, 5);
  say(7);
  EXPECT_EQ(loader_.loads_of("target"), 2);
  EXPECT_EQ(totals().generated_tokens, 12);
  EXPECT_EQ(totals().finished, 2);
  EXPECT_GE(totals().steps, 2);
}

TEST_F(CatalogOfOnePlace, AnIdNeverNamesACompletionOfAModelThatWasOpenedSince) {
  const CompletionId first = start_endless();
  end(first);
  ASSERT_TRUE(catalog_->acquire("other", {}).ok());
  const CompletionId second = start_endless();  // opens it again
  EXPECT_EQ(loader_.loads_of("target"), 2);
  EXPECT_NE(second, first);
  {
    const std::shared_ptr<Runtime> lease = *catalog_->acquire("target", {});
    const Status gone = lease->poll(first, 0).status();
    EXPECT_EQ(gone.code(), StatusCode::kNotFound);
    EXPECT_EQ(gone.message().find("never started"), std::string::npos) << gone.message();
    EXPECT_NE(gone.message().find("closed and opened since"), std::string::npos) << gone.message();
    const Status never = lease->poll(second + 1, 0).status();
    EXPECT_NE(never.message().find("never started"), std::string::npos) << never.message();
  }
  end(second);
}

}  // namespace
}  // namespace outrider
