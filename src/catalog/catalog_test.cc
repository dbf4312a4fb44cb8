#include "catalog/catalog.h"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "testing/runtime_fixture.h"

namespace outrider {
namespace {

using testing::ask;
using testing::model;

const std::function<bool()> kNever;

class CatalogTest : public ::testing::Test {
 protected:
  CatalogTest() {
    loader_.add_usual_files();
    for (const char* name : {"a", "b", "c"}) loader_.add(name, {.seed = 1, .bytes = 10});
    loader_.add("large", {.seed = 1, .bytes = 25});
    loader_.add("small draft", {.seed = 1, .noise = 0.5f, .bytes = 3});
    loader_.add("greedy", {.failure = resource_exhausted("'greedy' found no memory"), .bytes = 1});
  }

  // `names`: their files too.
  std::unique_ptr<Catalog> make(const std::vector<std::string>& names,
                                CatalogOptions options = {}) {
    std::vector<CatalogEntry> entries;
    for (const std::string& name : names) entries.push_back({.name = name, .target = model(name)});
    return make_of(std::move(entries), std::move(options));
  }
  std::unique_ptr<Catalog> make_of(std::vector<CatalogEntry> entries, CatalogOptions options = {}) {
    options.now = [this] { return now_ms_.load(); };
    Result<std::unique_ptr<Catalog>> made =
        Catalog::create(std::move(entries), std::move(options), loader_);
    EXPECT_TRUE(made.ok()) << made.status().message();
    return std::move(*made);
  }

  static std::shared_ptr<Runtime> take(Catalog& catalog, const std::string& name) {
    Result<std::shared_ptr<Runtime>> lease = catalog.acquire(name, kNever);
    EXPECT_TRUE(lease.ok()) << lease.status().message();
    EXPECT_EQ(catalog.check_integrity(), "");
    return lease.ok() ? *lease : nullptr;
  }
  static Status failure(Catalog& catalog, const std::string& name) {
    const Status status = catalog.acquire(name, kNever).status();
    EXPECT_FALSE(status.ok()) << name;
    EXPECT_EQ(catalog.check_integrity(), "");
    return status;
  }
  static CatalogStatus status_of(const Catalog& catalog, const std::string& name) {
    for (const CatalogStatus& status : catalog.status()) {
      if (status.name == name) return status;
    }
    ADD_FAILURE() << name;
    return {};
  }
  // Names of models that are open, in order.
  static std::string open_ones(const Catalog& catalog) {
    std::string names;
    for (const CatalogStatus& status : catalog.status()) {
      if (status.state == ModelState::kReady) names += status.name + " ";
    }
    return names;
  }
  static void wait_for(const Catalog& catalog, const std::string& name, ModelState state) {
    while (status_of(catalog, name).state != state) std::this_thread::yield();
  }

