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

}  // namespace
}  // namespace outrider::lab
