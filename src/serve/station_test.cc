// What a station does by itself, without a runtime's threads.
#include "serve/station.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "draft/drafter_table.h"
#include "testing/fake_drafter.h"
#include "testing/fake_loader.h"
#include "testing/runtime_fixture.h"
#include "testing/tiny_dir.h"

namespace outrider {
namespace {

using testing::model;

class StationTest : public ::testing::Test {
 protected:
  StationTest() {
    loader_.add_usual_files();
    target_ = *loader_.load_target(model("target"), {});
  }

  std::unique_ptr<Draft> draft() { return *loader_.load_draft(model("draft"), target_, {}); }

  testing::FakeLoader loader_;
  std::shared_ptr<Target> target_;
};

TEST_F(StationTest, ADraftThatFindsNoPlaceIsAnErrorAndNotSilentlyLeftOut) {
  testing::ScriptedDrafter other([](DraftRequest&) { return Status(); });
  Station station(target_, {});
  while (station.engine().attach(&other).ok()) {
  }
  EXPECT_EQ(station.set_draft(draft(), "").code(), StatusCode::kResourceExhausted);
  EXPECT_EQ(station.draft(), nullptr);
  EXPECT_FALSE(station.engine().find_drafter(kDraftModelName));
  station.engine().detach(&other, "");
  EXPECT_TRUE(station.set_draft(draft(), "").ok()) << "the control";
  EXPECT_NE(station.draft(), nullptr);
  EXPECT_TRUE(station.set_draft(nullptr, "it goes").ok());
  EXPECT_EQ(station.draft(), nullptr);
}

// A draft model that can keep what it read, as one byte.
class KeepingDrafter : public testing::NamedDrafter {
 public:
  explicit KeepingDrafter(int* n_restored)
      : NamedDrafter(kDraftModelName, [](DraftRequest&) { return Status(); }),
        n_restored_(n_restored) {}
  Result<std::vector<std::uint8_t>> save(SeqId, std::size_t* n_tokens) override {
    *n_tokens = 10;
    return std::vector<std::uint8_t>{1};
  }
  Status restore(SeqId, std::span<const std::uint8_t>, std::size_t) override {
    ++*n_restored_;
    return Status();
  }

 private:
  int* n_restored_;
};

// Two drafts may be equally quick and yet hold other numbers, and the other way round.
TEST_F(StationTest, WhatADraftHadReadIsForOneOfTheSameStateWhateverItsSpeed) {
  const testing::TempDir dir;
  RuntimeOptions options;
  options.prompt_cache = dir.path();
  // How many texts such a draft gets back; a first life reads one.
  const auto restored_by = [&](const char* speed, const char* state, bool reads) {
    int n_restored = 0;
    Station station(*loader_.load_target(model("target"), {}), options);
    EXPECT_TRUE(station
                    .set_draft(std::make_unique<Draft>(
                                   Draft{.drafter = std::make_unique<KeepingDrafter>(&n_restored),
                                         .identity = speed,
                                         .state_identity = state}),
                               "")
                    .ok());
    if (reads) {
      const std::vector<Token> prompt(35, 3);
      EXPECT_TRUE(station.engine().add(testing::request(prompt, 1.0f, 5, 10, 4)).ok());
      testing::run_all(station.engine());
    }
    return n_restored;
  };
  EXPECT_EQ(restored_by("quick", "one", /*reads=*/true), 0);
  EXPECT_EQ(restored_by("slow", "one", /*reads=*/false), 1);
  EXPECT_EQ(restored_by("slow", "another", /*reads=*/false), 0);
  EXPECT_EQ(restored_by("slow", "", /*reads=*/false), 0) << "nobody can tell what it holds";
}

TEST_F(StationTest, TextsThatCannotBeKeptAreToldAtTheEnd) {
  const testing::TempDir dir;
  std::vector<std::string> told;
  RuntimeOptions options;
  options.remember_tokens = 4096;
  options.not_kept = [&told](const Status& why) { told.push_back(why.message()); };
  options.remember_folder = dir.file("folder");
  { const Station station(target_, options); }
  EXPECT_TRUE(told.empty());
  testing::write_bytes(dir.file("file"), "no folder");
  options.remember_folder = dir.file("file");
  { const Station station(target_, options); }
  ASSERT_EQ(told.size(), 1U);
  EXPECT_EQ(told[0].find("remember_folder: "), 0U) << told[0];
}

}  // namespace
}  // namespace outrider
