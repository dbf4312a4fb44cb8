// What was opened and cannot be put to work, and what nobody wants any more: by the parts of a
// runtime that keep account of it, without its threads.
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>

#include "serve/file_loads.h"
#include "serve/model_loads.h"
#include "testing/fake_loader.h"
#include "testing/runtime_fixture.h"

namespace outrider {
namespace {

using testing::model;

struct Contents : LookupFile {
  std::uint64_t file_bytes() const override { return 0; }
  std::uint64_t memory_bytes() const override { return 0; }
};

class Installing : public ::testing::Test {
 protected:
  Installing() {
    loader_.add_usual_files();
    std::shared_ptr<Target> target = *loader_.load_target(model("target"), {});
    station_ = std::make_shared<Station>(std::move(target), RuntimeOptions());
    models_.load(ModelRole::kTarget, model("target"));
    const ModelLoads::Opening opening = models_.begin(ModelRole::kTarget);
    models_.target_opened(opening, station_);
  }

  // Of the draft that was asked for last. Returns the load's number.
  std::uint64_t open_draft() {
    const ModelLoads::Opening opening = models_.begin(ModelRole::kDraft);
    models_.draft_opened(
        opening, {station_, *loader_.load_draft(model("draft"), station_->target(), {}), ""});
    return opening.task.number;
  }
  std::uint64_t load_draft() {
    models_.load(ModelRole::kDraft, model("draft"));
    return open_draft();
  }
  ModelStatus draft() const { return models_.status(ModelRole::kDraft); }

  OpenedDrafterFile attach_file(const std::string& path) {
    const OpenedDrafterFile file = {.file = {.drafter = "suffix", .path = path},
                                    .contents = std::make_shared<const Contents>()};
    EXPECT_TRUE(files_.attach(file.file).ok());
    const LoadTask::Opening opening = files_.begin_next();
    files_.done(opening, station_, file);
    return file;
  }
  // What the station's decode thread would do with what is on its way, less the installing.
  void drop_changes() {
    while (stations_.take_change(*station_)) {
    }
  }

  void TearDown() override {
    EXPECT_EQ(models_.check_integrity(), "");
    EXPECT_EQ(files_.check_integrity(), "");
  }

  testing::FakeLoader loader_;
  RuntimeShared shared_{RuntimeOptions()};
  Stations stations_;
  FileLoads files_{shared_, stations_};
  DrafterNotes notes_{{}};
  ModelLoads models_{shared_, stations_, files_, notes_};
  StationPtr station_;
};

TEST_F(Installing, ADraftThatFindsNoPlaceHasFailed) {
  const std::uint64_t load = load_draft();
  EXPECT_EQ(stations_.take_change(*station_)->load, load);
  models_.draft_not_installed(load, internal_error("there is no place"));
  EXPECT_EQ(draft().state, ModelState::kFailed);
  EXPECT_EQ(draft().error.message(), "there is no place");
  EXPECT_FALSE(draft().serving);
}

TEST_F(Installing, ADraftThatIsOpenIsNotFailedByTheOneBefore) {
  const std::uint64_t first = load_draft();
  const std::uint64_t second = load_draft();
  models_.draft_not_installed(first, internal_error("there is no place"));
  EXPECT_EQ(draft().state, ModelState::kReady);
  EXPECT_TRUE(draft().serving) << "it is on its way";
  models_.draft_not_installed(second, internal_error("there is no place"));
  EXPECT_EQ(draft().state, ModelState::kFailed) << "the control";
}

TEST_F(Installing, ALoadThatWaitsOrFailedKeepsItsOwnStateWhenTheDraftAtWorkIsLost) {
  const std::uint64_t first = load_draft();
  models_.load(ModelRole::kDraft, model("draft"));
  models_.draft_not_installed(first, internal_error("there is no place"));
  EXPECT_EQ(draft().state, ModelState::kLoading);
  EXPECT_FALSE(draft().serving);
  const std::uint64_t second = open_draft();
  EXPECT_EQ(draft().state, ModelState::kReady);
  models_.load(ModelRole::kDraft, model("missing"));
  models_.failed(ModelRole::kDraft, models_.begin(ModelRole::kDraft).task, not_found("no file"));
  EXPECT_TRUE(draft().serving) << "the second one is";
  models_.draft_not_installed(second, internal_error("there is no place"));
  EXPECT_EQ(draft().error.message(), "no file");
  EXPECT_FALSE(draft().serving);
}

TEST_F(Installing, ADraftThatWasUnloadedMeanwhileHasNotFailed) {
  const std::uint64_t load = load_draft();
  ASSERT_TRUE(models_.unload(ModelRole::kDraft).ok());
  models_.draft_not_installed(load, internal_error("there is no place"));
  EXPECT_EQ(draft().state, ModelState::kAbsent);
}

TEST_F(Installing, AFileThatIsOpenIsNotFailedByTheOneBefore) {
  const OpenedDrafterFile first = attach_file("a");
  const OpenedDrafterFile second = attach_file("a");
  files_.not_installed(first, resource_exhausted("out of memory"));
  EXPECT_EQ(files_.statuses("suffix").at(0).state, ModelState::kReady);
  files_.not_installed(second, resource_exhausted("out of memory"));
  EXPECT_EQ(files_.statuses("suffix").at(0).state, ModelState::kFailed) << "the control";
}

// Freeing gigabytes takes a while, in which nobody else could take the runtime's mutex.
TEST_F(Installing, AFileThatNobodyWantsIsFreedByWhoTakesItAndNotBefore) {
  const auto lets_go = [this](const std::string& how, const auto& act) {
    std::weak_ptr<const LookupFile> contents = attach_file("a").contents;
    drop_changes();
    while (files_.take_unused() != nullptr) {  // of the round before
    }
    act();
    drop_changes();
    EXPECT_FALSE(contents.expired()) << how;
    EXPECT_TRUE(files_.has_unused()) << how;
    files_.take_unused().reset();
    EXPECT_TRUE(contents.expired()) << how;
    EXPECT_EQ(files_.take_unused(), nullptr) << how;
  };
  lets_go("another file of that name", [this] { attach_file("a"); });
  lets_go("another target", [this] { files_.ask_again(); });
  lets_go("detached", [this] { ASSERT_TRUE(files_.detach({"suffix", "a"}).ok()); });
  lets_go("no target", [this] { files_.drop(); });
}

}  // namespace
}  // namespace outrider
