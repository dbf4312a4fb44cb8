// What a station does by itself, without a runtime's threads.
#include "serve/station.h"

#include <gtest/gtest.h>

#include <memory>
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
