#include "backend/experience_files.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "testing/tiny_dir.h"

namespace outrider {
namespace {

namespace fs = std::filesystem;

DrafterExperience some(double gained) {
  return {.acceptance = {1.0, 2.0}, .reading_ms = 0.5, .gained = {gained, 9.0}};
}

TEST(ExperienceFiles, WhatWasSavedOfADrafterIsLoadedByANewOne) {
  const testing::TempDir dir;
  for (const double gained : {3.0, 4.0}) {  // the second replaces the first
    ExperienceFiles files(dir.file("cache"), "a target");
    const Status saved = files.save("draft A", some(gained));
    ASSERT_TRUE(saved.ok()) << saved.message();
  }
  ExperienceFiles again(dir.file("cache"), "a target");
  const std::optional<DrafterExperience> found = again.load("draft A");
  ASSERT_TRUE(found);
  EXPECT_EQ(found->gained, (std::vector<double>{4.0, 9.0}));
  EXPECT_EQ(found->acceptance, some(4.0).acceptance);
  EXPECT_FALSE(again.load("draft B"));
  EXPECT_FALSE(ExperienceFiles(dir.file("cache"), "another target").load("draft A"));
  // No part of a file is left.
  int n_files = 0;
  for (const fs::directory_entry& entry : fs::directory_iterator(dir.file("cache/experience"))) {
    EXPECT_EQ(entry.path().extension(), ".txt");
    ++n_files;
  }
  EXPECT_EQ(n_files, 1);
}

TEST(ExperienceFiles, ADamagedFileIsAsNone) {
  const testing::TempDir dir;
  ExperienceFiles files(dir.file("cache"), "a target");
  ASSERT_TRUE(files.save("draft A", some(3.0)).ok());
  const fs::path path = files.file_of("draft A");
  fs::resize_file(path, fs::file_size(path) / 2);
  EXPECT_FALSE(files.load("draft A"));
  std::ofstream(path) << "something else\n";
  EXPECT_FALSE(files.load("draft A"));
}

TEST(ExperienceFiles, AFolderThatCannotBeWrittenIsNamed) {
  const testing::TempDir dir;
  std::ofstream(dir.file("file")) << "in the way";
  ExperienceFiles files(dir.file("file"), "a target");
  const Status saved = files.save("draft A", some(3.0));
  EXPECT_FALSE(saved.ok());
  EXPECT_NE(saved.message().find(dir.file("file")), std::string::npos) << saved.message();
  EXPECT_FALSE(files.load("draft A"));
}

}  // namespace
}  // namespace outrider
