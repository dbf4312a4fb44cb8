// What --help prints: which options, their ranges, how wide.
#include <sstream>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "tests/cli_process.h"

namespace outrider::testing {
namespace {

CliResult outrider(std::vector<std::string> arguments) {
  return run_cli(cli_models().folder.call(std::move(arguments)));
}

TEST(CliHelp, TheHelpOfACommandNamesEveryOptionOfTheContract) {
  const CliResult help = outrider({"run", "--help"});
  EXPECT_EQ(help.exit_code, 0);
  for (const char* option :
       {"-m, --model",    "-d, --draft-model", "-p, --prompt",  "-f, --file",
        "--chat",         "-c, --ctx",         "-t, --threads", "-b, --batch",
        "--draft-ctx",    "--draft-threads",   "--gpu-layers",  "--draft-gpu-layers",
        "--cache-type-k", "--cache-type-v",    "--flash-attn",  "-n, --max-tokens",
        "--workers",      "--isolate",         "--seed",        "--temp",
        "--top-k",        "--top-p",           "--min-p",       "--typical",
        "--stop",         "--drafter",         "--rule",        "--exact",
        "--width",        "--stats",           "--color",       "--json",
        "--log-level",    "--config"}) {
    EXPECT_NE(help.out.find(option), std::string::npos) << option;
  }
}

TEST(CliHelp, HelpThatCannotBeWrittenIsAFailureWithItsReason) {
  for (const std::vector<std::string>& arguments :
       {std::vector<std::string>{"--help"}, {"run", "--help"}, {"--version"}}) {
    CliCall call = cli_models().folder.call(arguments);
    call.stdout_to = "/dev/full";
    const CliResult result = run_cli(call);
    EXPECT_EQ(result.exit_code, 1);
    EXPECT_EQ(result.err.rfind("outrider: error: cannot write to standard output: ", 0), 0U)
        << result.err;
  }
}

// The longest line of the help where COLUMNS is `columns`, and no terminal tells its width.
std::size_t widest_line(const std::vector<std::string>& command, const std::string& columns) {
  CliCall call = cli_models().folder.call(command);
  call.arguments.emplace_back("--help");
  call.environment["COLUMNS"] = columns;
  std::istringstream help(run_cli(call).out);
  std::size_t longest = 0;
  for (std::string line; std::getline(help, line);) {
    if (line.size() > longest) longest = line.size();
  }
  return longest;
}

TEST(CliHelp, NoLineOfAHelpIsLongerThanATerminal) {
  for (const char* command :
       {"run", "chat", "compare", "inspect", "worker", "serve", "rpc", "replay", "ngram", "suffix",
        "calibrate", "bench", "make-draft", "completion", "man"}) {
    EXPECT_LE(widest_line({command}, ""), 80U) << command;
    EXPECT_GT(widest_line({command}, ""), 40U) << command;
  }
  EXPECT_LE(widest_line({}, ""), 80U);
  EXPECT_LE(widest_line({"worker"}, "66"), 66U);
  const std::size_t wide = widest_line({"run"}, "300");
  EXPECT_GT(wide, 80U);
  EXPECT_LE(wide, 100U);
}

}  // namespace
}  // namespace outrider::testing
