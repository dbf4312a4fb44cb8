// What inspect says of a pair. (Of what make-draft made: make_draft_run_test.cc.)
#include "lab/inspection.h"

#include <gtest/gtest.h>

#include "testing/tiny_dir.h"
#include "testing/tiny_gguf.h"

namespace outrider::lab {
namespace {

TEST(Inspection, ADraftWithRecurrentLayersIsNotUsable) {
  const testing::TempDir dir;
  ASSERT_TRUE(testing::write_tiny_gguf(dir.file("target.gguf"), {}).ok());
  for (const testing::TinyArchitecture architecture :
       {testing::TinyArchitecture::kLlama, testing::TinyArchitecture::kShortConv,
        testing::TinyArchitecture::kMamba}) {
    const std::string name = testing::tiny_architecture_name(architecture);
    SCOPED_TRACE(name);
    ASSERT_TRUE(
        testing::write_tiny_gguf(dir.file("draft.gguf"), {.architecture = architecture}).ok());
    ModelOptions options;
    options.path = dir.file("target.gguf");
    options.n_threads = 1;
    Result<Inspection> inspected = inspect(options, {});
    ASSERT_TRUE(inspected.ok()) << inspected.status().message();
    options.path = dir.file("draft.gguf");
    const Status status = inspect_draft(options, {}, *inspected);
    ASSERT_TRUE(status.ok()) << status.message();
    const bool usable = architecture == testing::TinyArchitecture::kLlama;
    const json::Json match = inspection_json(*inspected)["vocabulary_match"];
    EXPECT_EQ(match["usable"], usable);
    EXPECT_EQ(match["kind"], "identical") << "the tokens are the same";
    const std::string table = inspection_table(*inspected);
    EXPECT_EQ(table.find("draft usable  yes") != std::string::npos, usable) << table;
    EXPECT_EQ(table.find("the " + name + " architecture has recurrent layers") == std::string::npos,
              usable)
        << table;
  }
}

TEST(Inspection, CountsTheStatesOfRecurrentLayersAndSaysWhatTheyCost) {
  const testing::TempDir dir;
  ModelOptions options;
  options.path = dir.file("mamba.gguf");
  const testing::TinyModelOptions mamba = {.architecture = testing::TinyArchitecture::kMamba};
  ASSERT_TRUE(testing::write_tiny_gguf(options.path, mamba).ok());
  const Result<Inspection> inspected = inspect(options, {});
  ASSERT_TRUE(inspected.ok()) << inspected.status().message();
  // Two layers of 256: three tokens of the convolution, and a state of 16 each; in F32.
  EXPECT_EQ(inspection_json(*inspected)["target"]["memory"]["cache_bytes"], 2 * 256 * (3 + 16) * 4);
  const std::string table = inspection_table(*inspected);
  EXPECT_NE(table.find("is read again from its start"), std::string::npos) << table;
}

TEST(Inspection, NamesTheTypesThatADraftCouldHave) {
  const testing::TempDir dir;
  ModelOptions options;
  options.path = dir.file("model.gguf");
  options.n_threads = 1;
  ASSERT_TRUE(testing::write_tiny_gguf(options.path, {}).ok());
  Result<Inspection> inspected = inspect(options, {});
  ASSERT_TRUE(inspected.ok()) << inspected.status().message();
  ASSERT_TRUE(inspect_draft(options, {}, *inspected).ok());
  const KernelUse& kernels = inspected->draft->model.kernels;
  if (!kernels.own) GTEST_SKIP() << kernels.reason;
  ASSERT_TRUE(inspected->draft->types_status.ok()) << inspected->draft->types_status.message();
  const json::Json types = inspection_json(*inspected)["draft"]["weight_types"];
  ASSERT_FALSE(types["types"].empty());
  EXPECT_GT(types["types"][0]["ms"], 0.0);
  const std::string table = inspection_table(*inspected);
  EXPECT_NE(table.find("cheapest type " + cheapest_text(inspected->draft->types)),
            std::string::npos)
      << table;
}

// What is loaded is what the plan says, so nothing else may be said of it.
TEST(Inspection, SaysWhyWeightsStayAsTheFileHasThem) {
  const testing::TempDir dir;
  ModelOptions options;
  options.path = dir.file("target.gguf");
  ASSERT_TRUE(testing::write_tiny_gguf(options.path, {}).ok());
  Result<Inspection> inspected = inspect(options, {});
  ASSERT_TRUE(inspected.ok()) << inspected.status().message();
  EXPECT_TRUE(inspection_json(*inspected)["target"]["exactness"]["notes"].empty());
  inspected->target.plan.extra_bufts = false;
  inspected->target.plan.plain_reason = "for a reason";
  const json::Json exactness = inspection_json(*inspected)["target"]["exactness"];
  EXPECT_EQ(exactness["repacked_weights"], false);
  ASSERT_EQ(exactness["notes"].size(), 1U);
  EXPECT_EQ(exactness["notes"][0], "for a reason");
  const std::string table = inspection_table(*inspected);
  EXPECT_NE(table.find("weights as in the file"), std::string::npos) << table;
  EXPECT_NE(table.find("for a reason"), std::string::npos) << table;
}

}  // namespace
}  // namespace outrider::lab
