// outrider suffix, and run --drafter suffix.
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "tests/cli_process.h"

namespace outrider::testing {
namespace {

using json::Json;

CliResult suffix(const CliFolder& folder, std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), "suffix");
  return run_cli(folder.call(std::move(arguments)));
}

std::string build(const CliFolder& folder, const std::string& vocab, const std::string& name,
                  const std::string& text) {
  const std::string source = folder.write(name + ".txt", text);
  const CliResult result =
      suffix(folder, {"build", "--vocab", vocab, source, "-o", folder.path(name)});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  return folder.path(name);
}

std::vector<std::string> run_arguments(const std::vector<std::string>& more) {
  std::vector<std::string> arguments = {"run",
                                        "-m",
                                        cli_models().target,
                                        "-c",
                                        "512",
                                        "-p",
                                        "the cat and the dog and the cat",
                                        "--seed",
                                        "5",
                                        "-n",
                                        "48",
                                        "--temp",
                                        "0",
                                        "--json"};
  arguments.insert(arguments.end(), more.begin(), more.end());
  return arguments;
}

TEST(CliSuffix, StoresAreBuiltFromTextsAndJsonLinesMergedAndDescribed) {
  const CliFolder folder;
  const std::string& vocab = cli_models().target;
  const std::string lines = folder.write(
      "lines.jsonl",
      "{\"prompt\": \"one text\"}\n{\"turns\": [\"a\", \"b\"]}\n"
      "{\"messages\": [{\"role\": \"user\", \"content\": \"x\"}, {\"role\": \"assistant\", "
      "\"content\": \"y\"}]}\n");
  const std::string first = build(folder, vocab, "first", "some text, and some more text");
  const CliResult second =
      suffix(folder, {"build", "--vocab", vocab, lines, "-o", folder.path("second"), "--json"});
  ASSERT_EQ(second.exit_code, 0) << second.err;
  EXPECT_EQ(second.object()["texts"], 3);
  const CliResult merged =
      suffix(folder, {"merge", first, folder.path("second"), "-o", folder.path("both"), "--json"});
  ASSERT_EQ(merged.exit_code, 0) << merged.err;
  EXPECT_EQ(merged.object()["texts"], 4);
  const CliResult stats = suffix(folder, {"stats", folder.path("both"), first, "--json"});
  ASSERT_EQ(stats.exit_code, 0) << stats.err;
  EXPECT_EQ(stats.object()["stores"][0]["texts"], 4);
  EXPECT_EQ(stats.object()["stores"][0]["tokens"], merged.object()["tokens"]);
  EXPECT_EQ(stats.object()["stores"][1]["texts"], 1);
}

TEST(CliSuffix, TheTextIsThatOfPlainDecodingAndAStoreIsUsed) {
  const CliFolder folder;
  const Json plain = run_cli(folder.call(run_arguments({"--drafter", "none"}))).object();
  // A store that knows the answer.
  const std::string store =
      build(folder, cli_models().target, "store",
            "the cat and the dog and the cat" + plain["text"].get<std::string>());
  const Json own =
      run_cli(folder.call(run_arguments({"--drafter", "suffix", "--width", "8"}))).object();
  EXPECT_EQ(own["tokens"], plain["tokens"]);
  EXPECT_TRUE(own["speculation"]["drafters"].contains("suffix"));
  const Json stored = run_cli(folder.call(run_arguments({"--drafter", "suffix", "--width", "8",
                                                         "--suffix-store", store})))
                          .object();
  EXPECT_EQ(stored["tokens"], plain["tokens"]);
  EXPECT_GE(stored["speculation"]["accepted"].get<int>(),
            own["speculation"]["accepted"].get<int>());
}

