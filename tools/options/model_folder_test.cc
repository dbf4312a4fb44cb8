#include "tools/options/model_folder.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "testing/gguf_file.h"
#include "testing/tiny_dir.h"
#include "testing/tiny_gguf.h"

namespace outrider::tools {
namespace {

class ModelFolderTest : public ::testing::Test {
 protected:
  // A model with so many layers; each has the same number of parameters.
  void write(const std::string& name, int n_layer, std::uint64_t seed = 1) {
    testing::TinyModelOptions options;
    options.n_layer = n_layer;
    options.seed = seed;
    options.n_ff = 1024;
    const std::filesystem::path path = dir_.file(name);
    std::filesystem::create_directories(path.parent_path());
    ASSERT_TRUE(testing::write_tiny_gguf(path.string(), options).ok());
  }
  void write_text(const std::string& name, const std::string& text) {
    testing::write_bytes(dir_.file(name), text);
  }

  testing::TempDir dir_;
};

TEST_F(ModelFolderTest, EveryModelIsFoundOnceAndPartsAreLeftOut) {
  write("b.gguf", 1);
  write("sub/a.gguf", 1);
  write("sub/b.gguf", 1);
  write("big-00001-of-00002.gguf", 1);
  write("big-00002-of-00002.gguf", 1);
  write("mmproj-b.gguf", 1);
  write("mtp-b.gguf", 1);
  write_text("notes.txt", "no model");
  write_text("broken.gguf", "no model");
  const Result<ModelFolder> folder = read_model_folder(dir_.path());
  ASSERT_TRUE(folder.ok()) << folder.status().message();
  std::string names;
  for (const FolderModel& model : folder->models) names += model.name + " ";
  EXPECT_EQ(names, "a b big sub/b ");
  EXPECT_EQ(folder->models[1].path, dir_.file("b.gguf"));
  EXPECT_EQ(folder->models[2].path, dir_.file("big-00001-of-00002.gguf"));
  ASSERT_EQ(folder->left_out.size(), 1u);
  EXPECT_NE(folder->left_out[0].find("broken.gguf' is not a GGUF file"), std::string::npos);
}

TEST_F(ModelFolderTest, ASplitModelIsListedOnceAndLeftOutWhereAFileIsMissing) {
  write("whole", 2);
  ASSERT_TRUE(testing::write_gguf_split(dir_.file("whole"), dir_.file("a"), {0, 5}).ok());
  ASSERT_TRUE(testing::write_gguf_split(dir_.file("whole"), dir_.file("b"), {5}).ok());
  std::filesystem::remove(dir_.file("b-00002-of-00002.gguf"));
  const Result<ModelFolder> folder = read_model_folder(dir_.path());
  ASSERT_TRUE(folder.ok()) << folder.status().message();
  ASSERT_EQ(folder->models.size(), 1U);
  EXPECT_EQ(folder->models[0].name, "a");
  EXPECT_EQ(folder->models[0].path, dir_.file("a-00001-of-00003.gguf"));
  ASSERT_EQ(folder->left_out.size(), 1U);
  EXPECT_NE(folder->left_out[0].find("b-00002-of-00002.gguf"), std::string::npos);
}

TEST_F(ModelFolderTest, AFolderThatIsNoneIsTold) {
  EXPECT_EQ(read_model_folder(dir_.file("no")).status().code(), StatusCode::kNotFound);
  write_text("file", "");
  EXPECT_EQ(read_model_folder(dir_.file("file")).status().code(), StatusCode::kInvalidArgument);
  EXPECT_TRUE(read_model_folder(dir_.path())->models.empty());
}

TEST_F(ModelFolderTest, TheSmallestOfAFamilyIsFoundBesideItsTarget) {
  write("large.gguf", 12);
  EXPECT_EQ(find_draft_beside(dir_.file("large.gguf")), std::nullopt);
  write("half.gguf", 8, 2);
  EXPECT_EQ(find_draft_beside(dir_.file("large.gguf")), std::nullopt) << "too large to draft";
  write("small.gguf", 2, 3);
  write("smallest.gguf", 1, 4);
  write("mmproj-tiny.gguf", 1, 4);
  write_text("broken.gguf", "no model");
  EXPECT_EQ(find_draft_beside(dir_.file("large.gguf")), dir_.file("smallest.gguf"));
  EXPECT_EQ(find_draft_beside(dir_.file("smallest.gguf")), std::nullopt);
  EXPECT_EQ(find_draft_beside(dir_.file("no.gguf")), std::nullopt);
  EXPECT_EQ(draft_offer("d/large.gguf", "d/small.gguf"),
            "'small.gguf' beside 'large.gguf' could guess ahead for it, which makes it faster: "
            "-d d/small.gguf");
}

}  // namespace
}  // namespace outrider::tools
