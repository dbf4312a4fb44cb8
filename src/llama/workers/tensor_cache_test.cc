#include "llama/workers/tensor_cache.h"

#include <gtest/gtest.h>

#include <chrono>
#include <filesystem>

#include "testing/tiny_dir.h"

namespace outrider::llama {
namespace {

TEST(TensorCache, WhatIsNotWhatItsNameSaysIsRemoved) {
  const testing::TempDir dir;
  // FNV-1a of 64 bits, as published: of nothing, of "a" and of "foobar".
  testing::write_bytes(dir.file("cbf29ce484222325"), "");
  testing::write_bytes(dir.file("af63dc4c8601ec8c"), "a");
  testing::write_bytes(dir.file("85944171f73967e8"), "foo");  // cut short
  testing::write_bytes(dir.file("85944171F73967E8"), "foo");  // no name of ggml's
  testing::write_bytes(dir.file("notes"), "mine");
  std::filesystem::create_directory(dir.file("0123456789abcdef"));
  std::filesystem::create_symlink(dir.file("none"), dir.file("0000000000000000"));
  const Result<std::int64_t> removed = remove_damaged_tensors(dir.file("."));
  ASSERT_TRUE(removed.ok()) << removed.status().message();
  EXPECT_EQ(*removed, 1);
  EXPECT_FALSE(std::filesystem::exists(dir.file("85944171f73967e8")));
  EXPECT_EQ(dir.n_entries(), 6);
  testing::write_bytes(dir.file("85944171f73967e8"), "foobar");
  EXPECT_EQ(*remove_damaged_tensors(dir.file(".")), 0);
}

// What they hold does not matter: only names, sizes and times.
TEST(TensorCache, BeyondTheLimitWhatWasWrittenLongestAgoIsRemoved) {
  const testing::TempDir dir;
  const auto write = [&dir](const std::string& name, std::size_t size, int hours_ago) {
    testing::write_bytes(dir.file(name), std::string(size, 'x'));
    std::filesystem::last_write_time(dir.file(name), std::filesystem::file_time_type::clock::now() -
                                                         std::chrono::hours(hours_ago));
  };
  write("000000000000000a", 300, 1);
  write("0000000000000001", 200, 3);  // the oldest but one, and the first by its name
  write("000000000000000b", 100, 2);
  write("0000000000000002", 10, 4);
  write("notes", 5000, 9);  // no tensor: it stays, and does not count
  EXPECT_EQ(*remove_oldest_tensors(dir.file("."), 610), 0);
  EXPECT_EQ(*remove_oldest_tensors(dir.file("."), 609), 1);
  EXPECT_FALSE(std::filesystem::exists(dir.file("0000000000000002")));
  write("0000000000000002", 10, 4);
  // It would fit beside the two that are left, but is older than what does not.
  EXPECT_EQ(*remove_oldest_tensors(dir.file("."), 410), 2);
  EXPECT_FALSE(std::filesystem::exists(dir.file("0000000000000001")));
  EXPECT_TRUE(std::filesystem::exists(dir.file("000000000000000a")));
  EXPECT_TRUE(std::filesystem::exists(dir.file("000000000000000b")));
  EXPECT_EQ(*remove_oldest_tensors(dir.file("."), 0), 2);
  EXPECT_EQ(dir.n_entries(), 1);
}

TEST(TensorCache, AFolderThatIsNotThereIsAnError) {
  EXPECT_EQ(remove_oldest_tensors("/no/such/folder", 1).status().code(),
            StatusCode::kInvalidArgument);
  EXPECT_EQ(remove_damaged_tensors("/no/such/folder").status().code(),
            StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace outrider::llama
