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

  // As the files are now.
  std::optional<std::string> draft_beside(const std::string& target) {
    ModelFamilies families;
    return find_draft_beside(dir_.file(target), families);
  }

  testing::TempDir dir_;
  ModelFamilies families_;
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
  const Result<ModelFolder> folder = read_model_folder(dir_.path(), families_);
  ASSERT_TRUE(folder.ok()) << folder.status().message();
  std::string names;
  for (const FolderModel& model : folder->models) names += model.name + " ";
  EXPECT_EQ(names, "a b big sub/b ");
  EXPECT_EQ(folder->models[1].path, dir_.file("b.gguf"));
  EXPECT_EQ(folder->models[2].path, dir_.file("big-00001-of-00002.gguf"));
  ASSERT_EQ(folder->left_out.size(), 1u);
  EXPECT_NE(folder->left_out[0].find("broken.gguf' is not a GGUF file"), std::string::npos);
}

TEST_F(ModelFolderTest, ALinkThatLeadsNowhereIsLeftOutWithANote) {
  std::filesystem::create_symlink("gone.gguf", dir_.file("link.gguf"));
  const Result<ModelFolder> folder = read_model_folder(dir_.path(), families_);
  ASSERT_TRUE(folder.ok()) << folder.status().message();
  EXPECT_TRUE(folder->models.empty());
  ASSERT_EQ(folder->left_out.size(), 1u);
  EXPECT_NE(folder->left_out[0].find("link.gguf"), std::string::npos) << folder->left_out[0];
}

TEST_F(ModelFolderTest, LinksToFoldersAreFollowedOnceEach) {
  write("real/sub/a.gguf", 1);
  write("dir/z/b.gguf", 1);
  std::filesystem::create_directory_symlink("../real", dir_.file("dir/link"));
  std::filesystem::create_directory_symlink("../real/sub", dir_.file("dir/within"));
  std::filesystem::create_directory_symlink("z", dir_.file("dir/again"));
  std::filesystem::create_directory_symlink("../../dir", dir_.file("real/sub/back"));
  std::filesystem::create_directory_symlink("loop", dir_.file("dir/loop"));
  const Result<ModelFolder> folder = read_model_folder(dir_.file("dir"), families_);
  ASSERT_TRUE(folder.ok()) << folder.status().message();
  ASSERT_EQ(folder->models.size(), 2U);
  EXPECT_EQ(folder->models[0].path, dir_.file("dir/link/sub/a.gguf"));
  EXPECT_EQ(folder->models[1].path, dir_.file("dir/z/b.gguf"));
  EXPECT_TRUE(folder->left_out.empty());
}

TEST_F(ModelFolderTest, ASplitModelIsListedOnceAndLeftOutWhereAFileIsMissing) {
  write("whole", 2);
  ASSERT_TRUE(testing::write_gguf_split(dir_.file("whole"), dir_.file("a"), {0, 5}).ok());
  ASSERT_TRUE(testing::write_gguf_split(dir_.file("whole"), dir_.file("b"), {5}).ok());
  std::filesystem::remove(dir_.file("b-00002-of-00002.gguf"));
  const Result<ModelFolder> folder = read_model_folder(dir_.path(), families_);
  ASSERT_TRUE(folder.ok()) << folder.status().message();
  ASSERT_EQ(folder->models.size(), 1U);
  EXPECT_EQ(folder->models[0].name, "a");
  EXPECT_EQ(folder->models[0].path, dir_.file("a-00001-of-00003.gguf"));
  ASSERT_EQ(folder->left_out.size(), 1U);
  EXPECT_NE(folder->left_out[0].find("b-00002-of-00002.gguf"), std::string::npos);
}

TEST_F(ModelFolderTest, AFolderThatIsNoneIsTold) {
  EXPECT_EQ(read_model_folder(dir_.file("no"), families_).status().code(), StatusCode::kNotFound);
  write_text("file", "");
  EXPECT_EQ(read_model_folder(dir_.file("file"), families_).status().code(),
            StatusCode::kInvalidArgument);
  EXPECT_TRUE(read_model_folder(dir_.path(), families_)->models.empty());
}

TEST_F(ModelFolderTest, TheSmallestOfAFamilyIsFoundBesideItsTarget) {
  write("large.gguf", 12);
  EXPECT_EQ(draft_beside("large.gguf"), std::nullopt);
  write("half.gguf", 8, 2);
  EXPECT_EQ(draft_beside("large.gguf"), std::nullopt) << "too large to draft";
  write("small.gguf", 2, 3);
  write("smallest.gguf", 1, 4);
  write("mmproj-tiny.gguf", 1, 4);
  write_text("broken.gguf", "no model");
  EXPECT_EQ(draft_beside("large.gguf"), dir_.file("smallest.gguf"));
  EXPECT_EQ(draft_beside("smallest.gguf"), std::nullopt);
  EXPECT_EQ(draft_beside("no.gguf"), std::nullopt);
  EXPECT_EQ(draft_offer("d/large.gguf", "d/small.gguf"),
            "'small.gguf' beside 'large.gguf' could guess ahead for it, which makes it faster: "
            "-d d/small.gguf");
  EXPECT_TRUE(draft_offer("a b/l.gguf", "a b/s.gguf").ends_with(": -d 'a b/s.gguf'"));
  EXPECT_TRUE(draft_offer("l.gguf", "o'b.gguf").ends_with(": -d 'o'\\''b.gguf'"));
}

TEST_F(ModelFolderTest, EachFileIsReadOnceHoweverManyAreComparedWithIt) {
  for (int i = 0; i < 5; ++i) write("m" + std::to_string(i) + ".gguf", 1 + 4 * (i % 2));
  int reads = 0;
  ModelFamilies families({}, [&reads](const std::string& path) {
    ++reads;
    return llama::read_gguf_family(path);
  });
  const Result<ModelFolder> folder = read_model_folder(dir_.path(), families);
  ASSERT_TRUE(folder.ok()) << folder.status().message();
  ASSERT_EQ(folder->models.size(), 5U);
  int n_offers = 0;
  for (const FolderModel& model : folder->models) {
    if (find_draft_beside(model.path, families)) ++n_offers;
  }
  EXPECT_EQ(n_offers, 2);
  EXPECT_EQ(reads, 5);
}

TEST_F(ModelFolderTest, ASignalEndsTheReading) {
  for (int i = 0; i < 5; ++i) write("m" + std::to_string(i) + ".gguf", 1 + 4 * (i % 2));
  int reads = 0;
  const auto read = [&reads](const std::string& path) {
    ++reads;
    return llama::read_gguf_family(path);
  };
  const auto stopped = [&reads] { return reads >= 2; };
  ModelFamilies of_folder(stopped, read);
  EXPECT_EQ(read_model_folder(dir_.path(), of_folder).status().code(), StatusCode::kCancelled);
  EXPECT_EQ(reads, 2);
  reads = 0;
  ModelFamilies of_target(stopped, read);
  EXPECT_EQ(find_draft_beside(dir_.file("m1.gguf"), of_target), std::nullopt);
  EXPECT_EQ(reads, 2);
}

}  // namespace
}  // namespace outrider::tools
