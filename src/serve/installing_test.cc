// What was opened and cannot be put to work, and what nobody wants any more: by the parts of a
// runtime that keep account of it, without its threads.
#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "serve/parts_test.h"

namespace outrider {
namespace {

using testing::model;

using Installing = testing::RuntimePartsTest;

TEST_F(Installing, ADraftThatFindsNoPlaceHasFailed) {
  const std::uint64_t load = load_draft();
  EXPECT_EQ(parts_.stations.take_change(*station_)->load, load);
  parts_.models.draft_not_installed(load, internal_error("there is no place"));
  EXPECT_EQ(draft().state, ModelState::kFailed);
  EXPECT_EQ(draft().error.message(), "there is no place");
  EXPECT_FALSE(draft().serving);
}

TEST_F(Installing, ADraftThatIsOpenIsNotFailedByTheOneBefore) {
  const std::uint64_t first = load_draft();
  const std::uint64_t second = load_draft();
  parts_.models.draft_not_installed(first, internal_error("there is no place"));
  EXPECT_EQ(draft().state, ModelState::kReady);
  EXPECT_TRUE(draft().serving) << "it is on its way";
  parts_.models.draft_not_installed(second, internal_error("there is no place"));
  EXPECT_EQ(draft().state, ModelState::kFailed) << "the control";
}

TEST_F(Installing, ALoadThatWaitsOrFailedKeepsItsOwnStateWhenTheDraftAtWorkIsLost) {
  const std::uint64_t first = load_draft();
  parts_.models.load(ModelRole::kDraft, model("draft"));
  parts_.models.draft_not_installed(first, internal_error("there is no place"));
  EXPECT_EQ(draft().state, ModelState::kLoading);
  EXPECT_FALSE(draft().serving);
  const std::uint64_t second = open_draft();
  EXPECT_EQ(draft().state, ModelState::kReady);
  fail_draft("no file");
  EXPECT_TRUE(draft().serving) << "the second one is";
  parts_.models.draft_not_installed(second, internal_error("there is no place"));
  EXPECT_EQ(draft().error.message(), "no file");
  EXPECT_FALSE(draft().serving);
}

TEST_F(Installing, ADraftThatWasUnloadedMeanwhileHasNotFailed) {
  const std::uint64_t load = load_draft();
  ASSERT_TRUE(parts_.models.unload(ModelRole::kDraft).ok());
  parts_.models.draft_not_installed(load, internal_error("there is no place"));
  EXPECT_EQ(draft().state, ModelState::kAbsent);
}

TEST_F(Installing, AFileThatIsOpenIsNotFailedByTheOneBefore) {
  const OpenedDrafterFile first = attach_file("a");
  const OpenedDrafterFile second = attach_file("a");
  parts_.files.not_installed(first, resource_exhausted("out of memory"));
  EXPECT_EQ(parts_.files.statuses("suffix").at(0).state, ModelState::kReady);
  parts_.files.not_installed(second, resource_exhausted("out of memory"));
  EXPECT_EQ(parts_.files.statuses("suffix").at(0).state, ModelState::kFailed) << "the control";
}

// Freeing gigabytes takes a while, in which nobody else could take the runtime's mutex.
TEST_F(Installing, AFileThatNobodyWantsIsFreedByWhoTakesItAndNotBefore) {
  const auto lets_go = [this](const std::string& how, const auto& act) {
    std::weak_ptr<const LookupFile> contents = attach_file("a").contents;
    drop_changes();
    while (parts_.files.take_unused() != nullptr) {  // of the round before
    }
    act();
    drop_changes();
    EXPECT_FALSE(contents.expired()) << how;
    EXPECT_TRUE(parts_.files.has_unused()) << how;
    parts_.files.take_unused().reset();
    EXPECT_TRUE(contents.expired()) << how;
    EXPECT_EQ(parts_.files.take_unused(), nullptr) << how;
  };
  lets_go("another file of that name", [this] { attach_file("a"); });
  lets_go("another target", [this] { parts_.files.ask_again(); });
  lets_go("detached", [this] { ASSERT_TRUE(parts_.files.detach({"suffix", "a"}).ok()); });
  lets_go("no target", [this] { parts_.files.drop(); });
}

}  // namespace
}  // namespace outrider
