#include "llama/workers/tensor_cache.h"

#include <gtest/gtest.h>

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

TEST(TensorCache, AFolderThatIsNotThereIsAnError) {
  EXPECT_EQ(remove_damaged_tensors("/no/such/folder").status().code(),
            StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace outrider::llama
