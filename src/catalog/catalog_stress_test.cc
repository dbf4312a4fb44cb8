// Threads that acquire, use, preload and unload models at random, while some of them fail and
// memory is short: no lease without its model, no more memory than allowed, no stall. And more
// threads than may wait for one model.
#include <gtest/gtest.h>

#include <atomic>
#include <string>
#include <thread>
#include <vector>

#include "base/random.h"
#include "catalog/catalog.h"
#include "testing/chi_square.h"
#include "testing/eventually.h"
#include "testing/runtime_fixture.h"
#include "testing/watchdog.h"

namespace outrider {
namespace {

using testing::ask;
using testing::model;

constexpr int kThreads = 8;
constexpr int kStepsEach = 60;
constexpr std::uint64_t kMemory = 30;
const std::vector<std::string> kNames = {"m0", "m1", "m2", "m3", "failing"};

class User {
 public:
  User(Catalog& catalog, std::uint64_t seed, int index, std::atomic<int>& progress)
      : catalog_(catalog),
        key_(noise_key(seed, static_cast<std::uint64_t>(index))),
        progress_(progress) {}

  void run() {
    for (int i = 0; i < kStepsEach; ++i) {
      step();
      const std::string broken = catalog_.check_integrity();
      if (!broken.empty()) wrong.push_back(broken);
      ++progress_;
    }
    leases_.clear();
  }

  std::vector<std::string> wrong;
  int served = 0;

 private:
  struct Lease {
    std::string name;
    std::shared_ptr<Runtime> runtime;
  };

  std::uint32_t draw(std::uint32_t n) { return noise_bits(key_, count_++) % n; }

  void step() {
    const std::string& name = kNames[draw(static_cast<std::uint32_t>(kNames.size()))];
    switch (draw(10)) {
      case 0:
        (void)catalog_.preload(name);
        return;
      case 1:
        (void)catalog_.unload(name);
        return;
      case 2:
        if (std::shared_ptr<Runtime> open = catalog_.find_open(name)) use({name, std::move(open)});
        return;
      default:
        break;
    }
    // No more than one lease at a time while it waits, or two threads could keep all room from each
    // other for ever; that would be no stall of the catalog's.
    leases_.clear();
    const bool hurries = draw(4) == 0;
    Result<std::shared_ptr<Runtime>> got = catalog_.acquire(name, [hurries] { return hurries; });
    if (!got.ok()) {
      const StatusCode code = got.status().code();
      const bool is_expected = code == StatusCode::kResourceExhausted ||
                               code == StatusCode::kCancelled || name == "failing";
      if (!is_expected) wrong.push_back(got.status().message());
      return;
    }
    if (name == "failing") wrong.push_back("what fails was opened");
    use({name, std::move(*got)});
    if (draw(3) == 0) leases_.clear();
  }

  void use(Lease lease) {
    const Result<std::shared_ptr<const CompletionResult>> result =
        lease.runtime->run(ask({1, 2}, draw(5), 1 + static_cast<std::int32_t>(draw(4))));
    if (!result.ok()) {
      wrong.push_back(lease.name + ": " + result.status().message());
    } else if ((*result)->model != lease.name) {
      wrong.push_back("asked " + lease.name + ", got " + (*result)->model);
    }
    ++served;
    leases_.push_back(std::move(lease));
  }

