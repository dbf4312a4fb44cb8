// What is kept of a target's times, and when it is looked at again. (Its key:
// target_costs_test.cc.)
#include "backend/target_costs.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "testing/fake_model.h"
#include "testing/tiny_dir.h"

namespace outrider {
namespace {

using testing::FakeModel;

class KnownCosts : public ::testing::Test {
 protected:
  std::vector<CostPoint> costs(const LoadHooks& hooks = {}) {
    Result<PassCosts> costs = target_costs(model_, "key", dir_.path(), /*refresh=*/false, hooks);
    EXPECT_TRUE(costs.ok()) << costs.status().message();
    return costs.ok() ? costs->points : std::vector<CostPoint>();
  }

  // In place of what was measured.
  void keep(const std::string& points) {
    for (const auto& entry : std::filesystem::recursive_directory_iterator(dir_.path())) {
      if (!entry.is_regular_file()) continue;
      std::ifstream file(entry.path());
      std::string head;
      std::string key;
      std::getline(file, head);
      std::getline(file, key);
      file.close();
      testing::write_bytes(entry.path().string(), head + "\n" + key + "\n0\n" + points);
    }
  }

  testing::TempDir dir_;
  FakeModel model_{{.n_vocab = 8,
                    .n_ctx = 256,
                    .n_batch = 64,
                    .n_sequences = 1,
                    .rollback = Rollback::kAny,
                    .max_leaves = 4,
                    .max_width = 16},
                   testing::random_rows(8, 1, 1.0f)};
};

TEST_F(KnownCosts, MeasuringTellsItsProgress) {
  std::vector<double> told;
  LoadHooks hooks;
  hooks.progress = [&](double fraction) { told.push_back(fraction); };
  EXPECT_EQ(costs(hooks).size(), 6U);
  ASSERT_FALSE(told.empty());
  EXPECT_TRUE(std::is_sorted(told.begin(), told.end()));
  EXPECT_LE(told.back(), 1.0);
}

// Two rounds and a text of a model of 1 s a token would be 5 s of each load.
TEST_F(KnownCosts, WhatTakesLongerToLookAtThanTheBudgetIsBelieved) {
  ASSERT_EQ(costs().size(), 6U);
  keep("1 1000\n4 1100\n8 1200\n");
  std::int64_t before = model_.evaluations();
  const std::vector<CostPoint> dear = costs();
  EXPECT_EQ(model_.evaluations(), before);
  ASSERT_EQ(dear.size(), 3U);
  EXPECT_EQ(dear[1].ms, 1100.0);
  // What is soon looked at is.
  keep("1 10\n4 100\n8 110\n");
  before = model_.evaluations();
  (void)costs();
  EXPECT_GT(model_.evaluations(), before);
}

}  // namespace
}  // namespace outrider
