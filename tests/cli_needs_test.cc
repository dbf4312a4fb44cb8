// Options that were typed and do nothing in their call, and messages in the command's own words.
// The table is tested whole by tools/options/needs_test.cc.
#include <filesystem>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "tests/cli_ngram.h"
#include "tests/cli_process.h"

namespace outrider::testing {
namespace {

CliCall run_call(const std::vector<std::string>& more) {
  std::vector<std::string> arguments = {"run",    "-m", cli_models().target, "-c", "512", "-n", "4",
                                        "--temp", "0"};
  arguments.insert(arguments.end(), more.begin(), more.end());
  return cli_models().folder.call(arguments);
}

CliResult run(std::vector<std::string> more) {
  more.insert(more.end(), {"-p", "hi"});
  return run_cli(run_call(more));
}

// Wrong usage: this message, and what would be right in the hint.
void expect_usage(const CliResult& result, const std::string& message, const std::string& hint) {
  EXPECT_EQ(result.exit_code, 2) << result.err;
  EXPECT_EQ(result.out, "");
  EXPECT_EQ(result.err.rfind("outrider: error: " + message, 0), 0U) << result.err;
  EXPECT_NE(result.err.find(hint), std::string::npos) << result.err;
}

TEST(CliNeeds, AnOptionThatDoesNothingWithoutAnotherIsRefusedWhereItWasTyped) {
  const std::string without_draft =
      "--draft-ctx does nothing without --draft-model or --hf-repo-draft";
  expect_usage(run({"--draft-ctx", "512"}), without_draft, "-d FILE or -hfd USER/REPO, or leave");
  EXPECT_EQ(run({"--draft-ctx", "512", "-d", cli_models().draft}).exit_code, 0);
  EXPECT_EQ(run({"--draft-ctx", "512", "-d", ""}).exit_code, 0) << "which was said";
  CliCall shared = run_call({"-p", "hi"});
  shared.environment["OUTRIDER_DRAFT_CTX"] = "512";
  const CliResult passed = run_cli(shared);
  EXPECT_EQ(passed.exit_code, 0) << passed.err;
  EXPECT_EQ(passed.err, "");
  const CliFolder folder;
  const std::string config = folder.write("c.toml", "draft-ctx = 512\nworker-timeout-s = 5\n");
  EXPECT_EQ(run({"--config", config}).exit_code, 0);
  expect_usage(run({"--logprobs", "2"}), "--logprobs does nothing without --json or --result",
               "give --json");
  expect_usage(run_cli(folder.call({"rpc", "-c", "512"})), "--ctx does nothing without --model",
               "model.load");
  std::filesystem::create_directory(folder.path("models"));
  expect_usage(run_cli(folder.call({"serve", "--model-dir", folder.path("models"), "-d",
                                    cli_models().draft, "--port", "0"})),
               "--draft-model does nothing without --model", "give the target");
  expect_usage(run_cli(folder.call({"serve", "-m", cli_models().target, "--remember-folder", "x"})),
               "--remember-folder is given, but --remember-tokens is 0", "");
}

TEST(CliNeeds, FilesOfDraftersThatNobodyAsksAreRefusedOnlyWhereTheyWereTyped) {
  const CliFolder folder;
  const std::string text = folder.write("t.txt", story(2));
  const std::string prompts = folder.write("p.jsonl", "{\"prompt\": \"Once\"}\n");
  const std::string store = folder.path("store");
  const std::string& target = cli_models().target;
  const CliResult built =
      run_cli(folder.call({"suffix", "build", "--vocab", target, text, "-o", store}));
  ASSERT_EQ(built.exit_code, 0) << built.err;
  for (const std::vector<std::string>& arguments : std::vector<std::vector<std::string>>{
           {"run", "-m", target, "-p", "hi", "-n", "2", "--drafter", "recycle"},
           {"run", "-m", target, "-p", "hi", "-n", "2", "--width", "1"},
           {"compare", "-m", target, "--prompts", prompts, "-n", "4"},
           {"replay", "--vocab", target, "--drafter", "ngram-cache", text}}) {
    CliCall shared = folder.call(arguments);
    shared.environment["OUTRIDER_SUFFIX_STORE"] = store;
    const CliResult result = run_cli(shared);
    EXPECT_EQ(result.exit_code, 0) << arguments[0] << ": " << result.err;
  }
  EXPECT_EQ(run({"--suffix-store", store, "--drafter", "none"}).exit_code, 0) << "which was said";
  expect_usage(run({"--suffix-store", store, "--drafter", "recycle"}),
               "--suffix-store is given, but --drafter is 'recycle'", "leave the file out");
}

TEST(CliNeeds, WhatAnActionHasNoUseForIsRefusedOnlyWhereItWasTyped) {
  const CliFolder folder;
  const std::string text = folder.write("t.txt", story(2));
  const std::string& target = cli_models().target;
  const std::string ngrams = folder.path("ngrams");
  const std::string store = folder.path("store");
  const std::vector<std::vector<std::string>> calls = {
      {"ngram", "create", "--vocab", target, text, "-o", ngrams},
      {"ngram", "merge", ngrams, "-o", folder.path("merged ngrams")},
      {"ngram", "stats", ngrams},
      {"suffix", "build", "--vocab", target, text, "-o", store},
      {"suffix", "merge", store, "-o", folder.path("merged store")},
      {"suffix", "stats", store}};
  for (const std::vector<std::string>& arguments : calls) {
    CliCall shared = folder.call(arguments);
    shared.environment["OUTRIDER_VOCAB"] = target;
    shared.environment["OUTRIDER_OUTPUT"] = folder.path("other");
    shared.environment["OUTRIDER_DYNAMIC"] = "true";
    const CliResult result = run_cli(shared);
    EXPECT_EQ(result.exit_code, 0) << arguments[0] << " " << arguments[1] << ": " << result.err;
  }
  expect_usage(run_cli(folder.call({"ngram", "stats", ngrams, "--vocab", target})),
               "--vocab is given, but ngram stats", "ngram --help");
  expect_usage(run_cli(folder.call({"ngram", "stats", ngrams, "--dynamic"})),
               "--dynamic is given, but only ngram create takes it", "");
  expect_usage(run_cli(folder.call({"suffix", "stats", store, "-o", "x"})),
               "--output is not an option of suffix stats", "");
}

TEST(CliNeeds, AShapeIsForDraftersThatHeedIt) {
  const CliFolder folder;
  expect_usage(run({"--drafter", "ngram-cache", "--branches", "3"}),
               "--branches does nothing for who guesses here: ngram-cache", "suffix");
  expect_usage(run({"--split-p", "0.2"}), "--split-p does nothing for who guesses here: suffix",
               "draft-model");
  expect_usage(run({"--rule", "rejection", "--draft-p-min", "0.2"}),
               "--draft-p-min does nothing for who guesses here: nobody", "draft-model");
  EXPECT_EQ(run({"--split-p", "0.2", "-d", cli_models().draft}).exit_code, 0);
  EXPECT_EQ(run({"--branches", "2", "--draft-p-min", "0.1"}).exit_code, 0) << "suffix heeds both";
  EXPECT_EQ(run({"--split-p", "0.2", "--drafter", "none"}).exit_code, 0);
  EXPECT_EQ(run({"--split-p", "0.2", "--width", "1"}).exit_code, 0);
  const std::string text = folder.write("t.txt", story(2));
  expect_usage(run_cli(folder.call({"replay", "--vocab", cli_models().target, "--drafter",
                                    "ngram-cache", "--branches", "3", text})),
               "--branches does nothing", "suffix");
  expect_usage(run_cli(folder.call(
                   {"compare", "-m", cli_models().target, "--prompts", text, "--branches", "3"})),
               "--branches does nothing for who guesses here: replay", "draft-model");
}

TEST(CliNeeds, ADraftThatNobodyAsksIsWarnedOf) {
  const CliResult result = run({"-d", cli_models().draft, "--drafter", "suffix"});
  EXPECT_EQ(result.exit_code, 0);
  EXPECT_EQ(result.err.rfind("outrider: warning: --draft-model does nothing for who guesses here: "
                             "suffix; it is for draft-model, eagle3 and dflash",
                             0),
            0U)
      << result.err;
  EXPECT_EQ(run({"-d", cli_models().draft, "--drafter", "none"}).err, "");
}

TEST(CliNeeds, AMissingDynamicFileIsRefusedWhereNoneIsMade) {
  const CliFolder folder;
  const std::string gone = folder.path("gone");
  const std::string text = folder.write("t.txt", story(2));
  const std::string prompts = folder.write("p.jsonl", "{\"prompt\": \"Once\"}\n");
  const std::string& target = cli_models().target;
  const std::vector<std::vector<std::string>> calls = {
      {"replay", "--vocab", target, text},
      {"compare", "-m", target, "--prompts", prompts},
      {"bench", "-m", target, "--prompts", prompts},
      {"chat", "-m", target}};
  for (std::vector<std::string> call : calls) {
    call.insert(call.end(), {"--drafter", "ngram-cache"});
    std::vector<std::string> typed = call;
    typed.insert(typed.end(), {"--ngram-dynamic", gone});
    expect_usage(run_cli(folder.call(typed)),
                 "--ngram-dynamic is '" + gone + "', but there is no such file", "only 'run'");
  }
  CliCall shared = folder.call(calls[0]);
  shared.arguments.insert(shared.arguments.end(), {"--drafter", "ngram-cache"});
  shared.environment["OUTRIDER_NGRAM_DYNAMIC"] = gone;
  EXPECT_EQ(run_cli(shared).exit_code, 0);
}

TEST(CliWords, AModelThatCannotBeOpenedNamesTheOptionsOfItsRole) {
  const auto failure = [](const std::vector<std::string>& more) {
    const CliResult result = run(more);
    EXPECT_EQ(result.exit_code, 1) << result.err;
    EXPECT_EQ(result.out, "");
    return result.err;
  };
  const std::string target = failure({"--flash-attn", "off", "--cache-type-v", "q8_0"});
  EXPECT_NE(target.find("(--flash-attn on) or take f16 (--cache-type-v f16)"), std::string::npos)
      << target;
  const std::string& draft = cli_models().draft;
  const std::vector<std::string> wrong = {"--flash-attn", "off", "--draft-cache-type-v", "q8_0"};
  std::vector<std::string> both = {"-d", draft};
  both.insert(both.end(), wrong.begin(), wrong.end());
  const std::string drafted = failure(both);
  EXPECT_NE(drafted.find("(--flash-attn on) or take f16 (--draft-cache-type-v f16)"),
            std::string::npos)
      << drafted;
  std::vector<std::string> inspect = {"inspect", cli_models().target, draft};
  inspect.insert(inspect.end(), wrong.begin(), wrong.end());
  const CliResult inspected = run_cli(cli_models().folder.call(inspect));
  EXPECT_EQ(inspected.exit_code, 1);
  EXPECT_NE(inspected.err.find("--draft-cache-type-v f16"), std::string::npos) << inspected.err;
  const std::string file = failure({"--suffix-store", ""});
  EXPECT_EQ(file.rfind("outrider: error: --suffix-store is ''", 0), 0U) << file;
}

TEST(CliWords, InspectSaysThatExactWillBeAnError) {
  const std::vector<std::string> call = {"inspect", cli_models().target, "--exact",
                                         "on",      "--flash-attn",      "off"};
  const CliResult result = run_cli(cli_models().folder.call(call));
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_NE(result.out.find("not expected, and with --exact on an error then: attention without "
                            "flash attention depends on the batch; leave out --flash-attn off"),
            std::string::npos)
      << result.out;
}

TEST(CliWords, ADoubleDashEndsTheOptions) {
  CliCall call = run_call({"--", "-"});
  call.input = "hi";
  call.environment["OUTRIDER_PROMPT"] = "not this one";
  const CliResult result = run_cli(call);
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_EQ(result.out, run({}).out);
  EXPECT_EQ(run_cli(run_call({"-p", "--"})).exit_code, 0) << "as a value it is one";
  EXPECT_EQ(run_cli(run_call({"-p", "hi", "--"})).out, result.out);
  expect_usage(run_cli(run_call({"--", "-p", "hi"})),
               "'-p' stands behind --, but begins with a dash", "./-p");
  expect_usage(run_cli(run_call({"--", "hello"})), "unexpected argument 'hello'", "-p 'TEXT'");
  const CliFolder folder;
  const std::string text = folder.write("t.txt", story(2));
  EXPECT_EQ(run_cli(folder.call({"replay", "--vocab", cli_models().target, "--drafter", "suffix",
                                 "--", text}))
                .exit_code,
            0);
}

}  // namespace
}  // namespace outrider::testing