  testing::FakeLoader loader_;
  std::atomic<double> now_ms_{0.0};
};

TEST_F(CatalogTest, AModelIsOpenedWhenItIsFirstAskedForAndStays) {
  const std::unique_ptr<Catalog> catalog = make({"target", "other"});
  EXPECT_EQ(loader_.loads(), 0);
  EXPECT_EQ(catalog->find_open("target"), nullptr);
  EXPECT_EQ(status_of(*catalog, "target").state, ModelState::kAbsent);
  {
    const std::shared_ptr<Runtime> lease = take(*catalog, "target");
    EXPECT_TRUE(lease->run(ask({1, 2}, 3, 5)).ok());
    EXPECT_EQ(status_of(*catalog, "target").in_use, 1);
    const std::shared_ptr<Runtime> again = take(*catalog, "");  // the first one is the default
    EXPECT_EQ(again.get(), lease.get());
    EXPECT_EQ(catalog->find_open("target").get(), lease.get());
    EXPECT_EQ(status_of(*catalog, "target").in_use, 2);
  }
  EXPECT_EQ(status_of(*catalog, "target").in_use, 0);
  EXPECT_NE(take(*catalog, "other"), nullptr);
  EXPECT_EQ(open_ones(*catalog), "target other ");
  EXPECT_EQ(loader_.loads(), 2);
}

TEST_F(CatalogTest, AnUnknownNameIsToldWithTheOnesThatAre) {
  const std::unique_ptr<Catalog> catalog =
      make_of({{.name = "alpha", .target = model("target"), .aliases = {"first"}},
               {.name = "beta", .target = model("other")}});
  EXPECT_EQ(take(*catalog, "first").get(), take(*catalog, "alpha").get());
  const Status status = failure(*catalog, "alhpa");
  EXPECT_EQ(status.code(), StatusCode::kNotFound);
  EXPECT_EQ(status.message(),
            "there is no model 'alhpa'; did you mean 'alpha'? models are alpha and beta");
  EXPECT_EQ(catalog->preload("x").code(), StatusCode::kNotFound);
  EXPECT_EQ(catalog->unload("x").code(), StatusCode::kNotFound);
  EXPECT_EQ(catalog->find_open("x"), nullptr);
  EXPECT_EQ(failure(*make({}), "").message(), "there are no models here");
}

TEST_F(CatalogTest, TheStatusOfOneIsFoundByEveryNameThatOpensIt) {
  const std::unique_ptr<Catalog> catalog =
      make_of({{.name = "alpha", .target = model("target"), .aliases = {"first"}},
               {.name = "beta", .target = model("other"), .aliases = {"second"}}});
  for (const char* name : {"", "alpha", "first", "beta", "second", "gamma", "Alpha"}) {
    const std::optional<CatalogStatus> status = catalog->status_of(name);
    Result<std::shared_ptr<Runtime>> opened = catalog->acquire(name, kNever);
    ASSERT_EQ(status.has_value(), opened.ok()) << name;
    if (!status) continue;
    EXPECT_EQ(catalog->find_open(status->name).get(), opened->get()) << name;
    EXPECT_EQ(catalog->status_of(name)->state, ModelState::kReady) << name;
  }
  EXPECT_EQ(make({})->status_of(""), std::nullopt) << "no default model";
}

TEST_F(CatalogTest, WrongEntriesAndOptionsAreRefused) {
  const auto refused = [this](std::vector<CatalogEntry> entries, CatalogOptions options = {}) {
    return Catalog::create(std::move(entries), std::move(options), loader_).status().message();
  };
  EXPECT_EQ(refused({{.name = "a", .target = model("1")},
                     {.name = "b", .target = model("2"), .aliases = {"a"}}}),
            "two models are called 'a': '1' and '2'; give one of them another name");
  EXPECT_NE(refused({{.name = "", .target = model("1")}}), "");
  EXPECT_NE(refused({{.name = "a\n", .target = model("1")}}), "");
  EXPECT_NE(refused({{.name = "\xff", .target = model("1")}}), "");
  EXPECT_NE(refused({{.name = std::string(129, 'a'), .target = model("1")}}), "");
  EXPECT_NE(refused({}, {.max_models = -1}), "");
  EXPECT_NE(refused({}, {.runtime = {.slots = 0}}), "");
  CatalogEntry bad{.name = "a", .target = model("1")};
  bad.target.n_batch = 0;
  EXPECT_NE(refused({bad}).find("model 'a': batch is 0"), std::string::npos);
}

TEST_F(CatalogTest, ManyThreadsThatAskAtOnceGetOneLoad) {
  const std::unique_ptr<Catalog> catalog = make({"target", "other"});
  loader_.hold(true);
  std::vector<std::thread> threads;
  std::atomic<int> got{0};
  for (int i = 0; i < 8; ++i) {
    threads.emplace_back(
        [&, i] { got += catalog->acquire(i % 2 == 0 ? "target" : "other", kNever).ok() ? 1 : 0; });
  }
  while (!loader_.loading()) std::this_thread::yield();
  EXPECT_EQ(catalog->check_integrity(), "");
  loader_.hold(false);
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(got, 8);
  EXPECT_EQ(loader_.loads(), 2);
}

TEST_F(CatalogTest, TheOneUsedLongestAgoGoesWhenMemoryIsShort) {
  const std::unique_ptr<Catalog> catalog = make({"a", "b", "c"}, {.memory_bytes = 25});
  take(*catalog, "a");
  take(*catalog, "b");
  take(*catalog, "a");
  take(*catalog, "c");
  EXPECT_EQ(open_ones(*catalog), "a c ");
  EXPECT_LE(loader_.memory().most(), 25u);
  EXPECT_EQ(status_of(*catalog, "c").estimated_bytes, 10u);
}

TEST_F(CatalogTest, TheSameWithWhatTheMachineHasFree) {
  CatalogOptions options;
  options.free_memory = [this] { return 25 - loader_.memory().taken(); };
  const std::unique_ptr<Catalog> catalog = make({"a", "b", "c"}, options);
  for (const char* name : {"a", "b", "c"}) take(*catalog, name);
  EXPECT_EQ(open_ones(*catalog), "b c ");
  EXPECT_LE(loader_.memory().most(), 25u);
}

TEST_F(CatalogTest, AModelAloneOnAMachineIsTriedWhateverTheEstimateSays) {
  CatalogOptions options;
  options.free_memory = [] { return std::uint64_t{1}; };
  const std::unique_ptr<Catalog> catalog = make({"a", "b"}, options);
  take(*catalog, "a");
  const std::shared_ptr<Runtime> lease = take(*catalog, "b");
  EXPECT_EQ(open_ones(*catalog), "b ");
  EXPECT_NE(failure(*catalog, "a").message().find("requests run on b"), std::string::npos);
}

TEST_F(CatalogTest, NoMoreThanMaxModelsAreOpen) {
  const std::unique_ptr<Catalog> catalog = make({"a", "b", "c"}, {.max_models = 2});
  take(*catalog, "a");
  const std::shared_ptr<Runtime> kept = take(*catalog, "b");
  take(*catalog, "c");
  EXPECT_EQ(open_ones(*catalog), "b c ");
  take(*catalog, "a");
  EXPECT_EQ(open_ones(*catalog), "a b ") << "the one in use stays";
}

TEST_F(CatalogTest, AModelInUseNeverGoesAndTheErrorNamesIt) {
  const std::unique_ptr<Catalog> catalog = make({"a", "b", "c"}, {.memory_bytes = 15});
  std::shared_ptr<Runtime> lease = take(*catalog, "a");
  const Status status = failure(*catalog, "b");
  EXPECT_EQ(status.code(), StatusCode::kResourceExhausted);
  EXPECT_NE(status.message().find("requests run on a"), std::string::npos) << status.message();
  EXPECT_TRUE(lease->run(ask({1}, 1, 5)).ok());
  lease.reset();
  now_ms_ = 5000.0;
  EXPECT_NE(take(*catalog, "b"), nullptr);
  EXPECT_EQ(open_ones(*catalog), "b ");
}

TEST_F(CatalogTest, NothingIsUnloadedForAModelThatIsLargerThanAllRoom) {
  const std::unique_ptr<Catalog> catalog = make({"a", "b", "large"}, {.memory_bytes = 20});
  take(*catalog, "a");
  take(*catalog, "b");
  const Status status = failure(*catalog, "large");
  EXPECT_EQ(status.code(), StatusCode::kUnsupported) << "waiting makes no more room";
  EXPECT_NE(status.message().find("all models together may take"), std::string::npos);
  EXPECT_EQ(open_ones(*catalog), "a b ");
  EXPECT_EQ(loader_.loads_of("large"), 0);
}

TEST_F(CatalogTest, ADraftCountsAndComesWithItsTarget) {
  CatalogEntry pair{.name = "a", .target = model("a"), .draft = model("small draft")};
  const std::unique_ptr<Catalog> catalog =
      make_of({pair, {.name = "b", .target = model("b")}}, {.memory_bytes = 22});
  {
    const std::shared_ptr<Runtime> lease = take(*catalog, "a");
    ASSERT_TRUE(lease->wait_loaded(-1));
    EXPECT_TRUE(lease->status().draft.serving);
  }
  EXPECT_EQ(status_of(*catalog, "a").estimated_bytes, 13u);
  take(*catalog, "b");
  EXPECT_EQ(open_ones(*catalog), "b ");
  EXPECT_EQ(loader_.memory().most(), 13u);
}

TEST_F(CatalogTest, ADraftThatIsNotThereKeepsNoTargetFromAnswering) {
  const std::unique_ptr<Catalog> catalog =
      make_of({{.name = "a", .target = model("a"), .draft = model("nowhere")}});
  const std::shared_ptr<Runtime> lease = take(*catalog, "a");
  ASSERT_TRUE(lease->wait_loaded(-1));
  EXPECT_EQ(lease->status().draft.state, ModelState::kFailed);
  EXPECT_TRUE(status_of(*catalog, "a").complete);
  EXPECT_FALSE(status_of(*catalog, "a").draft_error.ok());
}

TEST_F(CatalogTest, AFailedLoadIsToldAndTriedAgainByALaterRequest) {
  const std::unique_ptr<Catalog> catalog = make({"broken", "target"}, {.retry_ms = 1000});
  EXPECT_EQ(failure(*catalog, "broken").message(), "'broken' is broken");
  EXPECT_EQ(status_of(*catalog, "broken").state, ModelState::kFailed);
  EXPECT_EQ(status_of(*catalog, "broken").error.message(), "'broken' is broken");
  now_ms_ = 999.0;
  EXPECT_EQ(failure(*catalog, "broken").message(), "'broken' is broken");
  EXPECT_EQ(loader_.loads_of("broken"), 1) << "not again at once";
  now_ms_ = 1000.0;
  EXPECT_FALSE(failure(*catalog, "broken").ok());
  EXPECT_EQ(loader_.loads_of("broken"), 2);
  loader_.add("broken", {.seed = 1});
  now_ms_ = 2000.0;
  EXPECT_NE(take(*catalog, "broken"), nullptr);
  EXPECT_TRUE(status_of(*catalog, "broken").error.ok());
}

TEST_F(CatalogTest, AFileThatIsNotThereFailsBeforeAnythingIsUnloadedForIt) {
  const std::unique_ptr<Catalog> catalog = make({"a", "nowhere"}, {.max_models = 1});
  take(*catalog, "a");
  EXPECT_EQ(failure(*catalog, "nowhere").code(), StatusCode::kNotFound);
  EXPECT_EQ(open_ones(*catalog), "a ");
}

TEST_F(CatalogTest, AnExceptionOutOfALoadIsAnError) {
  EXPECT_NE(failure(*make({"throwing"}), "throwing").message().find("on purpose"),
            std::string::npos);
}

TEST_F(CatalogTest, ALoadThatFindsNoMemoryClosesIdleModelsAndTriesAgain) {
  const std::unique_ptr<Catalog> catalog = make({"a", "b", "greedy"});
  take(*catalog, "a");
  take(*catalog, "b");
  EXPECT_EQ(failure(*catalog, "greedy").message(), "'greedy' found no memory");
  EXPECT_EQ(loader_.loads_of("greedy"), 3);
  EXPECT_EQ(open_ones(*catalog), "");
}

TEST_F(CatalogTest, ALoadThatFindsNoMemoryIsWorthWaitingForOnlyWhileOthersAreInUse) {
  const std::unique_ptr<Catalog> catalog = make({"a", "greedy"});
  std::shared_ptr<Runtime> lease = take(*catalog, "a");
  EXPECT_EQ(failure(*catalog, "greedy").code(), StatusCode::kResourceExhausted);
  lease.reset();
  now_ms_ = 5000.0;
  const Status alone = failure(*catalog, "greedy");
  EXPECT_EQ(alone.code(), StatusCode::kUnsupported);
  EXPECT_EQ(alone.message(), "'greedy' found no memory");
}

TEST_F(CatalogTest, AWaitThatIsGivenUpEndsAndTheLoadGoesOn) {
  const std::unique_ptr<Catalog> catalog = make({"target"});
  loader_.hold(true);
  EXPECT_EQ(catalog->acquire("target", [this] { return loader_.loading(); }).status().code(),
            StatusCode::kCancelled);
  EXPECT_EQ(status_of(*catalog, "target").state, ModelState::kLoading);
  loader_.hold(false);
  wait_for(*catalog, "target", ModelState::kReady);
  EXPECT_EQ(loader_.loads(), 1);
}

TEST_F(CatalogTest, PreloadOpensAndUnloadClosesWithoutWaiting) {
  const std::unique_ptr<Catalog> catalog = make({"target", "other"});
  EXPECT_TRUE(catalog->unload("target").ok()) << "it is not open";
  EXPECT_TRUE(catalog->preload("target").ok());
  EXPECT_TRUE(catalog->preload("target").ok());
  wait_for(*catalog, "target", ModelState::kReady);
  EXPECT_TRUE(catalog->preload("target").ok());
  std::shared_ptr<Runtime> lease = take(*catalog, "target");
  EXPECT_TRUE(catalog->unload("target").ok());
  EXPECT_TRUE(lease->run(ask({1}, 1, 5)).ok()) << "it is in use";
  EXPECT_EQ(open_ones(*catalog), "target ");
  lease.reset();
  EXPECT_EQ(open_ones(*catalog), "");
  EXPECT_EQ(catalog->check_integrity(), "");
  take(*catalog, "target");
  EXPECT_EQ(loader_.loads(), 2);
}

TEST_F(CatalogTest, UnloadEndsALoadAndThoseWhoWaitForIt) {
  const std::unique_ptr<Catalog> catalog = make({"slow", "slow draft"});
  std::thread first(
      [&] { EXPECT_EQ(catalog->acquire("slow", kNever).status().code(), StatusCode::kCancelled); });
  while (!loader_.loading()) std::this_thread::yield();
  std::thread second([&] {  // queued behind it
    EXPECT_EQ(catalog->acquire("slow draft", kNever).status().code(), StatusCode::kCancelled);
  });
  wait_for(*catalog, "slow draft", ModelState::kLoading);
  EXPECT_TRUE(catalog->unload("slow draft").ok());
  second.join();
  EXPECT_TRUE(catalog->unload("slow").ok());
  first.join();
  EXPECT_EQ(catalog->check_integrity(), "");
  EXPECT_EQ(status_of(*catalog, "slow").state, ModelState::kAbsent);
  EXPECT_EQ(loader_.loads(), 1);
}

TEST_F(CatalogTest, ATargetThatIsGoneIsOpenedAgainInItsRuntime) {
  const std::unique_ptr<Catalog> catalog = make({"target"});
  const std::shared_ptr<Runtime> lease = take(*catalog, "target");
  ASSERT_TRUE(lease->unload(ModelRole::kTarget, true).ok());
  EXPECT_EQ(catalog->find_open("target"), nullptr);
  EXPECT_EQ(take(*catalog, "target").get(), lease.get());
  EXPECT_TRUE(lease->run(ask({1}, 1, 5)).ok());
  EXPECT_EQ(loader_.loads(), 2);

  loader_.add("target", {.failure = internal_error("broken by now")});
  ASSERT_TRUE(lease->unload(ModelRole::kTarget, true).ok());
  EXPECT_EQ(failure(*catalog, "target").message(), "broken by now");
  loader_.add("target", {.seed = 1});
  now_ms_ = 5000.0;
  EXPECT_EQ(take(*catalog, "target").get(), lease.get());
}

TEST_F(CatalogTest, ShutDownEndsLoadsWaitsAndCompletions) {
  const std::unique_ptr<Catalog> catalog = make({"target", "slow", "other"});
  const std::shared_ptr<Runtime> lease = take(*catalog, "target");
  const CompletionId id = lease->start(testing::endless({1, 2}, 3))->id;
  std::thread waiting(
      [&] { EXPECT_EQ(catalog->acquire("slow", kNever).status().code(), StatusCode::kCancelled); });
  while (!loader_.loading()) std::this_thread::yield();
  EXPECT_TRUE(catalog->preload("other").ok());
  catalog->shut_down();
  waiting.join();
  std::shared_ptr<const CompletionResult> result;
  while (!result) {
    const Result<PolledCompletion> polled = lease->poll(id, 1000);
    ASSERT_TRUE(polled.ok());
    result = polled->result;
  }
  EXPECT_EQ(result->ended_by, EndedBy::kShutdown);
  EXPECT_EQ(catalog->acquire("target", kNever).status().message(), "the server is shutting down");
  EXPECT_EQ(catalog->preload("other").code(), StatusCode::kCancelled);
  EXPECT_EQ(catalog->find_open("target"), nullptr);
  EXPECT_EQ(catalog->check_integrity(), "");
  EXPECT_EQ(loader_.loads_of("other"), 0);
  catalog->shut_down();
}

}  // namespace
}  // namespace outrider
