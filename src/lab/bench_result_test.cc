#include "lab/bench_result.h"

#include <cmath>

#include <gtest/gtest.h>

#include "base/utf8.h"
#include "lab/bench_prompts.h"
#include "lab/bench_report.h"

namespace outrider::lab {
namespace {

// Plain takes 10 ms a token, speculation that over `speedup`.
BenchPair pair_of(std::size_t category, std::int32_t repetition, double speedup,
                  std::int64_t tokens = 100) {
  BenchPair pair{.category = category, .repetition = repetition, .identical = true};
  pair.plain.predicted_after_first = tokens;
  pair.plain.predicted_ms = 10.0 * static_cast<double>(tokens);
  pair.plain.first_token_ms = 40.0;
  pair.speculative.predicted_after_first = tokens;
  pair.speculative.predicted_ms = pair.plain.predicted_ms / speedup;
  pair.speculative.first_token_ms = 50.0;
  SpeculationStats& s = pair.speculative_steps;
  s.enabled = true;
  s.steps = 50;
  s.drafted = 150;
  s.accepted = 50;
  s.emitted = 100;
  s.draft_ms = 100.0;
  s.verify_ms = 300.0;
  s.steps_by_width = {0, 10, 0, 0, 40};
  s.by_depth = {{.drafted = 50, .tested = 50, .accepted = 30},
                {.drafted = 50, .tested = 30, .accepted = 20}};
  return pair;
}

BenchSetting setting() {
  BenchSetting s;
  s.categories = {"writing", "<maths> & \"more\""};
  s.target = "/tmp/<script>alert(1)</script>.gguf";
  s.drafter = "draft-model";
  s.width = "auto";
  s.rule = "coupled";
  s.exactness = "exact";
  s.prompts = 2;
  s.repetitions = 2;
  s.command = "outrider bench -m 'a & b.gguf'";
  return s;
}

std::vector<BenchPair> all_pairs() {
  return {pair_of(0, 0, 1.0), pair_of(1, 0, 2.0), pair_of(0, 1, 1.21), pair_of(1, 1, 2.0)};
}

TEST(BenchResult, IsSureWhereTheOverallIntervalIsNarrow) {
  BenchSetting wanted = setting();
  // 1.0 and 2.0, then 1.21 and 2.0: 1.41 and 1.56, 1.48 in the mean, 0.82 to 2.71.
  const BenchResult result = sum_up(wanted, all_pairs(), false);
  EXPECT_NEAR(*result.overall.interval_width(), result.overall.interval->high / 1.483 - 1.0, 1e-3);
  EXPECT_FALSE(result.is_sure());
  EXPECT_NE(bench_table(result).find("and not 5 %"), std::string::npos) << bench_table(result);
  wanted.until = 0.9;
  const BenchResult enough = sum_up(wanted, all_pairs(), false);
  EXPECT_TRUE(enough.is_sure());
  EXPECT_EQ(bench_table(enough).find("wide each way"), std::string::npos);
  // One repetition has no interval, and says nothing of one.
  const BenchResult one = sum_up(wanted, {pair_of(0, 0, 1.5), pair_of(1, 0, 1.5)}, false);
  EXPECT_FALSE(one.overall.interval_width());
  EXPECT_FALSE(one.is_sure());
}

TEST(BenchResult, ProcessorTimeIsThatOfAToken) {
  std::vector<BenchPair> pairs = {pair_of(0, 0, 2.0, 99), pair_of(1, 0, 2.0, 99)};
  EXPECT_FALSE(sum_up(setting(), pairs, false).overall.processor_speedup());
  pairs[0].processor = {.plain_ms = 3000.0, .speculative_ms = 1500.0};
  pairs[1].processor = {.plain_ms = 1000.0, .speculative_ms = 1000.0};
  const BenchResult result = sum_up(setting(), pairs, false);
  EXPECT_NEAR(*result.overall.processor_speedup(), 1.6, 1e-9);
  EXPECT_NEAR(*result.categories[1].processor_speedup(), 1.0, 1e-9);
  EXPECT_NE(bench_table(result).find("20.0 ms plain, 12.5 ms with speculation (1.60 times)"),
            std::string::npos)
      << bench_table(result);
  const json::Json object = bench_json(result);
  EXPECT_NEAR(object["overall"]["plain_processor_ms"].get<double>(), 20.0, 1e-9);
  EXPECT_TRUE(object["categories"]["writing"]["processor_speedup"].is_number());
}

TEST(BenchResult, SpeedsAreGeometricMeansOverRepetitionsAndCategories) {
  const BenchResult result = sum_up(setting(), all_pairs(), false);
  ASSERT_EQ(result.categories.size(), 2U);
  EXPECT_EQ(result.repetitions, 2);
  EXPECT_NEAR(*result.categories[0].speedup, 1.1, 1e-9);
  EXPECT_NEAR(*result.categories[1].speedup, 2.0, 1e-9);
  EXPECT_NEAR(*result.overall.speedup, std::sqrt(2.2), 1e-9);
  for (const BenchGroup* g : {&result.categories[0], &result.categories[1], &result.overall}) {
    EXPECT_NEAR(*g->plain_tps, 100.0, 1e-9);
    EXPECT_NEAR(*g->speculative_tps / *g->plain_tps, *g->speedup, 1e-9);
    EXPECT_LE(g->interval->low, *g->speedup + 1e-12);
    EXPECT_GE(g->interval->high, *g->speedup - 1e-12);
  }
  EXPECT_EQ(result.overall.pairs, 4);
  EXPECT_EQ(result.overall.steps, 200);
  EXPECT_EQ(result.overall.steps_by_width, (std::vector<std::int64_t>{0, 40, 0, 0, 160}));
  EXPECT_EQ(result.overall.by_depth[1].tested, 120);
  EXPECT_EQ(result.overall.speculative_first_token_ms, 50.0);
}

TEST(BenchResult, WithinARepetitionTokensAndTimesAreAddedUp) {
  BenchSetting one = setting();
  one.categories = {"writing"};
  const BenchResult result = sum_up(one, {pair_of(0, 0, 1.0, 100), pair_of(0, 0, 2.0, 300)}, false);
  EXPECT_NEAR(*result.overall.speedup, 4000.0 / (1000.0 + 1500.0), 1e-9);
  EXPECT_FALSE(result.overall.interval.has_value()) << "one repetition says nothing of the spread";
}

TEST(BenchResult, ARepetitionThatWasCutOffCountsOnlyWhenThereIsNoWholeOne) {
  std::vector<BenchPair> pairs = all_pairs();
  pairs.pop_back();
  const BenchResult result = sum_up(setting(), pairs, true);
  EXPECT_EQ(result.repetitions, 1);
  EXPECT_EQ(result.overall.pairs, 2);
  EXPECT_NEAR(*result.categories[0].speedup, 1.0, 1e-9);
  pairs.resize(1);
  const BenchResult begun = sum_up(setting(), pairs, true);
  EXPECT_EQ(begun.overall.pairs, 1);
  ASSERT_EQ(begun.categories.size(), 1U);
  const BenchResult nothing = sum_up(setting(), {}, true);
  EXPECT_FALSE(nothing.overall.speedup.has_value());
  EXPECT_EQ(bench_json(nothing)["overall"]["identical"], json::Json());
}

TEST(BenchResult, TextsWithOneTokenHaveNoSpeed) {
  const BenchResult result = sum_up(setting(), {pair_of(0, 0, 1.0, 0), pair_of(1, 0, 2.0)}, false);
  EXPECT_FALSE(result.categories[0].speedup.has_value());
  EXPECT_NEAR(*result.overall.speedup, 2.0, 1e-9);
  EXPECT_EQ(bench_json(result)["categories"]["writing"]["speedup"], json::Json());
  EXPECT_NE(bench_table(result).find("writing"), std::string::npos);
}

TEST(BenchResult, OneTextThatDiffersIsNotIdentical) {
  std::vector<BenchPair> pairs = all_pairs();
  pairs[2].identical = false;
  const json::Json object = bench_json(sum_up(setting(), pairs, false));
  EXPECT_EQ(object["overall"]["identical"], false);
  EXPECT_EQ(object["overall"]["identical_pairs"], 3);
  EXPECT_EQ(object["categories"]["writing"]["identical"], false);
  EXPECT_EQ(object["categories"]["<maths> & \"more\""]["identical"], true);
}

TEST(BenchResult, TheOraclesTimeIsAddedUpOverThePairsThatHaveIt) {
  std::vector<BenchPair> pairs = all_pairs();
  const BenchResult without = sum_up(setting(), pairs, false);
  EXPECT_FALSE(without.overall.oracle_share());
  EXPECT_TRUE(bench_json(without)["overall"]["oracle_share"].is_null());
  EXPECT_EQ(bench_table(without).find("oracle"), std::string::npos);
  pairs[0].oracle = OracleTimes{.taken_ms = 100.0, .oracle_ms = 80.0};
  pairs[1].oracle = OracleTimes{.taken_ms = 300.0, .oracle_ms = 180.0};
  const BenchResult result = sum_up(setting(), pairs, false);
  EXPECT_DOUBLE_EQ(*result.overall.oracle_share(), 0.65);
  EXPECT_DOUBLE_EQ(*result.categories[0].oracle_share(), 0.8);
  EXPECT_DOUBLE_EQ(bench_json(result)["overall"]["oracle_share"], 0.65);
  EXPECT_NE(bench_table(result).find("would take 65 % of the time: "), std::string::npos);
}

TEST(BenchResult, TheCeilingIsTheBestWidthsTokensForItsTime) {
  EXPECT_FALSE(ceiling_of({}));
  const std::optional<Ceiling> ceiling =
      ceiling_of({{.width = 1, .ms = 10.0}, {.width = 8, .ms = 20.0}, {.width = 16, .ms = 50.0}});
  ASSERT_TRUE(ceiling);
  EXPECT_EQ(ceiling->width, 8);
  EXPECT_DOUBLE_EQ(ceiling->speedup, 4.0);
  // Where wider steps never pay, plain decoding is the best there is.
  EXPECT_DOUBLE_EQ(ceiling_of({{.width = 1, .ms = 1.0}, {.width = 2, .ms = 3.0}})->speedup, 1.0);
}

TEST(BenchTable, SaysWhoseKernelsRan) {
  BenchSetting by = setting();
  by.kernels = {.own = true, .instruction_set = "avx512-vnni"};
  BenchResult result = sum_up(by, all_pairs(), false);
  EXPECT_NE(bench_table(result).find("\nkernels  Outrider's, avx512-vnni\n"), std::string::npos)
      << bench_table(result);
  EXPECT_NE(bench_report(result).find("avx512-vnni"), std::string::npos);
  result.setting.kernels = {.reason = "they were asked for"};
  EXPECT_NE(bench_table(result).find("\nkernels  llama.cpp's: they were asked for\n"),
            std::string::npos)
      << bench_table(result);
  EXPECT_NE(bench_report(result).find("they were asked for"), std::string::npos);
}

TEST(BenchTable, SaysTheFloorOrWhyItIsNotKnown) {
  BenchResult result = sum_up(setting(), all_pairs(), false);
  result.costs = {{.width = 1, .ms = 10.0}, {.width = 4, .ms = 13.0}};
  EXPECT_EQ(bench_report(result).find("could take here"), std::string::npos);
  EXPECT_TRUE(bench_json(result)["floor_reason"].is_null());
  result.floor_reason = "'a.gguf' is <gone>";
  EXPECT_NE(bench_table(result).find("it could take was not measured: 'a.gguf' is <gone>\n"),
            std::string::npos)
      << bench_table(result);
  EXPECT_NE(bench_report(result).find("could take here was not measured: "), std::string::npos);
  EXPECT_NE(bench_report(result).find("&lt;gone&gt;"), std::string::npos);
  EXPECT_EQ(bench_json(result)["floor_reason"], "'a.gguf' is <gone>");
  result.floor_reason.clear();
  result.floor = {{.width = 1, .read_ms = 8.0, .multiply_ms = 1.0},
                  {.width = 4, .read_ms = 8.0, .multiply_ms = 10.0}};
  EXPECT_NE(bench_table(result).find("of the least it could take here: 1: 1.25, 4: 1.30\n"),
            std::string::npos)
      << bench_table(result);
  EXPECT_NE(bench_report(result).find("the least it could take here"), std::string::npos);
}

TEST(BenchTable, KeepsToItsColumns) {
  BenchSetting long_names = setting();
  long_names.categories[0] = "a category with a name that is much too long for its column";
  const std::string table = bench_table(sum_up(long_names, all_pairs(), false));
  const std::size_t begin = table.find("category ");
  std::size_t start = begin;
  for (std::size_t end; (end = table.find('\n', start)) != std::string::npos; start = end + 1) {
    EXPECT_LE(end - start, 100U) << table.substr(start, end - start);
  }
}

TEST(BenchTable, SaysNothingOfTextsWhereNoneWereCompared) {
  const std::string table = bench_table(sum_up(setting(), {}, true));
  EXPECT_EQ(table.find(" yes\n"), std::string::npos) << table;
  EXPECT_NE(bench_table(sum_up(setting(), all_pairs(), false)).find(" yes\n"), std::string::npos);
}

TEST(BenchTable, ALongNameIsCutBetweenCharacters) {
  BenchSetting long_names = setting();
  long_names.categories[0] = "cat\u00E9gories tr\u00E8s tr\u00E8s tr\u00E8s longues";
  for (int i = 0; i < 6; ++i) {  // the cut goes through each byte of one of them
    const std::string table = bench_table(sum_up(long_names, all_pairs(), false));
    EXPECT_FALSE(first_invalid_utf8(table)) << table;
    long_names.categories[0].insert(0, "x");
  }
}

TEST(BenchTable, ColumnsAreOfCharactersAndNotOfBytes) {
  const auto row_of = [](const std::string& name) {
    BenchSetting named = setting();
    named.categories[0] = name;
    const std::string table = bench_table(sum_up(named, all_pairs(), false));
    const std::size_t begin = table.find(name.substr(0, 2));
    return table.substr(begin, table.find('\n', begin) - begin);
  };
  const auto times = [](const std::string& text, int n) {
    std::string all;
    for (int i = 0; i < n; ++i) all += text;
    return all;
  };
  const std::string figures = row_of("xxxx").substr(24);
  EXPECT_EQ(row_of(times("\u00FC", 4)), times("\u00FC", 4) + std::string(20, ' ') + figures);
  EXPECT_EQ(row_of(times("\u00FC", 22)), times("\u00FC", 22) + "  " + figures);
  EXPECT_EQ(row_of(times("\u00FC", 30)), times("\u00FC", 19) + "...  " + figures);
}

TEST(BenchReport, IsOnePageThatNeedsNothingAndEscapesWhatItShows) {
  BenchResult result = sum_up(setting(), all_pairs(), false);
  result.costs = {{.width = 1, .ms = 10.0}, {.width = 4, .ms = 13.0}};
  for (int i = 0; i < 20; ++i) result.score.add(1, 0.7, i % 3 != 0);
  const std::string page = bench_report(result);
  EXPECT_EQ(page.rfind("<!DOCTYPE html>", 0), 0U);
  EXPECT_NE(page.find("</html>"), std::string::npos);
  EXPECT_EQ(page.find("<script"), std::string::npos);
  EXPECT_NE(page.find("&lt;script&gt;"), std::string::npos);
  EXPECT_EQ(page.find("<maths>"), std::string::npos);
  EXPECT_NE(page.find("&lt;maths&gt; &amp; &quot;more&quot;"), std::string::npos);
  // Nothing is loaded: the only addresses are names of formats.
  for (const char* loads : {" src=", " href=", "@import", "url("}) {
    EXPECT_EQ(page.find(loads), std::string::npos) << loads;
  }
  std::size_t plots = 0;
  for (std::size_t at = 0; (at = page.find("<svg ", at)) != std::string::npos; ++at) ++plots;
  EXPECT_EQ(plots, 5U);
  result.score = CalibrationScore();
  result.costs.clear();
  EXPECT_NE(bench_report(result).find("--width auto"), std::string::npos);
}

std::vector<FilePrompt> prompts() {
  std::vector<FilePrompt> all;
  for (int i = 0; i < 10; ++i) {
    all.push_back({.id = std::to_string(i),
                   .category = i % 2 == 0 ? "even" : "",
                   .text = "x",
                   .messages = {}});
  }
  return all;
}

std::vector<std::string> ids(const PromptChoice& choice) {
  const Result<std::vector<FilePrompt>> chosen = choose_prompts(prompts(), choice);
  std::vector<std::string> result;
  for (const FilePrompt& prompt : *chosen) result.push_back(prompt.id);
  return result;
}

TEST(ChoosePrompts, ASampleIsSpreadEvenlyAndInTheFilesOrder) {
  EXPECT_EQ(ids({}).size(), 10U);
  EXPECT_EQ(ids({.per_category = 2}).size(), 4U);
  const std::vector<std::string> two = ids({.categories = {"even"}, .per_category = 2});
  ASSERT_EQ(two.size(), 2U);
  EXPECT_GE(std::stoi(two[1]) - std::stoi(two[0]), 4);
  EXPECT_EQ(ids({.per_category = 99}).size(), 10U);
  EXPECT_EQ(ids({.limit = 3}), (std::vector<std::string>{"0", "1", "2"}));
  EXPECT_EQ(ids({.categories = {kNoCategory}, .limit = 2}), (std::vector<std::string>{"1", "3"}));
}

TEST(ChoosePrompts, AnUnknownCategoryIsNamedWithThoseThatThereAre) {
  const Status status = choose_prompts(prompts(), {.categories = {"odd"}}).status();
  EXPECT_EQ(status.code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(status.message(),
            "--categories has 'odd', which no prompt is of; there are even and uncategorised");
}

}  // namespace
}  // namespace outrider::lab
