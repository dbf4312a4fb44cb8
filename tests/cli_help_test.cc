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

TEST(CliHelp, EveryExitCodeIsNamedWhereTheyAreListed) {
  const std::string help = outrider({"--help"}).out;
  const std::string page = outrider({"man"}).out;
  for (const std::string& text :
       {help.substr(help.rfind("Exit codes")), page.substr(page.rfind(".SH EXIT STATUS"))}) {
    for (const char* const code : {"0 done", "1 failed", "2 wrong usage", "130", "143", "129"}) {
      EXPECT_NE(text.find(code), std::string::npos) << code << " in " << text;
    }
  }
}

// What the help of `command` says of `option` ("--width N") up to its default, in one line.
std::string said_of(const std::string& command, const std::string& option) {
  std::istringstream words(outrider({command, "--help"}).out);
  std::string text;
  for (std::string word; words >> word;) text += word + " ";
  const std::size_t begin = text.find(option);
  return begin == std::string::npos ? "" : text.substr(begin, text.find("[default", begin) - begin);
}

TEST(CliHelp, NumbersHaveTheirRanges) {
  struct Case {
    const char* command;
    const char* option;
    const char* range;
  };
  const Case cases[] = {
      {"run", "--draft-threads N", "(0 to 512)"},
      {"run", "--draft-ctx N", "(0 to 16777216)"},
      {"run", "--draft-gpu-layers N", "(-1 to 10000)"},
      {"worker", "--port N", "(1 to 65535)"},
      {"worker", "--threads N", "(0 to 512)"},
      {"bench", "--repeat N", "(0 to 10000)"},
      {"bench", "--warm-up N", "(0 to 10000)"},
      {"bench", "--limit N", "(0 to 1000000000)"},
      {"bench", "--per-category N", "(0 to 1000000000)"},
      {"bench", "--until X", "(0.005 to 1)"},
      {"calibrate", "--repeat N", "(1 to 10000)"},
      {"calibrate", "--widths N,...", "(1 to 64)"},
      {"calibrate", "--depth N,...", "(1 to 1048576)"},
      {"calibrate", "--slots N", "(1 to 64)"},
      {"compare", "--width N,...", "(2 to 64)"},
      {"replay", "--width N", "(1 to 64)"},
      {"replay", "--branches N", "(1 to 64)"},
      {"rpc", "--calls N", "(1 to 1024)"},
      {"serve", "--max-models N", "(0 to 1024)"},
      {"make-draft", "--tokens N", "(2 to 100000)"},
      {"make-draft", "--temp X", "(at least 0)"},
      {"make-draft", "--vocabulary N,...", "(0 to 100000000)"},
      {"make-draft", "--leave-out N,...", "(0 to 100000)"},
      {"make-draft", "--measure N", "(0 to 100)"},
  };
  for (const Case& c : cases) {
    const std::string said = said_of(c.command, c.option);
    EXPECT_NE(said.find(c.range), std::string::npos)
        << c.command << " " << c.option << ": " << said;
  }
}

TEST(CliHelp, WhatReplayNeedsIsMarked) {
  const std::string help = outrider({"replay", "--help"}).out;
  std::size_t marked = 0;
  for (std::size_t at = 0; (at = help.find("(required)", at)) != std::string::npos; ++at) ++marked;
  EXPECT_EQ(marked, 3U) << "--vocab, the text and --drafter\n" << help;
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
