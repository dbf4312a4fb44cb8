#include "store/cache_folder.h"

#include <gtest/gtest.h>

#include <chrono>
#include <string>

#include "testing/tiny_dir.h"

namespace outrider {
namespace {

namespace fs = std::filesystem;
using testing::TempDir;

void write_aged(const fs::path& file, int age_hours) {
  testing::write_bytes(file.string(), "old");
  fs::last_write_time(file, fs::file_time_type::clock::now() - std::chrono::hours(age_hours));
}

TEST(CacheFolder, MakesItsFolderAndReplacesAFile) {
  const TempDir dir;
  const fs::path file = fs::path(dir.path()) / "costs" / "a.txt";
  ASSERT_TRUE(write_cache_file(file, "one").ok());
  ASSERT_TRUE(write_cache_file(file, "two").ok());
  EXPECT_EQ(testing::read_bytes(file.string()), "two");
}

TEST(CacheFolder, WhetherAFileCanBeWrittenIsKnownBeforeAndLeavesNone) {
  const TempDir dir;
  const fs::path folder = fs::path(dir.path()) / "costs";
  EXPECT_TRUE(check_cache_file(folder / "a.txt").ok());
  EXPECT_TRUE(fs::is_directory(folder));
  EXPECT_TRUE(fs::is_empty(folder));
  testing::write_bytes(dir.file("file"), "");
  EXPECT_FALSE(check_cache_file(fs::path(dir.file("file")) / "costs" / "a.txt").ok());
}

TEST(CacheFolder, ANewFileBeyondTheMostTakesThePlaceOfTheOldest) {
  const TempDir dir;
  for (int i = 0; i < kMostCacheFiles + 5; ++i) {  // file 0 is the youngest
    write_aged(dir.file(std::to_string(i) + ".txt"), i + 1);
  }
  write_aged(dir.file("other.json"), 100'000);
  ASSERT_TRUE(write_cache_file(dir.file("new.txt"), "new").ok());

  EXPECT_EQ(dir.n_entries(), kMostCacheFiles + 1);
  EXPECT_TRUE(fs::exists(dir.file("new.txt")));
  EXPECT_TRUE(fs::exists(dir.file("other.json")));
  EXPECT_TRUE(fs::exists(dir.file(std::to_string(kMostCacheFiles - 2) + ".txt")));
  EXPECT_FALSE(fs::exists(dir.file(std::to_string(kMostCacheFiles - 1) + ".txt")));
}

TEST(CacheFolder, AFileThatIsReplacedRemovesNone) {
  const TempDir dir;
  for (int i = 0; i < kMostCacheFiles + 5; ++i) write_aged(dir.file(std::to_string(i)), 1);
  ASSERT_TRUE(write_cache_file(dir.file("0"), "new").ok());
  EXPECT_EQ(dir.n_entries(), kMostCacheFiles + 5);
}

TEST(CacheFolder, AFolderThatCannotBeMadeIsAnErrorThatNamesTheFile) {
  const TempDir dir;
  testing::write_bytes(dir.file("file"), "");
  const Status status = write_cache_file(dir.file("file/a.txt"), "x");
  ASSERT_FALSE(status.ok());
  EXPECT_NE(status.message().find("file/a.txt"), std::string::npos) << status.message();
}

}  // namespace
}  // namespace outrider
