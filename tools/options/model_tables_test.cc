#include "tools/options/model_tables.h"

#include <gtest/gtest.h>

#include "tools/options/usage.h"

namespace outrider::tools {
namespace {

// "message | hint" of what is refused; empty: nothing.
std::string refusal(const std::string& text) {
  try {
    (void)read_model_tables("c.toml", text, {});
  } catch (const UsageError& error) {
    return std::string(error.what()) + " | " + error.hint();
  }
  return "";
}

TEST(ModelTables, TheirOptionsAreThoseOfTheCommandLineOverTheServersOwn) {
  ModelArguments defaults;
  defaults.model = "default.gguf";
  defaults.draft_model = "default-draft.gguf";
  defaults.target.n_ctx = 2048;
  defaults.target.n_threads = 3;
  defaults.target.isolate = true;
  const std::vector<ModelTable> tables = read_model_tables("c.toml", R"(
ctx = 1
[models.large]
model = "large.gguf"
draft-model = "small.gguf"
ctx = 8192
draft_ctx = 512
isolate = true
aliases = ["gpt-4", "other name"]
suffix-store = ["a.store", "b.store"]
[models."from the hub"]
hf-repo = "user/repo:Q8_0"
exact = "off"
isolate = false
[run]
temp = 1
)",
                                                           defaults);
  ASSERT_EQ(tables.size(), 2U);
  EXPECT_EQ(tables[0].name, "large");
  EXPECT_EQ(tables[0].line, 3U);
  const ModelOptions target = target_options(tables[0].model);
  EXPECT_EQ(target.path, "large.gguf");
  EXPECT_EQ(target.n_ctx, 8192);
  EXPECT_EQ(target.n_threads, 3);
  EXPECT_TRUE(target.isolate);
  const ModelOptions draft = draft_options(tables[0].model);
  EXPECT_EQ(draft.path, "small.gguf");
  EXPECT_EQ(draft.n_ctx, 512);
  EXPECT_EQ(tables[0].aliases, (std::vector<std::string>{"gpt-4", "other name"}));
  ASSERT_EQ(tables[0].files.size(), 2U);
  EXPECT_EQ(tables[0].files[1].path, "b.store");
  EXPECT_EQ(tables[1].name, "from the hub");
  EXPECT_EQ(tables[1].model.hf_repo, "user/repo:Q8_0");
  EXPECT_FALSE(tables[1].model.model);
  EXPECT_FALSE(has_draft(tables[1].model));
  EXPECT_FALSE(tables[1].model.target.isolate) << "as its table says";
  EXPECT_EQ(tables[1].model.target.n_ctx, 2048);
  EXPECT_EQ(tables[1].model.target.exact, ExactMode::kOff);
}

TEST(ModelTables, WhatIsWrongIsToldWithItsLineAndTable) {
  EXPECT_EQ(refusal(""), "");
  EXPECT_EQ(refusal("[models.a]\nmodel = \"x\"\nctxx = 5\n"),
            "config file 'c.toml', line 3: [models.a] has no option 'ctxx' | did you mean 'ctx'?");
  EXPECT_EQ(refusal("[models.a]\nmodel = \"x\"\nzzzzzzz = 5\n"),
            "config file 'c.toml', line 3: [models.a] has no option 'zzzzzzz' | its keys are those "
            "of 'outrider run --help' under Model");
  EXPECT_EQ(refusal("[models.a]\nmodel = \"x\"\nctx = -5\n")
                .rfind("config file 'c.toml', line 3: [models.a] --ctx is '-5', but must be", 0),
            0U)
      << refusal("[models.a]\nmodel = \"x\"\nctx = -5\n");
  EXPECT_EQ(
      refusal("[models.a]\nmodel = \"x\"\nisolate = 3\n"),
      "config file 'c.toml', line 3: [models.a] 'isolate' is 3, but must be true or false | ");
  EXPECT_EQ(refusal("[models.a]\nmodel = [\"x\", \"y\"]\n"),
            "config file 'c.toml', line 2: [models.a] 'model' takes one value | ");
  EXPECT_EQ(refusal("[models.a]\nctx = 5\n"),
            "config file 'c.toml', line 1: [models.a] --model is missing | give it model = "
            "\"FILE\" or hf-repo = \"USER/REPO\"");
  EXPECT_EQ(refusal("[models.a]\n").rfind("config file 'c.toml', line 1: [models.a] --model", 0),
            0U);
  EXPECT_NE(refusal("[models.a]\nmodel = \"x\"\nhf-repo = \"u/r\"\n").find("both given"),
            std::string::npos);
  EXPECT_NE(refusal("[models.a]\nhf-repo = \"nothing\"\n").find("USER/REPO"), std::string::npos);
  EXPECT_NE(refusal("[models.a]\nmodel = \"x\"\n[models.a]\nmodel = \"y\"\n").find("line 3"),
            std::string::npos);
  EXPECT_NE(refusal("[models.a]\nmodel = \"x\"\nhelp = true\n").find("has no option 'help'"),
            std::string::npos);
}

}  // namespace
}  // namespace outrider::tools