TEST(CliSuffix, WithoutBranchesItMayBranchAsFarAsTheWidthGoes) {
  const CliFolder folder;
  // Long and varied enough that the same words are followed by different ones.
  const std::vector<std::string> common = {"--drafter", "suffix", "--width", "6",
                                           "-n",        "200",    "--temp",  "0.7"};
  std::vector<std::string> chain = common;
  chain.insert(chain.end(), {"--branches", "1"});
  const CliResult free = run_cli(folder.call(run_arguments(common)));
  const CliResult one = run_cli(folder.call(run_arguments(chain)));
  ASSERT_EQ(free.exit_code, 0) << free.err;
  ASSERT_EQ(one.exit_code, 0) << one.err;
  EXPECT_EQ(free.object()["tokens"], one.object()["tokens"]);
  // The text is the same, what was guessed is not.
  EXPECT_NE(free.object()["speculation"]["drafted"], one.object()["speculation"]["drafted"]);
  CliCall block = folder.call(run_arguments({"--drafter", "suffix", "--rule", "block"}));
  EXPECT_EQ(run_cli(block).exit_code, 0);
}

TEST(CliDrafters, SeveralAreMergedOrFallBackAndTheTextStays) {
  const CliFolder folder;
  const Json plain = run_cli(folder.call(run_arguments({"--drafter", "none"}))).object();
  const std::string& draft = cli_models().draft;
  for (const std::string& plan : std::vector<std::string>{
           "recycle", "suffix,recycle", "suffix/recycle", "suffix/draft-model,recycle"}) {
    const CliResult got =
        run_cli(folder.call(run_arguments({"--drafter", plan, "--width", "8", "-d", draft})));
    ASSERT_EQ(got.exit_code, 0) << got.err;
    const Json result = got.object();
    EXPECT_EQ(result["tokens"], plain["tokens"]) << plan;
    for (const std::string& name : std::vector<std::string>{"suffix", "recycle", "draft-model"}) {
      EXPECT_EQ(result["speculation"]["drafters"].contains(name),
                plan.find(name) != std::string::npos)
          << plan << ", " << name;
    }
    EXPECT_GT(result["speculation"]["drafted"].get<int>(), 0) << plan;
  }
}

TEST(CliDrafters, AWrongExpressionIsNamed) {
  const CliFolder folder;
  for (const std::string& plan :
       std::vector<std::string>{"sufix", "suffix,", "suffix/suffix", "ngram"}) {
    const CliResult refused = run_cli(folder.call(run_arguments({"--drafter", plan})));
    EXPECT_EQ(refused.exit_code, 2);
    EXPECT_NE(refused.err.find("--drafter is '" + plan + "'"), std::string::npos) << refused.err;
  }
  const CliResult without =
      run_cli(folder.call(run_arguments({"--drafter", "draft-model/suffix"})));
  EXPECT_EQ(without.exit_code, 2);
  EXPECT_NE(without.err.find("there is no draft model"), std::string::npos) << without.err;
}

TEST(CliSuffix, AnotherTokenizersStoreADamagedOneAndAMissingOneAreRefusedByName) {
  const CliFolder folder;
  const std::string other = build(folder, cli_models().other, "other", "some text");
  const CliResult refused =
      run_cli(folder.call(run_arguments({"--drafter", "suffix", "--suffix-store", other})));
  EXPECT_EQ(refused.exit_code, 1);
  EXPECT_NE(refused.err.find("another tokenizer"), std::string::npos) << refused.err;
  const std::string good = build(folder, cli_models().target, "good", "some text");
  const CliResult mixed = suffix(folder, {"merge", good, other, "-o", folder.path("mixed")});
  EXPECT_EQ(mixed.exit_code, 1);
  EXPECT_NE(mixed.err.find("another tokenizer"), std::string::npos) << mixed.err;

  const std::string whole = read_file(good);
  const std::string cut = folder.write("cut", whole.substr(0, whole.size() - 1));
  EXPECT_EQ(suffix(folder, {"stats", cut}).exit_code, 1);
  std::string bytes = whole;
  bytes[200] = static_cast<char>(bytes[200] ^ 1);
  const CliResult damaged = suffix(folder, {"stats", folder.write("flipped", bytes)});
  EXPECT_EQ(damaged.exit_code, 1);
  EXPECT_NE(damaged.err.find("damaged"), std::string::npos) << damaged.err;
  EXPECT_EQ(suffix(folder, {"stats", folder.path("none")}).exit_code, 1);
}

