// outrider make-draft.
#include <signal.h>

#include <filesystem>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "testing/gguf_file.h"
#include "testing/widen.h"
#include "tests/cli_process.h"

namespace outrider::testing {
namespace {

using json::Json;

// What it needs beside the files: a sample of a few tokens, and one candidate of each kind.
CliCall make_call(const CliFolder& folder, const std::vector<std::string>& more,
                  const std::string& target = cli_models().target) {
  std::vector<std::string> arguments = {"make-draft", target, "-c",      "2048",
                                        "-n",         "48",   "--types", "q4_0",
                                        "--measure",  "0",    "-o",      folder.path("made.gguf")};
  arguments.insert(arguments.end(), more.begin(), more.end());
  return cli_models().folder.call(arguments);
}

std::size_t entries(const CliFolder& folder) {
  std::size_t n = 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder.path(""))) {
    n += entry.is_regular_file() ? 1 : 0;
  }
  return n;
}

// The draft alone is left where one pays, else nothing. Which it is depends on what passes of so
// small models happen to take.
void expect_file_when_one_pays(const CliFolder& folder, const CliResult& result) {
  const bool pays = result.exit_code == 0;
  EXPECT_EQ(std::filesystem::exists(folder.path("made.gguf")), pays);
  EXPECT_EQ(result.object()["output"].is_null(), !pays);
  EXPECT_EQ(entries(folder), pays ? 1U : 0U) << "something was left behind";
  if (!pays) {
    EXPECT_NE(result.err.find("pays"), std::string::npos) << result.err;
  }
}

TEST(CliMakeDraft, TheObjectTellsAllCandidatesAndTheFileIsThereWhenOnePays) {
  const CliFolder folder;
  const CliResult result = run_cli(make_call(folder, {"--json", "--leave-out", "1"}));
  ASSERT_TRUE(result.exit_code == 0 || result.exit_code == 1) << result.err;
  const Json object = result.object();
  ASSERT_GE(object["candidates"].size(), 3U);
  for (const Json& candidate : object["candidates"]) {
    ASSERT_FALSE(candidate.contains("error")) << candidate;
    EXPECT_GT(candidate["bytes"], 0);
    EXPECT_GT(candidate["further_ms"], 0.0);
    EXPECT_GT(candidate["predicted"]["speedup"], 0.0);
    EXPECT_TRUE(candidate["measured"].is_null());
  }
  expect_file_when_one_pays(folder, result);
}

// As in README.md. A target that costs 64 times its source and says the same, so that a draft is
// expected to pay, and is measured, on any machine that is not far too busy.
TEST(CliMakeDraft, OneThatIsMadeOfASmallerModelIsMeasuredBeforeItIsWritten) {
  const CliFolder models;
  const std::string source = cli_models().target;
  const Status widened = widen_gguf(source, models.path("wide.gguf"), 8);
  ASSERT_TRUE(widened.ok()) << widened.message();
  const CliFolder folder;
  const CliResult result = run_cli(make_call(folder,
                                             {"--json", "--from", source, "--measure", "1", "-n",
                                              "16", "--leave-out", "0", "--vocabulary", "0"},
                                             models.path("wide.gguf")));
  ASSERT_TRUE(result.exit_code == 0 || result.exit_code == 1) << result.err;
  const Json object = result.object();
  EXPECT_EQ(object["source"], source);
  int measured = 0;
  bool expected = false;
  bool pays = false;
  for (const Json& candidate : object["candidates"]) {
    ASSERT_FALSE(candidate.contains("error")) << candidate;
    expected = expected || candidate["predicted"]["speedup"] > 1.0;
    if (candidate["measured"].is_null()) continue;
    ++measured;
    EXPECT_GT(candidate["measured"]["speedup"], 0.0);
    EXPECT_EQ(candidate["measured"]["identical"], true);
    pays = candidate["measured"]["speedup_low"] > 1.0;
  }
  EXPECT_EQ(measured, expected ? 1 : 0) << object["candidates"];
  EXPECT_EQ(result.exit_code, pays ? 0 : 1) << result.err;
  expect_file_when_one_pays(folder, result);
}