  Catalog& catalog_;
  NoiseKey key_;
  std::uint32_t count_ = 0;
  std::vector<Lease> leases_;
  std::atomic<int>& progress_;
};

void run_users(CatalogOptions options, std::uint64_t seed) {
  testing::FakeLoader loader;
  std::uint64_t bytes = 8;
  for (const std::string& name : kNames) loader.add(name, {.seed = 1, .bytes = bytes++});
  loader.add("draft", {.seed = 1, .noise = 0.5f, .bytes = 2});
  loader.add("failing", {.failure = internal_error("on purpose"), .bytes = 5});
  std::vector<CatalogEntry> entries;
  for (const std::string& name : kNames) entries.push_back({.name = name, .target = model(name)});
  entries[1].draft = model("draft");
  Result<std::unique_ptr<Catalog>> made = Catalog::create(entries, std::move(options), loader);
  ASSERT_TRUE(made.ok());
  std::atomic<int> progress{0};
  std::vector<User> users;
  for (int i = 0; i < kThreads; ++i) users.emplace_back(**made, seed, i, progress);
  {
    const testing::Watchdog watchdog(progress, std::chrono::seconds(120));
    std::vector<std::thread> threads;
    for (User& user : users) threads.emplace_back([&user] { user.run(); });
    for (std::thread& thread : threads) thread.join();
  }
  int served = 0;
  for (const User& user : users) {
    EXPECT_EQ(user.wrong, std::vector<std::string>{});
    served += user.served;
  }
  EXPECT_GT(served, kThreads);
  EXPECT_EQ((*made)->check_integrity(), "");
  EXPECT_LE(loader.memory().most(), kMemory + 4);  // a failed guess of a draft's, at most
  made->reset();
  EXPECT_EQ(loader.memory().taken(), 0u);
}

TEST(CatalogStress, UnderAMemoryLimitEveryLeaseHasItsModel) {
  run_users({.runtime = {.slots = 2}, .memory_bytes = kMemory, .retry_ms = 0},
            testing::test_seed(21));
}

TEST(CatalogStress, UnderALimitOfModelsEveryLeaseHasItsModel) {
  run_users({.runtime = {.slots = 2}, .max_models = 2, .retry_ms = 0}, testing::test_seed(22));
}

// What is opened when the catalog ends is ended with it.
TEST(CatalogStress, ItCanBeShutDownAtAnyMoment) {
  const std::uint64_t seed = testing::test_seed(23);
  for (int round = 0; round < 30; ++round) {
    testing::FakeLoader loader;
    for (const std::string& name : kNames) loader.add(name, {.seed = 1, .load_steps = 3});
    std::vector<CatalogEntry> entries;
    for (const std::string& name : kNames) entries.push_back({.name = name, .target = model(name)});
    Result<std::unique_ptr<Catalog>> made =
        Catalog::create(entries, {.runtime = {.slots = 1}, .max_models = 2}, loader);
    ASSERT_TRUE(made.ok());
    std::vector<std::thread> threads;
    std::atomic<int> ended{0};
    for (const std::string& name : kNames) {
      threads.emplace_back([&, name] {
        for (;;) {
          Result<std::shared_ptr<Runtime>> lease = (*made)->acquire(name, {});
          if (lease.ok()) continue;
          if (lease.status().code() == StatusCode::kCancelled) break;
          std::this_thread::yield();  // refused at once: leave the mutex to the others
        }
        ++ended;
      });
    }
    const NoiseKey key = noise_key(seed, static_cast<std::uint64_t>(round));
    const int wanted = static_cast<int>(noise_bits(key, 0) % 3);
    while (loader.loads() < wanted) std::this_thread::yield();
    (*made)->shut_down();
    for (std::thread& thread : threads) thread.join();
    EXPECT_EQ(ended, static_cast<int>(kNames.size()));
    EXPECT_EQ((*made)->check_integrity(), "");
  }
}

TEST(CatalogQueue, NoMoreWaitForAModelThatIsOpenedThanItsRuntimeTakes) {
  testing::FakeLoader loader;
  loader.add("m", {.seed = 1});
  const std::unique_ptr<Catalog> catalog =
      std::move(Catalog::create({{.name = "m", .target = model("m")}},
                                {.runtime = {.slots = 1, .max_queue = 2}}, loader)
                    .value());
  loader.hold(true);
  std::atomic<int> n_served{0};
  std::vector<std::thread> waiting;
  for (int i = 0; i < 3; ++i) {
    waiting.emplace_back([&] { n_served += catalog->acquire("m", {}).ok() ? 1 : 0; });
  }
  EXPECT_TRUE(testing::eventually([&] { return catalog->status_of("m")->waiting == 3; }));
  // Who waits nevertheless gives up, and does not stall.
  const Status refused = catalog->acquire("m", [] { return true; }).status();
  EXPECT_EQ(refused.code(), StatusCode::kResourceExhausted);
  EXPECT_EQ(
      refused.message(),
      "the queue is full: 3 requests are waiting for model 'm' to be opened; try again later");
  loader.hold(false);
  for (std::thread& thread : waiting) thread.join();
  EXPECT_EQ(n_served, 3);
  EXPECT_TRUE(catalog->acquire("m", {}).ok());
  EXPECT_EQ(catalog->status_of("m")->waiting, 0);
}

}  // namespace
}  // namespace outrider
