// outrider ngram, and the drafter "ngram-cache" in run and compare.
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <cstdio>
#include <filesystem>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "testing/gguf_damage.h"
#include "tests/build_paths.h"
#include "tests/cli_ngram.h"
#include "tests/cli_process.h"

namespace outrider::testing {
namespace {

using json::Json;

TEST(CliNgram, CreatedMergedExportedAndImportedFilesHoldTheSame) {
  const CliFolder folder;
  const std::string& vocab = cli_models().target;
  const std::string a = folder.write("a.txt", story(20));
  const std::string b = folder.write("b.txt", story(3) + "Something else altogether.");
  const auto create = [&](const std::vector<std::string>& texts, const std::string& out) {
    std::vector<std::string> arguments = {"create", "--vocab", vocab, "-o", folder.path(out)};
    arguments.insert(arguments.end(), texts.begin(), texts.end());
    return ngram(folder, arguments);
  };
  for (const auto& [texts, out] : std::vector<std::pair<std::vector<std::string>, std::string>>{
           {{a}, "a"}, {{b}, "b"}, {{a, b}, "both"}}) {
    const CliResult result = create(texts, out);
    ASSERT_EQ(result.exit_code, 0) << result.err;
  }
  const CliResult merged =
      ngram(folder, {"merge", folder.path("a"), folder.path("b"), "-o", folder.path("merged")});
  ASSERT_EQ(merged.exit_code, 0) << merged.err;
  ASSERT_EQ(ngram(folder, {"export", folder.path("merged"), "-o", folder.path("llama")}).exit_code,
            0);
  const CliResult imported = ngram(
      folder, {"import", "--vocab", vocab, folder.path("llama"), "-o", folder.path("imported")});
  ASSERT_EQ(imported.exit_code, 0) << imported.err;
  EXPECT_EQ(read_file(folder.path("imported")), read_file(folder.path("merged")));

  const Json files = ngram(folder, {"stats", folder.path("both"), folder.path("merged"), "--json"})
                         .object()["files"];
  ASSERT_EQ(files.size(), 2U);
  for (const char* field : {"ngrams", "by_order", "followers", "counts", "tokenizer"}) {
    EXPECT_EQ(files[0][field], files[1][field]) << field;
  }
  EXPECT_EQ(files[0]["by_order"][1], files[0]["ngrams"]) << "a static cache has order 2 only";
  EXPECT_GT(files[0]["counts"], files[0]["followers"]);
}

TEST(CliNgram, OfTheFileWithTheVocabularyNoWeightIsRead) {
  const CliFolder folder;
  const std::string text = folder.write("t.txt", story(3));
  const std::string bare = folder.path("bare.gguf");
  const Status written = copy_without_tensor(cli_models().target, bare, "blk.0.attn_norm.weight");
  ASSERT_TRUE(written.ok()) << written.message();
  const CliResult whole = run_cli(folder.call({"run", "-m", bare, "-p", "x", "-n", "1"}));
  EXPECT_EQ(whole.exit_code, 1) << "the control";
  for (const auto& [vocab, out] : std::vector<std::pair<std::string, std::string>>{
           {cli_models().target, "good"}, {bare, "other"}}) {
    const CliResult made =
        ngram(folder, {"create", "--vocab", vocab, text, "-o", folder.path(out)});
    EXPECT_EQ(made.exit_code, 0) << made.err;
  }
  EXPECT_EQ(read_file(folder.path("other")), read_file(folder.path("good")));
}

TEST(CliNgram, MistakesAreNamedAndWriteNothing) {
  const CliFolder folder;
  const std::string& vocab = cli_models().target;
  const std::string text = folder.write("t.txt", story(3));
  const std::string good = folder.path("good");
  ASSERT_EQ(ngram(folder, {"create", "--vocab", vocab, text, "-o", good}).exit_code, 0);
  const std::string other = folder.path("other");
  ASSERT_EQ(ngram(folder, {"create", "--vocab", cli_models().other, text, "-o", other}).exit_code,
            0);
  const std::string cut = folder.write("cut", read_file(good).substr(0, 200));
  const std::string out = folder.path("out");
  struct Case {
    std::vector<std::string> arguments;
    int exit_code;
    std::string message;
  };
  const std::vector<Case> cases = {
      {{}, 2, "an action is missing"},
      {{"creat", text}, 2, "did you mean create?"},
      {{"create", text, "-o", out}, 2, "--vocab"},
      {{"create", "--vocab", vocab, "-o", out}, 2, "at least one file"},
      {{"merge", good}, 2, "-o FILE"},
      {{"stats", good, "-o", out}, 2, "writes no file"},
      {{"export", good, good, "-o", out}, 2, "one file"},
      {{"merge", good, "--dynamic", "-o", out}, 2, "--dynamic"},
      {{"merge", good, other, "-o", out}, 1, "another tokenizer"},
      {{"stats", cut}, 1, cut},
      {{"stats", folder.path("none")}, 1, folder.path("none")},
      {{"import", "--vocab", vocab, good, "-o", out}, 1, "no sound n-gram file of llama.cpp"},
      {{"create", "--vocab", vocab, text, "-o", folder.path("no/such/folder")}, 1, "no/such"},
  };
  for (const Case& c : cases) {
    const CliResult result = ngram(folder, c.arguments);
    EXPECT_EQ(result.exit_code, c.exit_code) << result.err;
    EXPECT_NE(result.err.find(c.message), std::string::npos) << c.message << "\n" << result.err;
    EXPECT_FALSE(std::filesystem::exists(out));
  }
}

TEST(CliNgram, NoInputAndNoFileOfAnotherKindIsReplaced) {
  const CliFolder folder;
  const std::string vocab = folder.write("model.gguf", read_file(cli_models().target));
  const std::string text = folder.write("t.txt", story(3));
  const std::string good = folder.path("good");
  ASSERT_EQ(ngram(folder, {"create", "--vocab", vocab, text, "-o", good}).exit_code, 0);
  const std::vector<std::vector<std::string>> cases = {
      {"create", "--vocab", vocab, text, "-o", vocab},
      {"create", "--vocab", vocab, text, "-o", text},
      {"create", "--vocab", cli_models().target, text, "-o", vocab},  // another file, of a model
      {"merge", good, "-o", text},
      {"export", good, "-o", good},
      {"export", good, "-o", text},
      {"export", good, "-o", vocab}};
  for (const std::vector<std::string>& arguments : cases) {
    const std::string before = read_file(arguments.back());
    const CliResult result = ngram(folder, arguments);
    EXPECT_EQ(result.exit_code, 1) << result.out;
    EXPECT_EQ(result.err.rfind("outrider: error: --output ", 0), 0U) << result.err;
    EXPECT_EQ(read_file(arguments.back()), before);
  }
  EXPECT_EQ(ngram(folder, {"merge", good, good, "-o", good}).exit_code, 0);
}

TEST(CliNgram, RunWithNgramCacheGivesThePlainTextAndLearnsOnlyIntoTheGivenFile) {
  const CliFolder folder;
  const std::string dynamic = folder.path("dynamic");
  const auto run = [&](const std::vector<std::string>& more) {
    std::vector<std::string> arguments = {"run",    "-m",        cli_models().target,
                                          "-p",     "Once upon", "--seed",
                                          "3",      "-n",        "200",
                                          "--temp", "0",         "--json"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return run_cli(folder.call(arguments));
  };
  const Json plain = run({}).object();
  const Json alone = run({"--drafter", "ngram-cache"}).object();
  EXPECT_EQ(alone["tokens"], plain["tokens"]);
  EXPECT_EQ(alone["speculation"]["enabled"], true);
  EXPECT_TRUE(alone["speculation"]["drafters"].contains("ngram-cache"));
  const Json first = run({"--drafter", "ngram-cache", "--ngram-dynamic", dynamic}).object();
  EXPECT_EQ(first["tokens"], plain["tokens"]);
  ASSERT_TRUE(std::filesystem::exists(dynamic));
  EXPECT_EQ(std::filesystem::status(dynamic).permissions(), std::filesystem::perms{0600});
  const Json stats = ngram(folder, {"stats", dynamic, "--json"}).object()["files"][0];
  EXPECT_GT(stats["by_order"][3], 50);
  // Strict thresholds want two sightings: after the second run it knows the text.
  EXPECT_EQ(run({"--drafter", "ngram-cache", "--ngram-dynamic", dynamic}).object()["tokens"],
            plain["tokens"]);
  const Json third = run({"--drafter", "ngram-cache", "--ngram-dynamic", dynamic}).object();
  EXPECT_EQ(third["tokens"], plain["tokens"]);
  EXPECT_GT(third["speculation"]["accepted"], alone["speculation"]["accepted"]);
  const CliResult automatic = run({"--ngram-dynamic", dynamic});
  EXPECT_EQ(automatic.object()["tokens"], plain["tokens"]);
  EXPECT_TRUE(automatic.object()["speculation"]["drafters"].contains("ngram-cache"));
  EXPECT_EQ(run({"--ngram-dynamic", dynamic, "--ngram-dynamic-mib", "0"}).exit_code, 2);
  const auto bytes = std::filesystem::file_size(dynamic);
  EXPECT_EQ(run({"--ngram-dynamic", dynamic, "--ngram-dynamic-mib", "1"}).exit_code, 0);
  EXPECT_GE(std::filesystem::file_size(dynamic), bytes) << "far from its limit nothing goes";
  const CliResult lost = run({"--drafter", "suffix", "--ngram-dynamic", dynamic});
  EXPECT_EQ(lost.exit_code, 2);
  EXPECT_NE(lost.err.find("--drafter ngram-cache"), std::string::npos) << lost.err;
}

TEST(CliNgram, AResultThatCannotBeWrittenCostsNothingOfWhatWasLearnedNorTheOldResult) {
  const CliFolder folder;
  const std::string learned = folder.path("learned");
  const std::string file = folder.write("r.json", "the old one");
  std::filesystem::create_hard_link(file, folder.path("old.json"));
  const auto with_result = [&](const std::string& result) {
    return run_cli(
        folder.call({"run", "-m", cli_models().target, "-p", story(2), "-c", "2048", "-n", "8",
                     "--drafter", "ngram-cache", "--ngram-dynamic", learned, "--result", result}));
  };
  const CliResult full = with_result("/dev/full");
  EXPECT_EQ(full.exit_code, 1);
  EXPECT_NE(full.err.find("--result: cannot write '/dev/full'"), std::string::npos) << full.err;
  EXPECT_TRUE(std::filesystem::exists(learned)) << full.err;
  EXPECT_EQ(with_result(file).exit_code, 0);
  EXPECT_NE(read_file(file), "the old one");
  EXPECT_EQ(read_file(folder.path("old.json")), "the old one") << "replaced, not written over";
}

TEST(CliNgram, CompareFindsTheTextsIdentical) {
  const CliFolder folder;
  const std::string prompts = folder.write(
      "p.jsonl", "{\"prompt\": \"Once upon a time\"}\n{\"prompt\": \"The lighthouse\"}\n");
  for (const char* temperature : {"0", "1"}) {
    const CliResult result = run_cli(folder.call(
        {"compare", "-m", cli_models().target, "--prompts", prompts, "-n", "64", "--temp",
         temperature, "--seed", "5", "--drafter", "ngram-cache", "--width", "2,8", "--json"}));
    ASSERT_EQ(result.exit_code, 0) << result.err;
    EXPECT_EQ(result.object()["identical"], 2) << result.out;
    EXPECT_EQ(result.object()["drafter"], "ngram-cache");
  }
}

// What a program prints on stdout.
std::string output_of(const std::string& command) {
  std::FILE* pipe = popen(command.c_str(), "r");
  if (pipe == nullptr) return "cannot run";
  std::string text;
  char block[4096];
  for (std::size_t n; (n = fread(block, 1, sizeof(block), pipe)) > 0;) text.append(block, n);
  const int status = pclose(pipe);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << command;
  return text;
}

TEST(Examples, OnesOwnLoopSaysTheSameWithAndWithoutDrafts) {
  const std::string program = example_path("own_loop");
  const std::string call = "'" + program + "' '" + cli_models().target +
                           "' 'Once upon a time there was a time upon a time' 120 ";
  for (const std::string& sampling : {std::string(" 0"), std::string(" 1 7")}) {
    const std::string plain = output_of(call + "0" + sampling + " 2>/dev/null");
    EXPECT_GT(plain.size(), 100U);
    EXPECT_EQ(output_of(call + "8" + sampling + " 2>/dev/null"), plain) << sampling;
  }
  EXPECT_NE(output_of(call + "8 1 7 2>/dev/null"), output_of(call + "8 1 8 2>/dev/null"));
  // A line a method: name, calls, drafts, drafts of which something held, drafted, accepted.
  std::istringstream table(output_of(call + "8 0 2>&1 >/dev/null"));
  std::string line;
  std::getline(table, line);
  std::vector<std::int64_t> counts[2];
  for (int method = 0; method < 2; ++method) {
    std::string name;
    table >> name;
    EXPECT_EQ(name, method == 0 ? "suffix" : "ngram-cache");
    counts[method].resize(5);
    for (std::int64_t& count : counts[method]) table >> count;
    std::getline(table, line);
    ASSERT_TRUE(table.good() || method == 1);
  }
  EXPECT_GT(counts[0][4], 0) << "something held";
  EXPECT_EQ(counts[1][0], counts[0][0] - counts[0][1]) << "the second is asked for the rest";
  EXPECT_LE(counts[0][2], counts[0][1]);
  EXPECT_LE(counts[0][4], counts[0][3]);
}

}  // namespace
}  // namespace outrider::testing