TEST(CliMakeDraft, AWrongCallIsToldBeforeAnythingIsLoaded) {
  const CliFolder folder;
  const auto expect = [&](const std::vector<std::string>& arguments, int code,
                          const std::string& what) {
    const CliResult result = run_cli(cli_models().folder.call(arguments));
    EXPECT_EQ(result.exit_code, code) << result.err;
    EXPECT_NE(result.err.find(what), std::string::npos) << result.err;
    EXPECT_EQ(result.out, "");
  };
  const std::string target = cli_models().target;
  expect({"make-draft"}, 2, "--model is missing");
  expect({"make-draft", target}, 2, "--output is missing");
  expect({"make-draft", target, "-o", ""}, 2, "--output is missing");
  expect({"make-draft", target, "-o", "x", "-d", target}, 2, "unknown option -d");
  expect({"make-draft", target, "-o", "x", "--temp", "-1"}, 2, "--temp");
  expect({"make-draft", target, "-o", "x", "--measure", "many"}, 2, "--measure");
  expect({"make-draft", target, "-o", target}, 1, "give another name");
  expect({"make-draft", target, "--from", cli_models().draft, "-o", cli_models().draft}, 1,
         "give another name");
  expect({"make-draft", target, "-o", folder.path("no/such/draft.gguf")}, 1, "--output");
  const std::string old = folder.write("old.gguf", "old");
  expect({"make-draft", target, "-o", old}, 1, "exists; --force replaces it");
  EXPECT_EQ(read_file(old), "old");
}

// The target is not there: so it was not opened first.
TEST(CliMakeDraft, ASourceThatIsSplitIsRefusedBeforeAnythingIsLoaded) {
  const CliFolder folder;
  const Result<std::string> split =
      write_gguf_split(cli_models().draft, folder.path("small"), {3, 6});
  ASSERT_TRUE(split.ok()) << split.status().message();
  const CliResult result =
      run_cli(make_call(folder, {"--from", *split}, folder.path("missing.gguf")));
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_EQ(
      result.err.rfind("outrider: error: '" + *split +
                           "' is one of the 3 files that its model "
                           "is split over; join them with llama.cpp's llama-gguf-split --merge",
                       0),
      0U)
      << result.err;
  // The target may be split. No file of it is replaced.
  const std::string second = folder.path("small-00002-of-00003.gguf");
  const std::string before = read_file(second);
  const CliResult over = run_cli(
      folder.call({"make-draft", *split, "--from", cli_models().draft, "-o", second, "--force"}));
  EXPECT_EQ(over.exit_code, 1);
  EXPECT_NE(over.err.find("give another name"), std::string::npos) << over.err;
  EXPECT_EQ(read_file(second), before);
}

TEST(CliMakeDraft, ItsHelpHasNoOptionThatItRefuses) {
  const CliFolder folder;
  const std::string help = run_cli(folder.call({"make-draft", "--help"})).out;
  EXPECT_NE(help.find("--hf-repo "), std::string::npos);
  EXPECT_NE(help.find("--draft-ctx "), std::string::npos) << "as the draft will be used";
  for (const std::string option :
       {"--draft-model", "--hf-repo-draft", "--workers", "--worker-timeout-s"}) {
    EXPECT_EQ(help.find(option), std::string::npos) << option;
    const CliResult result =
        run_cli(folder.call({"make-draft", cli_models().target, "-o", "x", option, "1"}));
    EXPECT_EQ(result.exit_code, 2);
    EXPECT_EQ(result.err.rfind("outrider: error: unknown option " + option, 0), 0U) << result.err;
  }
}

TEST(CliMakeDraft, AMissingSourceIsToldByName) {
  const CliFolder folder;
  const CliResult result = run_cli(make_call(folder, {"--from", folder.path("missing.gguf")}));
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_NE(result.err.find("missing.gguf"), std::string::npos) << result.err;
  EXPECT_EQ(entries(folder), 0U);
}

TEST(CliMakeDraft, WhatAKilledOneLeftIsRemovedByTheNext) {
  const CliFolder folder;
  const std::string gone = "made.gguf.999999999.candidate.gguf";  // no process has that number
  folder.write(gone, "candidate");
  folder.write(gone + ".999999999-4.part", "part");
  const std::string own = folder.write("made.gguf.x.candidate.gguf", "the user's");
  const std::string alive = folder.write("made.gguf.1.candidate.gguf", "of a process that runs");
  EXPECT_EQ(run_cli(make_call(folder, {"--sample", folder.path("missing.txt")})).exit_code, 1);
  EXPECT_EQ(entries(folder), 2U);
  EXPECT_EQ(read_file(own), "the user's");
  EXPECT_EQ(read_file(alive), "of a process that runs");
}

TEST(CliMakeDraft, CtrlCLeavesNothingBehind) {
  const CliFolder folder;
  // What llama.cpp says of the target comes when signals are watched for. The sample is so
  // long that it is not said by then.
  CliCall call = make_call(folder, {"-n", "100000", "-v"});
  bool sent = false;  // a second one would kill
  call.on_output = [&](pid_t child, const std::string&, const std::string& err) {
    if (!sent && err.find("llama.cpp: ") != std::string::npos) {
      sent = true;
      kill(child, SIGINT);
    }
    return true;
  };
  const CliResult result = run_cli(call);
  EXPECT_TRUE(sent);
  EXPECT_EQ(result.exit_code, 130) << result.err;
  EXPECT_EQ(entries(folder), 0U);
}

}  // namespace
}  // namespace outrider::testing