TEST(CliSuffix, AFailedBuildLeavesTheOldStoreAndSaysWhy) {
  const CliFolder folder;
  const std::string store = build(folder, cli_models().target, "store", "some text");
  const std::string before = read_file(store);
  const std::string bad = folder.write("bad.txt", "not \xFF UTF-8");
  const CliResult failed =
      suffix(folder, {"build", "--vocab", cli_models().target, bad, "-o", store});
  EXPECT_EQ(failed.exit_code, 1);
  EXPECT_NE(failed.err.find("bad.txt"), std::string::npos) << failed.err;
  EXPECT_EQ(read_file(store), before);
  const CliResult nowhere =
      suffix(folder, {"build", "--vocab", cli_models().target, folder.write("t", "x"), "-o",
                      folder.path("none/store")});
  EXPECT_EQ(nowhere.exit_code, 1);
}

TEST(CliSuffix, NoTextAndNoModelIsReplacedAndAWrongFolderIsFoundBeforeTheTextsAreRead) {
  const CliFolder folder;
  const std::string vocab = folder.write("model.gguf", read_file(cli_models().target));
  const std::string text = folder.write("t.txt", "some text");
  for (const std::string& output : {vocab, text, folder.write("other.txt", "other")}) {
    const std::string before = read_file(output);
    const CliResult result = suffix(folder, {"build", "--vocab", vocab, text, "-o", output});
    EXPECT_EQ(result.exit_code, 1) << result.out;
    EXPECT_EQ(result.err.rfind("outrider: error: --output ", 0), 0U) << result.err;
    EXPECT_EQ(read_file(output), before);
  }
  const std::string unread = folder.write("bad.txt", "not \xFF UTF-8");
  const CliResult nowhere =
      suffix(folder, {"build", "--vocab", vocab, unread, "-o", folder.path("none/store")});
  EXPECT_EQ(nowhere.err.rfind("outrider: error: --output: ", 0), 0U) << nowhere.err;
  const CliResult nameless = suffix(folder, {"build", "--vocab", vocab, unread, "-o", ""});
  EXPECT_EQ(nameless.exit_code, 1);
  EXPECT_EQ(nameless.err.rfind("outrider: error: --output: ", 0), 0U) << nameless.err;
}

TEST(CliSuffix, WrongUsageIsSaid) {
  const CliFolder folder;
  const std::vector<std::vector<std::string>> wrong = {{},
                                                       {"make", "x"},
                                                       {"build", "x"},
                                                       {"build", "x", "-o", "y"},
                                                       {"build", "x", "--vocab", "v"},
                                                       {"build", "--vocab", "v", "-o", "y"},
                                                       {"merge", "x"},
                                                       {"merge", "x", "-o", "y", "--vocab", "v"},
                                                       {"stats", "x", "-o", "y"},
                                                       {"stats"}};
  for (const std::vector<std::string>& arguments : wrong) {
    const CliResult result = suffix(folder, arguments);
    EXPECT_EQ(result.exit_code, 2) << result.err;
    EXPECT_NE(result.err.find("outrider: error: "), std::string::npos);
  }
  const std::vector<std::string> recycle = {"--drafter", "recycle", "--suffix-store", "x"};
  EXPECT_EQ(run_cli(folder.call(run_arguments(recycle))).exit_code, 2);
  const CliResult plain =
      run_cli(folder.call(run_arguments({"--width", "1", "--suffix-store", "x"})));
  EXPECT_EQ(plain.exit_code, 2);
  EXPECT_NE(plain.err.find("--suffix-store is given, but --width is 1"), std::string::npos)
      << plain.err;
}

}  // namespace
}  // namespace outrider::testing
