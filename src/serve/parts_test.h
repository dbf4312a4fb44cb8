// A station and the parts of a runtime that keep account of what is loaded for it, without threads:
// whoever tests them is the loading thread, the decode thread and the client.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "serve/runtime_parts.h"
#include "testing/fake_loader.h"
#include "testing/runtime_fixture.h"

namespace outrider::testing {

struct EmptyLookupFile : LookupFile {
  std::uint64_t file_bytes() const override { return 0; }
  std::uint64_t memory_bytes() const override { return 0; }
};

class RuntimePartsTest : public ::testing::Test {
 protected:
  RuntimePartsTest() {
    loader_.add_usual_files();
    std::shared_ptr<Target> target = *loader_.load_target(model("target"), {});
    station_ = std::make_shared<Station>(std::move(target), RuntimeOptions());
    parts_.models.load(ModelRole::kTarget, model("target"));
    const ModelLoads::Opening opening = parts_.models.begin(ModelRole::kTarget);
    parts_.models.target_opened(opening, station_);
  }

  // Of the draft that was asked for last. Returns the load's number.
  std::uint64_t open_draft() {
    const ModelLoads::Opening opening = parts_.models.begin(ModelRole::kDraft);
    parts_.models.draft_opened(opening, {station_, new_draft(), ""});
    return opening.task.number;
  }
  std::uint64_t load_draft() {
    parts_.models.load(ModelRole::kDraft, model("draft"));
    return open_draft();
  }
  // One is asked for and cannot be opened.
  void fail_draft(const std::string& why) {
    parts_.models.load(ModelRole::kDraft, model("missing"));
    const ModelLoads::Opening opening = parts_.models.begin(ModelRole::kDraft);
    parts_.models.failed(ModelRole::kDraft, opening.task, not_found(why));
  }
  std::unique_ptr<Draft> new_draft() {
    return *loader_.load_draft(model("draft"), station_->target(), {});
  }
  ModelStatus draft() const { return parts_.models.status(ModelRole::kDraft); }

  // Returns what it was opened as, or a file without contents.
  OpenedDrafterFile attach_file(const std::string& path, const Status& failure = {}) {
    OpenedDrafterFile file = {.file = {.drafter = "suffix", .path = path}, .contents = nullptr};
    EXPECT_TRUE(parts_.files.attach(file.file).ok());
    const LoadTask::Opening opening = parts_.files.begin_next();
    if (failure.ok()) {
      file.contents = std::make_shared<const EmptyLookupFile>();
      parts_.files.done(opening, station_, file);
    } else {
      parts_.files.done(opening, station_, failure);
    }
    return file;
  }
  // What the station's decode thread would do with what is on its way, less the installing.
  void drop_changes() {
    while (parts_.stations.take_change(*station_)) {
    }
  }

  void TearDown() override {
    EXPECT_EQ(parts_.models.check_integrity(), "");
    EXPECT_EQ(parts_.files.check_integrity(), "");
  }

  FakeLoader loader_;
  RuntimeParts parts_{RuntimeOptions()};
  StationPtr station_;
};

}  // namespace outrider::testing
