#include "llama/exactness/exactness_cache.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "llama/exactness/exactness_key.h"
#include "llama/exactness/source_hash.h"
#include "testing/gguf_file.h"
#include "testing/tiny_dir.h"
#include "testing/tiny_gguf.h"

namespace outrider::llama {
namespace {

using testing::TempDir;

CachedProbe some_probe() {
  CachedProbe probe{.report = {}, .widest = 16, .budget_ms = 2000.0};
  probe.report.exactness = {.kind = Exactness::Kind::kUpToWidth,
                            .width = 7,
                            .coverage = "widths 2-7 after 24 cells",
                            .reason = "a batch of 8 differs \"by much\"\n"};
  probe.report.complete = true;
  probe.report.everywhere = 6;
  probe.report.longest_piece = 33;
  probe.report.pieces_differ = true;
  probe.report.rows = 802;
  probe.report.elapsed_ms = 1234.5;
  probe.report.passed = {{.start = 2, .width = 4, .round = 1},
                         {.kind = ProbeUnit::Kind::kTree, .start = 0, .width = 8}};
  return probe;
}

TEST(ExactnessCache, GivesBackWhatWasStored) {
  const TempDir dir;
  const ExactnessCache cache(dir.path() + "/not/yet/there");
  EXPECT_FALSE(cache.load("key").has_value());
  ASSERT_TRUE(cache.store("key", some_probe()).ok());
  const std::optional<CachedProbe> probe = cache.load("key");
  ASSERT_TRUE(probe.has_value());
  EXPECT_EQ(probe->report.exactness.verdict(), "exact up to width 7");
  EXPECT_EQ(probe->report.exactness.coverage, some_probe().report.exactness.coverage);
  EXPECT_EQ(probe->report.exactness.reason, some_probe().report.exactness.reason);
  EXPECT_TRUE(probe->report.complete);
  EXPECT_EQ(probe->report.everywhere, 6);
  EXPECT_EQ(probe->report.longest_piece, 33);
  EXPECT_TRUE(probe->report.pieces_differ);
  EXPECT_EQ(probe->report.rows, 802);
  EXPECT_EQ(probe->report.elapsed_ms, 1234.5);
  ASSERT_EQ(probe->report.passed.size(), 2U);
  for (std::size_t i = 0; i < 2; ++i) {
    EXPECT_TRUE(probe->report.passed[i] == some_probe().report.passed[i]) << i;
  }
  EXPECT_EQ(probe->widest, 16);
  EXPECT_EQ(probe->budget_ms, 2000.0);
  EXPECT_FALSE(cache.load("another key").has_value());

  CachedProbe other = some_probe();
  other.report.rows = 1;
  ASSERT_TRUE(cache.store("key", other).ok());
  EXPECT_EQ(cache.load("key")->report.rows, 1) << "the later one counts";
  int files = 0;
  for (const std::filesystem::directory_entry& entry :
       std::filesystem::recursive_directory_iterator(dir.path())) {
    files += entry.is_regular_file() ? 1 : 0;
  }
  EXPECT_EQ(files, 1) << "no temporary file is left";
}

TEST(ExactnessCache, ADamagedFileIsAsIfItWereNotThere) {
  const TempDir dir;
  const ExactnessCache cache(dir.path());
  ASSERT_TRUE(cache.store("key", some_probe()).ok());
  const std::string path = cache.file_of("key").string();
  const std::string good = testing::read_bytes(path);
  for (std::size_t n = 0; n + 2 < good.size(); ++n) {
    testing::write_bytes(path, good.substr(0, n));
    EXPECT_FALSE(cache.load("key").has_value()) << "cut to " << n;
  }
  const std::pair<const char*, const char*> replacements[] = {
      {"\"version\":2", "\"version\":1"},
      {"\"key\":\"key\"", "\"key\":\"kei\""},
      {"\"width\":7", "\"width\":-7"},
      {"\"width\":7", "\"width\":1e300"},
      {"\"width\":7", "\"width\":17"},
      {"\"width\":7", "\"width\":\"7\""},
      {"\"width\":7", "\"width\":1"},
      {"\"widest\":16", "\"widest\":99999999999"},
      {"\"up_to_width\"", "\"perhaps\""},
      {"\"complete\":true", "\"complete\":1"},
      {"\"passed\":[", "\"passed\":[3,"},
      {"\"passed\":[", "\"passed\":[[9,0,2,0],"},
      {"\"rows\":802", "\"rows\":0"},
      {"\"rows\":802", "\"row\":802"},
      {"\"rows\":802", "\"rows\":802,\"rows\":802"},
  };
  for (const std::pair<const char*, const char*>& replacement : replacements) {
    std::string text = good;
    const std::size_t at = text.find(replacement.first);
    ASSERT_NE(at, std::string::npos) << replacement.first;
    text.replace(at, std::string(replacement.first).size(), replacement.second);
    testing::write_bytes(path, text);
    EXPECT_FALSE(cache.load("key").has_value()) << replacement.second;
  }
  testing::write_bytes(path, std::string(3 << 20, ' '));
  EXPECT_FALSE(cache.load("key").has_value());
  testing::write_bytes(path, std::string(100000, '['));
  EXPECT_FALSE(cache.load("key").has_value());
  testing::write_bytes(path, good);
  EXPECT_TRUE(cache.load("key").has_value());
  std::string indented = good;  // as earlier versions wrote it
  for (std::size_t at = 0; (at = indented.find(",\"", at)) != std::string::npos; at += 3) {
    indented.insert(at + 1, "\n  ");
  }
  EXPECT_GT(indented.size(), good.size());
  testing::write_bytes(path, indented);
  EXPECT_TRUE(cache.load("key").has_value());
}

TEST(ExactnessCache, AFolderThatCannotBeWrittenIsPassedOver) {
  const TempDir dir;
  const std::string file = dir.file("a file");
  testing::write_bytes(file, "not a folder");
  const ExactnessCache cache(file);
  EXPECT_EQ(cache.store("key", some_probe()).code(), StatusCode::kInternal);
  EXPECT_FALSE(cache.load("key").has_value());
  EXPECT_EQ(dir.n_entries(), 1);

  const ExactnessCache none{std::filesystem::path()};
  EXPECT_TRUE(none.store("key", some_probe()).ok());
  EXPECT_FALSE(none.load("key").has_value());
}

TEST(ExactnessCache, AVerdictAnswersNarrowerQuestionsAndCutOffOnesOnlyShorterTimes) {
  CachedProbe probe = some_probe();
  EXPECT_TRUE(probe.answers(16, 1e9));
  EXPECT_TRUE(probe.answers(2, 1.0));
  EXPECT_FALSE(probe.answers(17, 1.0));
  probe.report.complete = false;
  EXPECT_FALSE(probe.answers(16, 2001.0)) << "more time would compare more";
  EXPECT_FALSE(probe.answers(16, 2000.0)) << "wider batches are still to be compared";
  EXPECT_TRUE(probe.answers(6, 2000.0));
  probe.report.passed.clear();
  EXPECT_TRUE(probe.answers(16, 2000.0)) << "something differed";
}

TEST(ExactnessCache, AVerdictIsNotReplacedByOneThatComparedLess) {
  const CachedProbe more = some_probe();
  CachedProbe less = some_probe();
  less.report.passed.pop_back();
  EXPECT_TRUE(more.says_more_than(less));
  EXPECT_FALSE(less.says_more_than(more));
  less.widest = 64;
  EXPECT_FALSE(more.says_more_than(less)) << "it was asked for more";
  less.widest = 16;
  less.report.passed.clear();
  EXPECT_FALSE(more.says_more_than(less)) << "it found a difference";
}

TEST(ExactnessCache, FollowsTheEnvironment) {
  const auto with = [](const char* own, const char* xdg, const char* home) {
    const char* names[] = {"OUTRIDER_CACHE", "XDG_CACHE_HOME", "HOME"};
    const char* values[] = {own, xdg, home};
    std::string saved[3];
    bool set[3];
    for (int i = 0; i < 3; ++i) {
      const char* old = std::getenv(names[i]);
      set[i] = old != nullptr;
      if (set[i]) saved[i] = old;
      if (values[i] != nullptr) {
        setenv(names[i], values[i], 1);
      } else {
        unsetenv(names[i]);
      }
    }
    const std::filesystem::path folder = default_cache_folder();
    for (int i = 0; i < 3; ++i) {
      if (set[i]) {
        setenv(names[i], saved[i].c_str(), 1);
      } else {
        unsetenv(names[i]);
      }
    }
    return folder.string();
  };
  EXPECT_EQ(with("/a", "/b", "/c"), "/a");
  EXPECT_EQ(with(nullptr, "/b", "/c"), "/b/outrider");
  EXPECT_EQ(with("", nullptr, "/c"), "/c/.cache/outrider");
  EXPECT_EQ(with(nullptr, nullptr, nullptr), "");
}

TEST(ExactnessKey, TellsFilesApartByTheirContentAndNotByTheirName) {
  const TempDir dir;
  std::string bytes(300000, 'x');
  for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<char>(i * i % 251);
  testing::write_bytes(dir.file("a"), bytes);
  testing::write_bytes(dir.file("b"), bytes);
  const std::string a = *fingerprint_file(dir.file("a"));
  EXPECT_EQ(a.size(), 32u);
  EXPECT_EQ(a, *fingerprint_file(dir.file("b")));
  for (const std::size_t at : {std::size_t{0}, std::size_t{70000}, bytes.size() - 1}) {
    std::string changed = bytes;
    changed[at] = static_cast<char>(changed[at] + 1);
    testing::write_bytes(dir.file("b"), changed);
    EXPECT_NE(a, *fingerprint_file(dir.file("b"))) << at;
  }
  testing::write_bytes(dir.file("b"), bytes + "x");
  EXPECT_NE(a, *fingerprint_file(dir.file("b")));
  testing::write_bytes(dir.file("b"), "");
  EXPECT_TRUE(fingerprint_file(dir.file("b")).ok());
  EXPECT_EQ(fingerprint_file(dir.file("c")).status().code(), StatusCode::kNotFound);
}

TEST(ExactnessKey, ChangesWithEachThingThatAVerdictDependsOn) {
  const TempDir dir;
  const std::string path = dir.file("tiny.gguf");
  ASSERT_TRUE(testing::write_tiny_gguf(path, {}).ok());
  const Result<std::shared_ptr<ModelFile>> file = ModelFile::load(path, 0, true, {});
  ASSERT_TRUE(file.ok()) << file.status().message();
  const ModelOptions options;
  const LoadPlan plan;
  const std::vector<std::int32_t> starts{24, 254};
  const std::string key = *exactness_key(**file, options, plan, 2, starts);
  EXPECT_EQ(key, *exactness_key(**file, options, plan, 2, starts));
  EXPECT_NE(key, *exactness_key(**file, options, plan, 1, starts));
  EXPECT_NE(key, *exactness_key(**file, options, plan, 2, {24}));
  const auto with_options = [&](auto change) {
    ModelOptions changed = options;
    change(changed);
    return *exactness_key(**file, changed, plan, 2, starts);
  };
  EXPECT_NE(key, with_options([](ModelOptions& o) { o.n_batch = 64; }));
  EXPECT_NE(key, with_options([](ModelOptions& o) { o.n_sequences = 2; }));
  EXPECT_EQ(key, with_options([](ModelOptions& o) { o.path = "elsewhere"; }));
  const auto with_plan = [&](auto change) {
    LoadPlan changed = plan;
    change(changed);
    return *exactness_key(**file, options, changed, 2, starts);
  };
  EXPECT_NE(key, with_plan([](LoadPlan& p) { p.extra_bufts = false; }));
  EXPECT_NE(key, with_plan([](LoadPlan& p) { p.context.type_k = "f16"; }));
  EXPECT_NE(key, with_plan([](LoadPlan& p) { p.context.type_v = "q8_0"; }));
  EXPECT_NE(key, with_plan([](LoadPlan& p) { p.context.flash_attention = false; }));
  EXPECT_NE(key, with_plan([](LoadPlan& p) { p.context.hidden.last = true; }));
  EXPECT_EQ(key, with_plan([](LoadPlan& p) { p.context.max_width = 3; }));

  std::filesystem::rename(path, dir.file("renamed.gguf"));
  const Result<std::shared_ptr<ModelFile>> renamed =
      ModelFile::load(dir.file("renamed.gguf"), 0, true, {});
  EXPECT_EQ(key, *exactness_key(**renamed, options, plan, 2, starts));
  testing::TinyModelOptions other;
  other.seed = 2;
  ASSERT_TRUE(testing::write_tiny_gguf(path, other).ok());
  EXPECT_NE(key, *exactness_key(**ModelFile::load(path, 0, true, {}), options, plan, 2, starts));
}

// A verdict on one of them would be taken for the other's.
TEST(ExactnessKey, TellsSplitModelsApartThatDifferInALaterFileOnly) {
  const TempDir dir;
  testing::TinyModelOptions tiny;
  for (const char* name : {"a", "b"}) {
    ASSERT_TRUE(testing::write_tiny_gguf(dir.file("whole"), tiny).ok());
    ASSERT_TRUE(testing::write_gguf_split(dir.file("whole"), dir.file(name), {4}).ok());
    tiny.seed = 2;
  }
  const std::string a = dir.file("a-00001-of-00002.gguf");
  const std::string b = dir.file("b-00001-of-00002.gguf");
  std::filesystem::copy_file(a, b, std::filesystem::copy_options::overwrite_existing);
  EXPECT_EQ(*fingerprint_file(a), *fingerprint_file(b));
  EXPECT_NE(*fingerprint_model(a), *fingerprint_model(b));
  const auto key_of = [](const std::string& path) {
    const Result<std::shared_ptr<ModelFile>> file = ModelFile::load(path, 0, true, {});
    EXPECT_TRUE(file.ok()) << file.status().message();
    return *exactness_key(**file, {}, {}, 2, {24});
  };
  EXPECT_NE(key_of(a), key_of(b));
  EXPECT_EQ(*fingerprint_model(dir.file("whole")), *fingerprint_file(dir.file("whole")));
  std::filesystem::remove(dir.file("b-00002-of-00002.gguf"));
  EXPECT_EQ(fingerprint_model(b).status().code(), StatusCode::kNotFound);
}

TEST(ExactnessKey, NamesTheBuildAndTheMachine) {
  EXPECT_NE(build_identity().find("llama.cpp"), std::string::npos);
  EXPECT_EQ(source_hash().size(), 16u);
  EXPECT_NE(build_identity().find(", sources " + std::string(source_hash())), std::string::npos);
  EXPECT_GT(machine_identity(/*on_cpu=*/true).size(), 32u);

  const TempDir dir;
  const std::string path = dir.file("tiny.gguf");
  ASSERT_TRUE(testing::write_tiny_gguf(path, {}).ok());
  const Result<std::shared_ptr<ModelFile>> file = ModelFile::load(path, 0, true, {});
  ASSERT_TRUE(file.ok()) << file.status().message();
  const std::string key = *exactness_key(**file, {}, {}, 2, {24});
  const std::string identities[][2] = {
      {"build", build_identity()},
      {"machine", machine_identity((*file)->facts().all_on_cpu)},
  };
  for (const auto& [name, identity] : identities) {
    std::string line = identity;
    std::replace(line.begin(), line.end(), '\n', ' ');
    EXPECT_NE(key.find('\n' + name + ": " + line + '\n'), std::string::npos) << key;
  }
}

}  // namespace
}  // namespace outrider::llama
