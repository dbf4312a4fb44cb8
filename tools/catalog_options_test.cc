#include "tools/catalog_options.h"

#include <gtest/gtest.h>

#include "testing/fake_loader.h"
#include "testing/tiny_dir.h"
#include "testing/tiny_gguf.h"

namespace outrider::tools {
namespace {

class CatalogOptionsTest : public ::testing::Test {
 protected:
  std::string write(const std::string& name, int n_layer) {
    testing::TinyModelOptions options;
    options.n_layer = n_layer;
    options.n_ff = 1024;
    EXPECT_TRUE(testing::write_tiny_gguf(dir_.file(name), options).ok());
    return dir_.file(name);
  }

  testing::TempDir dir_;
  Terminal terminal_;
};

TEST_F(CatalogOptionsTest, TheOwnModelComesFirstThenTablesThenTheFolder) {
  ModelArguments own;
  own.model = write("large.gguf", 12);
  own.target.n_ctx = 777;
  const std::string small = write("small.gguf", 1);
  CatalogArguments arguments{.model_dir = dir_.path(), .max_models = 3, .model_memory = 5};
  arguments.tables =
      read_model_tables("c.toml",
                        "[models.pair]\nmodel = \"" + *own.model + "\"\ndraft-model = \"" + small +
                            "\"\naliases = [\"gpt\"]\n",
                        own);
  const Result<CatalogModels> models = catalog_models(own, {}, arguments, terminal_);
  ASSERT_TRUE(models.ok()) << models.status().message();
  ASSERT_EQ(models->entries.size(), 3U);
  EXPECT_EQ(models->entries[0].name, "large");
  EXPECT_EQ(models->entries[0].offered_draft, small);
  EXPECT_FALSE(models->entries[0].draft) << "offered, not taken";
  EXPECT_EQ(models->entries[1].name, "pair");
  EXPECT_EQ(models->entries[1].draft->path, small);
  EXPECT_EQ(models->entries[1].offered_draft, "");
  EXPECT_EQ(models->entries[1].aliases, std::vector<std::string>{"gpt"});
  EXPECT_EQ(models->entries[2].name, "small");
  EXPECT_EQ(models->entries[2].target.n_ctx, 777);
  ASSERT_EQ(models->notes.size(), 2U);
  EXPECT_NE(models->notes[0].find("-d " + small), std::string::npos) << models->notes[0];
  EXPECT_NE(models->notes[1].find("there is another model 'large'"), std::string::npos);
  const CatalogOptions options = catalog_options(arguments);
  EXPECT_EQ(options.max_models, 3);
  EXPECT_EQ(options.memory_bytes, 5U << 20);
  EXPECT_TRUE(options.free_memory);
}

TEST_F(CatalogOptionsTest, EachHeaderIsReadOnceHoweverManyModelsThereAre) {
  for (int i = 0; i < 4; ++i) write("m" + std::to_string(i) + ".gguf", i == 0 ? 1 : 6);
  int reads = 0;
  ModelArguments own;
  own.model = dir_.path() + "/m1.gguf";
  CatalogArguments arguments{.model_dir = dir_.path()};
  arguments.read_family = [&reads](const std::string& path) {
    ++reads;
    return llama::read_gguf_family(path);
  };
  const Result<CatalogModels> models = catalog_models(own, {}, arguments, terminal_);
  ASSERT_TRUE(models.ok()) << models.status().message();
  EXPECT_EQ(models->entries.size(), 4U);
  EXPECT_EQ(models->notes.size(), 4U) << "three offers, and m1 twice";
  EXPECT_EQ(reads, 4);
}

TEST_F(CatalogOptionsTest, AFileOfATableThatIsMissingIsToldAtTheStart) {
  const std::string there = write("there.gguf", 1);
  CatalogArguments arguments;
  arguments.tables = read_model_tables("c.toml",
                                       "[models.one]\nmodel = \"" + there +
                                           "\"\ndraft-model = \"/no/draft.gguf\"\n"
                                           "[models.two]\nmodel = \"/no/target.gguf\"\n",
                                       {});
  const Result<CatalogModels> models = catalog_models({}, {}, arguments, terminal_);
  ASSERT_TRUE(models.ok()) << models.status().message();
  EXPECT_EQ(models->entries.size(), 2U);
  ASSERT_EQ(models->notes.size(), 2U);
  EXPECT_NE(models->notes[0].find("[models.one]: there is no file '/no/draft.gguf'"),
            std::string::npos);
  EXPECT_NE(models->notes[1].find("[models.two]: there is no file '/no/target.gguf'"),
            std::string::npos);
}

TEST_F(CatalogOptionsTest, NamesThatAreSaidTwiceAndFilesWithNoUsableNameAreServed) {
  ModelArguments own;
  own.model = write("own.gguf", 1);
  const std::string longest(200, 'x');
  write(longest + ".gguf", 1);
  CatalogArguments arguments{.model_dir = dir_.path()};
  arguments.tables = read_model_tables("c.toml",
                                       "[models.one]\nmodel = \"" + *own.model +
                                           "\"\naliases = [\"one\", \"uno\", \"uno\"]\n"
                                           "[models.two]\nmodel = \"" +
                                           *own.model + "\"\n",
                                       {});
  Result<CatalogModels> models = catalog_models(own, {}, arguments, terminal_);
  ASSERT_TRUE(models.ok()) << models.status().message();
  for (const char* alias : {"own", "mine", "mine"}) add_alias(models->entries[0], alias);
  EXPECT_EQ(models->entries[0].aliases, std::vector<std::string>{"mine"});
  add_aliases(models->entries[0], "own,,gpt-4, gpt-4o,");
  EXPECT_EQ(models->entries[0].aliases, (std::vector<std::string>{"mine", "gpt-4", "gpt-4o"}));
  EXPECT_EQ(models->entries[1].aliases, std::vector<std::string>{"uno"});
  EXPECT_EQ(models->entries.back().name, longest.substr(0, 128));
  testing::FakeLoader loader;
  CatalogOptions options = catalog_options(arguments);
  const auto made = Catalog::create(std::move(models->entries), std::move(options), loader);
  EXPECT_TRUE(made.ok()) << made.status().message();
}

TEST_F(CatalogOptionsTest, WhatTablesHaveIsThereForOptionsThatNeedIt) {
  CatalogArguments arguments;
  EXPECT_EQ(options_of_tables(arguments), std::vector<std::string>{});
  arguments.tables = read_model_tables("c.toml",
                                       "[models.one]\nmodel = \"a\"\nworkers = \"h:1\"\n"
                                       "[models.two]\nmodel = \"b\"\ndraft-model = \"c\"\n",
                                       {});
  EXPECT_EQ(options_of_tables(arguments), (std::vector<std::string>{"workers", "draft-model"}));
}

TEST_F(CatalogOptionsTest, WithoutAnyModelItSaysHowToGiveOne) {
  CatalogArguments none;
  const Status status = catalog_models({}, {}, none, terminal_).status();
  EXPECT_NE(status.message().find("-hf USER/REPO"), std::string::npos) << status.message();
  CatalogArguments empty{.model_dir = dir_.path()};
  EXPECT_NE(
      catalog_models({}, {}, empty, terminal_).status().message().find("there is no model in"),
      std::string::npos);
  CatalogArguments nowhere{.model_dir = dir_.file("no")};
  EXPECT_EQ(catalog_models({}, {}, nowhere, terminal_).status().code(), StatusCode::kNotFound);
}

}  // namespace
}  // namespace outrider::tools
