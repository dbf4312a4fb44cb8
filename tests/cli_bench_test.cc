// outrider bench.
#include <signal.h>

#include <filesystem>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "tests/cli_process.h"

namespace outrider::testing {
namespace {

using json::Json;

std::string prompt_file(const CliFolder& folder) {
  return folder.write(
      "prompts.jsonl",
      "{\"category\": \"writing\", \"turns\": [\"Once upon a time\", \"more\"]}\n"
      "{\"category\": \"writing\", \"prompt\": \"The lighthouse\"}\n"
      "{\"category\": \"<chat>\", \"messages\": [{\"role\": \"user\", \"content\": \"Hello\"}]}\n");
}

CliCall bench_call(const CliFolder& folder, const std::vector<std::string>& more) {
  std::vector<std::string> arguments = {"bench",
                                        "-m",
                                        cli_models().target,
                                        "-c",
                                        "512",
                                        "--prompts",
                                        prompt_file(folder),
                                        "--seed",
                                        "5",
                                        "-n",
                                        "24"};
  arguments.insert(arguments.end(), more.begin(), more.end());
  return whole_probe(cli_models().folder.call(arguments));
}

// `drafts`: something was drafted for sure; the planner may find that nothing pays.
void expect_group(const Json& group, bool drafts) {
  for (const char* key :
       {"plain_tps", "speculative_tps", "speedup", "tokens_per_step", "acceptance_rate"}) {
    ASSERT_TRUE(group.contains(key)) << key;
    if (!drafts && std::string(key) == "acceptance_rate") continue;
    ASSERT_TRUE(group[key].is_number()) << key << group;
    EXPECT_GT(group[key], 0.0) << key;
  }
  EXPECT_EQ(group["identical"], true);
  EXPECT_NEAR(group["speedup"].get<double>(),
              group["speculative_tps"].get<double>() / group["plain_tps"].get<double>(), 1e-6);
  EXPECT_LE(group["speedup_low"], group["speedup"]);
  EXPECT_GE(group["speedup_high"], group["speedup"]);
}

TEST(CliBench, TheObjectHasTheContractsKeysPerCategoryAndOverall) {
  const CliFolder folder;
  for (const char* width : {"auto", "4"}) {
    const CliResult result = run_cli(bench_call(
        folder, {"-d", cli_models().draft, "--width", width, "--repeat", "2", "--json"}));
    ASSERT_EQ(result.exit_code, 0) << result.err;
    const Json object = result.object();
    const bool drafts = std::string(width) == "4";
    expect_group(object["overall"], drafts);
    ASSERT_EQ(object["categories"].size(), 2U);
    expect_group(object["categories"]["writing"], drafts);
    expect_group(object["categories"]["<chat>"], drafts);
    EXPECT_EQ(object["overall"]["pairs"], 6);
    EXPECT_EQ(object["categories"]["writing"]["pairs"], 4);
    EXPECT_EQ(object["repetitions"], 2);
    EXPECT_EQ(object["interrupted"], false);
    EXPECT_EQ(object["drafter"], "draft-model,suffix");
    ASSERT_GE(object["cost_curve"].size(), 2U);
    EXPECT_EQ(object["cost_curve"][0]["width"], 1);
    EXPECT_GE(object["machine"]["cores"], 1);
    std::int64_t steps = 0;
    for (const Json& bin : object["overall"]["steps_by_width"]) {
      steps += bin["steps"].get<std::int64_t>();
    }
    EXPECT_EQ(steps, object["overall"]["steps"]);
    EXPECT_EQ(object["calibration"].is_null(), drafts) << object["calibration"];
  }
}

TEST(CliBench, RepeatsUntilItIsSureOrSaysThatItIsNot) {
  const CliFolder folder;
  const std::vector<std::string> one = {"-n", "8", "--per-category", "1", "--json"};
  const auto run = [&](std::vector<std::string> more) {
    more.insert(more.end(), one.begin(), one.end());
    const CliResult result = run_cli(bench_call(folder, more));
    EXPECT_EQ(result.exit_code, 0) << result.err;
    return result.object();
  };
  // Steps of a tiny model differ by more than half a percent, and by less than as much again.
  const Json strict = run({"--until", "0.005"});
  EXPECT_GE(strict["repetitions"], 4);
  EXPECT_LE(strict["repetitions"], 10);
  EXPECT_EQ(strict["until"].get<float>(), 0.005f);
  if (strict["sure"] == false) {
    EXPECT_EQ(strict["repetitions"], 10);
  }
  const Json loose = run({"--until", "1"});
  EXPECT_LE(loose["repetitions"], strict["repetitions"]);
  EXPECT_GE(loose["repetitions"], 4);
  // What is asked for is what is done.
  const Json exactly = run({"--repeat", "2", "--until", "0.005"});
  EXPECT_EQ(exactly["repetitions"], 2);
  // Processor time, of each token.
  const Json& overall = exactly["overall"];
  EXPECT_GT(overall["plain_processor_ms"], 0.0);
  EXPECT_NEAR(overall["processor_speedup"].get<double>(),
              overall["plain_processor_ms"].get<double>() /
                  overall["speculative_processor_ms"].get<double>(),
              1e-6);
}

TEST(CliBench, WithoutADraftTheSuffixDrafterGuesses) {
  const CliFolder folder;
  const CliResult result = run_cli(bench_call(
      folder, {"--temp", "0", "--repeat", "1", "--categories", "writing", "--per-category", "1"}));
  ASSERT_EQ(result.exit_code, 0) << result.err;
  for (const char* text :
       {"1 prompt, 1 of 1 repetitions", "with suffix", "\nkernels  ", "writing", "yes"}) {
    EXPECT_NE(result.out.find(text), std::string::npos) << text << "\n" << result.out;
  }
}

TEST(CliBench, AnOracleIsNeverSlower) {
  const CliFolder folder;
  const CliResult result = run_cli(bench_call(
      folder, {"-d", cli_models().draft, "--width", "4", "--repeat", "2", "--oracle", "--json"}));
  ASSERT_EQ(result.exit_code, 0) << result.err;
  const Json object = result.object();
  EXPECT_GT(object["overall"]["oracle_share"], 0.0);
  EXPECT_LE(object["overall"]["oracle_share"], 1.0);
  EXPECT_GE(object["ceiling"]["speedup"], 1.0);
}

TEST(CliBench, SaysWhenTheWidthAskedForIsNotToBeHad) {
  const CliFolder folder;
  for (const auto& [width, warned] : {std::pair{"4", true}, std::pair{"auto", false}}) {
    const CliResult result = run_cli(bench_call(
        folder, {"--batch", "2", "--width", width, "--repeat", "1", "--per-category", "1"}));
    ASSERT_EQ(result.exit_code, 0) << result.err;
    EXPECT_EQ(result.err.find("--batch 2 leaves no room for wider steps") != std::string::npos,
              warned)
        << result.err;
  }
}

TEST(CliBench, TheReportIsWholeOrNotThere) {
  const CliFolder folder;
  const std::string report = folder.path("report.html");
  const CliResult result =
      run_cli(bench_call(folder, {"-d", cli_models().draft, "--repeat", "2", "--width", "auto",
                                  "--json", "--report", report}));
  ASSERT_EQ(result.exit_code, 0) << result.err;
  const std::string page = read_file(report);
  EXPECT_EQ(page.rfind("<!DOCTYPE html>", 0), 0U);
  EXPECT_NE(page.find("</html>\n"), std::string::npos);
  EXPECT_NE(page.find("&lt;chat&gt;"), std::string::npos);
  EXPECT_EQ(page.find("<chat>"), std::string::npos);
  EXPECT_NE(page.find("outrider bench -m "), std::string::npos) << "how it was made";
  EXPECT_EQ(page.find("<script"), std::string::npos);
  const Json object = result.object();
  EXPECT_NE(page.find("<td>kernels</td>"), std::string::npos);
  EXPECT_TRUE(object["floor_reason"].is_null()) << object["floor_reason"];
  if (object["kernels"] == "own") {
    EXPECT_EQ(object["floor"].size(), object["cost_curve"].size());
    EXPECT_NE(page.find("the least it could take here"), std::string::npos);
  }

  // A place that cannot be written to is found before anything is measured, and nothing is left.
  const CliResult nowhere = run_cli(bench_call(
      folder, {"-d", cli_models().draft, "--report", folder.path("no/such/report.html")}));
  EXPECT_EQ(nowhere.exit_code, 1);
  EXPECT_EQ(nowhere.out, "");
  EXPECT_EQ(nowhere.err.rfind("outrider: error: --report: ", 0), 0U) << nowhere.err;
  EXPECT_FALSE(std::filesystem::exists(folder.path("no")));

  const CliResult failed = run_cli(bench_call(
      folder, {"-d", folder.path("missing.gguf"), "--report", folder.path("other.html")}));
  EXPECT_EQ(failed.exit_code, 1);
  EXPECT_FALSE(std::filesystem::exists(folder.path("other.html")));
}

TEST(CliBench, CtrlCEndsItWithTheResultsSoFar) {
  const CliFolder folder;
  CliCall call = bench_call(folder, {"-d", cli_models().draft, "--repeat", "9999"});
  call.terminal = true;  // its progress tells how far it is
  bool sent = false;
  call.on_output = [&sent](pid_t child, const std::string& out, const std::string&) {
    if (!sent && out.find("repetition 2 of 9999, prompt 2") != std::string::npos) {
      sent = true;
      kill(child, SIGINT);
    }
    return true;
  };
  const CliResult result = run_cli(call);
  EXPECT_EQ(result.exit_code, 128 + SIGINT) << result.out;
  for (const char* text : {"outrider: warning: interrupted: ", " of 9999 repetitions", "overall"}) {
    EXPECT_NE(result.out.find(text), std::string::npos) << text << "\n" << result.out;
  }
}

TEST(CliBench, MistakesAreNamed) {
  const CliFolder folder;
  const std::vector<std::tuple<std::vector<std::string>, int, std::string>> cases = {
      {{"--drafter", "none"}, 2, "there is nothing to measure: switched off with --drafter none"},
      {{"--width", "1"}, 2, "there is nothing to measure: --width 1 is plain decoding"},
      {{"--oracle", "--rule", "rejection"}, 2, "--oracle is there, but --rule is 'rejection'"},
      {{"-n", "1"}, 2, "--max-tokens is 1, but must be at least 2"},
      {{"--repeat", "-1"}, 2, "--repeat is '-1', but must be a whole number from 0"},
      {{"--until", "0"}, 2, "--until is '0', but must be from 0.005 to 1"},
      {{"--categories", "writing,,x"}, 2, "--categories is 'writing,,x', but must be names"},
      {{"--categories", "poems"}, 1, "--categories has 'poems', which no prompt is of; there are "},
      {{"--prompts", folder.path("none")}, 1, "'" + folder.path("none") + "' does not exist"},
      {{"--report", ""}, 2, "--report is '', but must be a file's name"},
      {{"--report", cli_models().target}, 1, "--report is '" + cli_models().target + "' itself"},
  };
  for (const auto& [more, code, message] : cases) {
    const CliResult result = run_cli(bench_call(folder, more));
    EXPECT_EQ(result.exit_code, code) << result.err;
    EXPECT_EQ(result.out, "");
    EXPECT_EQ(result.err.rfind("outrider: error: " + message, 0), 0U) << result.err;
  }
  const CliResult missing =
      run_cli(folder.call({"bench", "-m", cli_models().target, "-d", cli_models().draft}));
  EXPECT_EQ(missing.exit_code, 2);
  EXPECT_EQ(missing.err.rfind("outrider: error: --prompts is missing", 0), 0U) << missing.err;
}

TEST(CliBench, TheHelpOfBothKeepsToAHundredColumns) {
  const CliFolder folder;
  for (const char* command : {"bench", "calibrate"}) {
    const CliResult help = run_cli(folder.call({command, "--help"}));
    ASSERT_EQ(help.exit_code, 0);
    std::size_t start = 0;
    for (std::size_t end; (end = help.out.find('\n', start)) != std::string::npos;
         start = end + 1) {
      EXPECT_LE(end - start, 100U) << help.out.substr(start, end - start);
    }
  }
}

}  // namespace
}  // namespace outrider::testing
