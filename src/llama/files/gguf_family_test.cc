#include "llama/files/gguf_family.h"

#include <gtest/gtest.h>

#include "llama/files/gguf_header.h"
#include "llama/files/model_file.h"
#include "testing/gguf_damage.h"
#include "testing/tiny_dir.h"
#include "testing/tiny_gguf.h"

namespace outrider::llama {
namespace {

TEST(GgufFamilyTest, ParametersAndTokensAreReadFromTheHeader) {
  const testing::TempDir dir;
  testing::TinyModelOptions options;
  ASSERT_TRUE(testing::write_tiny_gguf(dir.file("q8.gguf"), options).ok());
  options.weight_type = testing::WeightType::kQ4_0;
  options.seed = 2;
  ASSERT_TRUE(testing::write_tiny_gguf(dir.file("q4.gguf"), options).ok());
  options.vocabulary.rotate_bytes = 1;
  ASSERT_TRUE(testing::write_tiny_gguf(dir.file("other.gguf"), options).ok());
  const Result<GgufFamily> q8 = read_gguf_family(dir.file("q8.gguf"));
  const Result<GgufFamily> q4 = read_gguf_family(dir.file("q4.gguf"));
  const Result<GgufFamily> other = read_gguf_family(dir.file("other.gguf"));
  ASSERT_TRUE(q8.ok() && q4.ok() && other.ok());
  EXPECT_EQ(q8->architecture, "llama");
  EXPECT_GT(q8->n_parameters, 100'000u);
  EXPECT_EQ(q8->n_parameters, q4->n_parameters) << "whatever the weights' type";
  EXPECT_LT(q4->file_bytes, q8->file_bytes);
  EXPECT_NE(q8->tokenizer, 0u);
  EXPECT_EQ(q8->tokenizer, q4->tokenizer);
  EXPECT_NE(q8->tokenizer, other->tokenizer) << "the same tokens at other ids";
  EXPECT_EQ(read_gguf_family(dir.file("no.gguf")).status().code(), StatusCode::kNotFound);
  Result<std::vector<testing::BadModelFile>> bad =
      testing::write_bad_model_files(dir.file("q8.gguf"), dir.path());
  ASSERT_TRUE(bad.ok());
  for (const testing::BadModelFile& file : *bad) (void)read_gguf_family(file.path);  // no crash
}

TEST(GgufFamilyTest, ADraftHasTheTokensTheFamilyAndAThirdOfTheParameters) {
  const GgufFamily target{
      .architecture = "llama", .basename = "L", .tokenizer = 7, .n_parameters = 300};
  GgufFamily draft = target;
  draft.n_parameters = 100;
  EXPECT_TRUE(could_draft(draft, target));
  draft.n_parameters = 101;
  EXPECT_FALSE(could_draft(draft, target));
  draft.n_parameters = 50;
  draft.architecture = "llama5";
  EXPECT_TRUE(could_draft(draft, target)) << "of one base";
  draft.basename = "M";
  EXPECT_FALSE(could_draft(draft, target));
  draft.architecture = "llama";
  EXPECT_TRUE(could_draft(draft, target));
  draft.tokenizer = 8;
  EXPECT_FALSE(could_draft(draft, target));
  GgufFamily none = target;
  none.tokenizer = draft.tokenizer = 0;
  EXPECT_FALSE(could_draft(draft, none)) << "without tokens nothing is known";
}

TEST(GgufFamilyTest, OfAMixtureOfExpertsThoseCountThatATokenTakes) {
  const testing::TempDir dir;
  testing::TinyModelOptions options{.n_layer = 1, .n_ff = 512};
  options.n_expert = 16;
  options.n_expert_used = 16;
  ASSERT_TRUE(testing::write_tiny_gguf(dir.file("all.gguf"), options).ok());
  options.n_expert_used = 4;
  ASSERT_TRUE(testing::write_tiny_gguf(dir.file("some.gguf"), options).ok());
  ASSERT_TRUE(testing::write_tiny_gguf(dir.file("dense.gguf"), {.n_layer = 2, .n_ff = 512}).ok());
  const Result<GgufFamily> all = read_gguf_family(dir.file("all.gguf"));
  const Result<GgufFamily> some = read_gguf_family(dir.file("some.gguf"));
  const Result<GgufFamily> dense = read_gguf_family(dir.file("dense.gguf"));
  ASSERT_TRUE(all.ok() && some.ok() && dense.ok());
  EXPECT_EQ(all->n_parameters - some->n_parameters, 12u * 3 * 128 * 512);
  EXPECT_TRUE(could_draft(*dense, *all)) << dense->n_parameters << " of " << all->n_parameters;
  EXPECT_FALSE(could_draft(*dense, *some)) << "costs as much as its target";
}

TEST(GgufFamilyTest, AModelWithRecurrentLayersIsNoDraft) {
  const testing::TempDir dir;
  for (const testing::TinyArchitecture architecture :
       {testing::TinyArchitecture::kLlama, testing::TinyArchitecture::kSlidingWindow,
        testing::TinyArchitecture::kShortConv, testing::TinyArchitecture::kMamba}) {
    const std::string path = dir.file("model.gguf");
    ASSERT_TRUE(testing::write_tiny_gguf(path, {.architecture = architecture}).ok());
    const Result<std::shared_ptr<ModelFile>> file =
        ModelFile::load(path, 0, /*extra_bufts=*/true, {});
    ASSERT_TRUE(file.ok()) << file.status().message();
    const ModelFacts& facts = (*file)->facts();
    EXPECT_EQ(has_recurrent_layers(facts.architecture), facts.recurrent || facts.hybrid)
        << facts.architecture;
    const Result<GgufFamily> small = read_gguf_family(path);
    ASSERT_TRUE(small.ok()) << small.status().message();
    GgufFamily large = *small;
    large.n_parameters *= 4;
    EXPECT_EQ(could_draft(*small, large), !facts.recurrent && !facts.hybrid) << facts.architecture;
  }
}

TEST(GgufFamilyTest, TheFilesOfASplitModelAreNumbered) {
  EXPECT_EQ(split_files("a/m.gguf", 3), (std::vector<std::string>{"a/m.gguf"}));
  EXPECT_EQ(split_files("a/m-00001-of-00003.gguf", 3),
            (std::vector<std::string>{"a/m-00001-of-00003.gguf", "a/m-00002-of-00003.gguf",
                                      "a/m-00003-of-00003.gguf"}));
}

}  // namespace
}  // namespace outrider::llama
