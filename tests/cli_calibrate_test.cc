// outrider calibrate.
#include <signal.h>

#include <filesystem>
#include <string>
#include <tuple>
#include <vector>

#include <gtest/gtest.h>

#include "testing/tiny_gguf.h"
#include "tests/cli_process.h"

namespace outrider::testing {
namespace {

using json::Json;

CliCall calibrate_call(const CliFolder& folder, const std::vector<std::string>& more) {
  std::vector<std::string> arguments = {"calibrate", "-m", cli_models().target, "-c", "512"};
  arguments.insert(arguments.end(), more.begin(), more.end());
  return folder.call(arguments);
}

TEST(CliCalibrate, ItsObjectIsACostFileForReplay) {
  const CliFolder folder;
  const CliResult result = run_cli(
      calibrate_call(folder, {"-d", cli_models().draft, "--widths", "8,2,3", "--depth", "40,100",
                              "--repeat", "3", "--json", "--plot", folder.path("plot.svg")}));
  ASSERT_EQ(result.exit_code, 0) << result.err;
  const Json object = result.object();
  ASSERT_EQ(object["curve"].size(), 4U) << "and width 1, without which there is no comparing";
  for (std::size_t i = 0; i < 4; ++i) {
    const Json& point = object["curve"][i];
    EXPECT_EQ(point["width"], std::vector<int>({1, 2, 3, 8})[i]);
    EXPECT_GT(point["ms"], 0.0);
    EXPECT_LE(point["low_ms"], point["ms"]);
    EXPECT_GE(point["high_ms"], point["ms"]);
    EXPECT_EQ(point["n"], 3);
  }
  EXPECT_EQ(object["depth"], 40);
  ASSERT_EQ(object["depths"].size(), 2U);
  EXPECT_EQ(object["depths"][1]["depth"], 100);
  EXPECT_GT(object["draft"]["first_pass"]["ms"], 0.0);
  EXPECT_GT(object["draft"]["further_pass"]["ms"], 0.0);
  const std::string plot = read_file(folder.path("plot.svg"));
  EXPECT_EQ(plot.rfind("<svg ", 0), 0U);
  EXPECT_NE(plot.find("</svg>\n"), std::string::npos);
  if (object["kernels"] == "own") {
    ASSERT_EQ(object["floor"].size(), 4U);
    for (const Json& point : object["floor"]) EXPECT_GT(point["ms"], 0.0) << point;
    EXPECT_EQ(object["stock_curve"].size(), 4U);
    EXPECT_FALSE(object["draft"]["weight_types"]["types"].empty());
    EXPECT_NE(plot.find("the floor: "), std::string::npos);
    EXPECT_NE(plot.find("with llama.cpp"), std::string::npos);
  }

  const std::string curve = folder.write("curve.json", result.out);
  const CliResult replay = run_cli(
      folder.call({"replay", "--vocab", cli_models().target, "--drafter", "suffix", "--width", "8",
                   "--cost", curve, "--json",
                   folder.write("text.txt", "round and round and round and round and round")}));
  ASSERT_EQ(replay.exit_code, 0) << replay.err;
  EXPECT_GT(replay.object()["predicted_speedup"], 0.0);
}

// Loading compares for so long at most, and goes on the next time; calibrate does all of it.
TEST(CliCalibrate, ProvesAllWidthsHoweverLongItTakes) {
  const CliFolder folder;
  CliCall run =
      folder.call({"run", "-m", cli_models().target, "-c", "512", "-p", "x", "-n", "2", "--json"});
  run.environment["OUTRIDER_PROBE_BUDGET_MS"] = "0.001";
  const Json hurried = run_cli(run).object()["speculation"];
  EXPECT_NE(hurried["exactness_coverage"].get<std::string>().find("cut off"), std::string::npos);
  CliCall calibrate = calibrate_call(folder, {"--repeat", "2", "--json"});
  calibrate.environment["OUTRIDER_PROBE_BUDGET_MS"] = "0.001";
  const Json whole = run_cli(calibrate).object();
  EXPECT_EQ(whole["exactness"], "exact");
  EXPECT_EQ(whole["exactness_coverage"].get<std::string>().find("cut off"), std::string::npos);
  const Json after = run_cli(run).object()["speculation"];
  EXPECT_EQ(after["exactness"], "exact") << after["exactness_coverage"];
  EXPECT_NE(after["exactness_coverage"].get<std::string>().find("cached"), std::string::npos);
}

TEST(CliCalibrate, TheTableSaysWhatAStepMustYield) {
  const CliFolder folder;
  const CliResult result = run_cli(calibrate_call(
      folder, {"-d", cli_models().draft, "--widths", "4", "--repeat", "2", "--refresh"}));
  ASSERT_EQ(result.exit_code, 0) << result.err;
  std::vector<const char*> texts = {"T(b) behind 64 tokens", "x T(1)",
                                    "(plain decoding: one token)"};
  if (result.out.find("\nkernels  Outrider's, ") != std::string::npos) {
    texts.insert(texts.end(), {"x floor", "its / ours", "  the cheapest here: "});
  }
  for (const char* text : texts) {
    EXPECT_NE(result.out.find(text), std::string::npos) << text << "\n" << result.out;
  }
}

// llama.cpp's kernels are asked for their times alone, and do not give F32 the bits of single
// steps.
TEST(CliCalibrate, LlamasKernelsAreMeasuredWhateverExactnessIsAskedFor) {
  const CliFolder folder;
  const std::string model = folder.path("f32.gguf");
  ASSERT_TRUE(write_tiny_gguf(model, {.weight_type = WeightType::kF32}).ok());
  const CliResult run = run_cli(whole_probe(folder.call(
      {"run", "-m", model, "-c", "512", "-p", "x", "-n", "2", "--exact", "on", "--json"})));
  if (run.exit_code != 0) GTEST_SKIP() << "not exact with this processor's kernels: " << run.err;
  const CliResult result =
      run_cli(whole_probe(folder.call({"calibrate", "-m", model, "-c", "512", "--exact", "on",
                                       "--repeat", "2", "--widths", "1,2,4", "--json"})));
  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_EQ(result.object()["exactness"], "exact");
  EXPECT_FALSE(result.object()["stock_curve"].is_null());
}

TEST(CliCalibrate, CtrlCEndsItWithWhatWasMeasured) {
  const CliFolder folder;
  CliCall call = calibrate_call(folder, {"--widths", "2", "--depth", "20,30", "--repeat", "2000"});
  call.terminal = true;  // its progress tells how far it is
  bool sent = false;
  call.on_output = [&sent](pid_t child, const std::string& out, const std::string&) {
    if (!sent && out.find("measuring behind 30 tokens") != std::string::npos) {
      sent = true;
      kill(child, SIGINT);
    }
    return true;
  };
  const CliResult result = run_cli(call);
  EXPECT_EQ(result.exit_code, 128 + SIGINT) << result.out;
  EXPECT_NE(result.out.find("T(b) behind 20 tokens"), std::string::npos) << result.out;
}

// What loading keeps is kept, and --refresh replaces it.
TEST(CliCalibrate, KeepsTheCostsThatLoadingReads) {
  const CliFolder folder;
  const auto kept = [&folder] {
    std::vector<std::filesystem::path> files;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(folder.path(""))) {
      if (entry.path().parent_path().filename() == "costs") files.push_back(entry.path());
    }
    return files;
  };
  const std::vector<std::string> few = {"--widths", "2", "--repeat", "1"};
  ASSERT_EQ(run_cli(calibrate_call(folder, few)).exit_code, 0);
  ASSERT_EQ(kept().size(), 1U);
  const std::string first = read_file(kept()[0].string());
  EXPECT_NE(first.find("\n16 "), std::string::npos) << "the usual widths, not those of the call";
  // Widths that no measurement gives show whether the file is read, checked and replaced.
  std::string marked = first;
  marked += "33 77.5\n";
  folder.write(kept()[0].lexically_relative(folder.path("")).string(), marked);
  std::vector<std::string> refresh = few;
  refresh.push_back("--refresh");
  ASSERT_EQ(run_cli(calibrate_call(folder, refresh)).exit_code, 0);
  ASSERT_EQ(kept().size(), 1U);
  EXPECT_EQ(read_file(kept()[0].string()).find("33 77.5"), std::string::npos);
}

TEST(CliCalibrate, SaysThatNothingCanBeKeptAndFails) {
  const CliFolder folder;
  CliCall call = calibrate_call(folder, {"--widths", "2", "--repeat", "1"});
  call.environment["OUTRIDER_CACHE"] = folder.write("file", "no folder");
  const CliResult result = run_cli(call);
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_NE(result.out.find("x T(1)"), std::string::npos) << "what was measured is shown";
  EXPECT_NE(result.err.find("outrider: error: what was measured cannot be kept: "),
            std::string::npos)
      << result.err;
}

TEST(CliCalibrate, MistakesAreNamed) {
  const CliFolder folder;
  const std::vector<std::tuple<std::vector<std::string>, int, std::string>> cases = {
      {{"--widths", "2,x"}, 2, "--widths is 'x', but must be whole numbers from 1 to 64"},
      {{"--widths", ""}, 2, "--widths is '', but must be"},
      {{"--depth", "0"}, 2, "--depth is '0', but must be whole numbers from 1 to"},
      {{"--depth", "600"}, 2, "--depth 600 and a pass of 16 do not fit the context of 512 tokens"},
      {{"--depth", "99999", "--ctx", "0"},
       1,
       "--depth 99999 and a pass of 16 do not fit the context"},
      {{"--widths", "60", "-b", "32"}, 1, "--widths has 60, but '"},
      {{"--plot", folder.path("no/plot.svg")}, 1, "--plot: "},
      {{"--plot", ""}, 2, "--plot is '', but must be a file's name"},
      {{"--plot", cli_models().target}, 1, "--plot is '" + cli_models().target + "' itself"},
  };
  for (const auto& [more, code, message] : cases) {
    const CliResult result = run_cli(calibrate_call(folder, more));
    EXPECT_EQ(result.exit_code, code) << result.err;
    EXPECT_EQ(result.out, "");
    EXPECT_NE(result.err.find("outrider: error: " + message), std::string::npos) << result.err;
  }
}

}  // namespace
}  // namespace outrider::testing
