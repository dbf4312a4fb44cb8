#include "tools/output_file.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "store/store_writer.h"
#include "testing/tiny_dir.h"

namespace outrider::tools {
namespace {

class OutputFileTest : public ::testing::Test {
 protected:
  std::string file(const std::string& name, const std::string& contents) const {
    const std::string path = dir_.file(name);
    testing::write_bytes(path, contents);
    return path;
  }
  static void expect_refused(const OutputFile& output, const std::string& words) {
    const Status status = check_output_file(output);
    EXPECT_EQ(status.code(), StatusCode::kInvalidArgument) << status.message();
    EXPECT_NE(status.message().find(words), std::string::npos) << status.message();
  }

  testing::TempDir dir_;
};

TEST_F(OutputFileTest, WhatIsReadIsNotReplacedByWhateverNameItIsGiven) {
  const std::string text = file("a.txt", "text");
  const std::string link = dir_.file("link");
  std::filesystem::create_symlink("a.txt", link);
  for (const std::string& path : {text, link, dir_.file("./a.txt")}) {
    expect_refused({.option = "--output", .path = path, .reads = {"", dir_.file("none"), text}},
                   "--output is '" + text + "' itself, which this command reads");
  }
  EXPECT_FALSE(check_not_read({.option = "--result", .path = link, .reads = {text}}).ok());
  EXPECT_TRUE(check_not_read({.option = "--result", .path = "/dev/null", .reads = {text}}).ok());
  const OutputFile other{.option = "--output", .path = dir_.file("b"), .reads = {text}};
  EXPECT_TRUE(check_output_file(other).ok());
  EXPECT_EQ(testing::read_bytes(text), "text");
}

TEST_F(OutputFileTest, AFolderThatIsNotThereIsTold) {
  const Status status =
      check_output_file({.option = "--output", .path = dir_.file("no/such/file"), .reads = {}});
  EXPECT_EQ(status.code(), StatusCode::kNotFound);
  EXPECT_EQ(status.message().rfind("--output: ", 0), 0U) << status.message();
}

TEST_F(OutputFileTest, OnlyAStoreOfTheSameKindIsReplacedByAStore) {
  StoreContents contents;
  contents.kind = "suffix";
  const std::string store = dir_.file("store");
  ASSERT_TRUE(save_store(store, contents).ok());
  const auto output = [](const std::string& path, const std::string& kind) {
    return OutputFile{.option = "--output", .path = path, .reads = {}, .check_old = is_store(kind)};
  };
  EXPECT_TRUE(check_output_file(output(store, "suffix")).ok());
  expect_refused(output(store, "ngram"), "would replace a file of another kind");
  expect_refused(output(file("notes.txt", "my notes"), "ngram"), "no store file of Outrider's");
  EXPECT_TRUE(check_output_file(output(dir_.file("new"), "ngram")).ok());
  EXPECT_TRUE(check_output_file(output(file("empty", ""), "ngram")).ok());
  const std::string cut = file("cut", testing::read_bytes(store).substr(0, 100));
  EXPECT_TRUE(check_output_file(output(cut, "suffix")).ok()) << "a damaged store may be made anew";
}

}  // namespace
}  // namespace outrider::tools
