// Where options come from: the command line, the environment, config files.
#include <cctype>
#include <map>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "tests/cli_process.h"

namespace outrider::testing {
namespace {

// `outrider run` on the tiny target, and what else is given.
CliCall run_call(const std::vector<std::string>& more) {
  std::vector<std::string> arguments = {"run", "-m", cli_models().target, "-c", "512"};
  arguments.insert(arguments.end(), more.begin(), more.end());
  return cli_models().folder.call(arguments);
}

// Tokens said with -n from here, environment and file.
struct Layers {
  std::vector<std::string> arguments;
  std::map<std::string, std::string> environment;
};

std::size_t tokens_said(const Layers& layers) {
  std::vector<std::string> arguments = {"-p", "hi", "--json"};
  arguments.insert(arguments.end(), layers.arguments.begin(), layers.arguments.end());
  CliCall call = run_call(arguments);
  call.environment.insert(layers.environment.begin(), layers.environment.end());
  const CliResult result = run_cli(call);
  EXPECT_EQ(result.exit_code, 0) << result.err;
  return result.object()["tokens"].size();
}

TEST(CliLayers, TheCommandLineWinsOverTheEnvironmentAndThatOverTheFile) {
  const CliFolder folder;
  const std::string file = folder.write("o.toml", "# options\nmax-tokens = 5\n[run]\ntop_k = 3\n");
  const std::string own =
      folder.write("own.toml", "n = 1\nmax-tokens = 5\n[run]\nmax-tokens = 6\n");
  EXPECT_EQ(tokens_said({.arguments = {"-n", "3"}, .environment = {{"OUTRIDER_MAX_TOKENS", "4"}}}),
            3U);
  EXPECT_EQ(
      tokens_said({.arguments = {"--config", file}, .environment = {{"OUTRIDER_MAX_TOKENS", "4"}}}),
      4U);
  EXPECT_EQ(tokens_said({.arguments = {"--config", file}}), 5U);
  EXPECT_EQ(tokens_said({.environment = {{"OUTRIDER_CONFIG", file}}}), 5U);
  EXPECT_EQ(tokens_said({.arguments = {"--config", file, "-n", "2"}}), 2U);
  EXPECT_EQ(tokens_said({.arguments = {"-n", "7", "-n", "2"}}), 2U) << "the last one wins";
  expect_message(run_cli(run_call({"-p", "hi", "--config", own})), 2,
                 "config file '" + own + "', line 1: unknown option 'n'");
}

TEST(CliLayers, APromptThatIsTypedReplacesAnotherKindFurtherAway) {
  const CliFolder folder;
  const std::string text = folder.write("text", "hi");
  const std::string prompt = folder.write("prompt.toml", "prompt = \"x\"\n");
  const std::string file = folder.write("file.toml", "file = \"gone\"\n");
  const std::string draft = folder.write("draft.toml", "draft-model = \"gone\"\n");
  for (const std::vector<std::string>& arguments :
       std::vector<std::vector<std::string>>{{"--config", prompt, "-f", text},
                                             {"--config", file, "-p", "hi"},
                                             {"--config", prompt, "-"},
                                             {"--config", draft, "-d", "", "-p", "hi"}}) {
    CliCall call = run_call(arguments);
    call.input = "hi";
    call.environment["OUTRIDER_MAX_TOKENS"] = "2";
    const CliResult result = run_cli(call);
    EXPECT_EQ(result.exit_code, 0) << arguments[1] << ": " << result.err;
  }
}

TEST(CliLayers, ATableOfTheCommandWinsOverTheTopOfTheFileAndOtherTablesAreOthers) {
  const CliFolder folder;
  EXPECT_EQ(tokens_said({.arguments = {"--config", folder.write("a.toml",
                                                                "max-tokens = 5\nlimit = 3\n[run]\n"
                                                                "max-tokens = 6\n[compare]\n"
                                                                "max-tokens = 7\n")}}),
            6U);
}

TEST(CliLayers, OfOptionsThatReplaceEachOtherTheCommandsTableWinsOverTheTop) {
  const CliFolder folder;
  const std::string text = folder.write("text", "hi");
  const std::string file =
      folder.write("c.toml", "prompt = \"not this one\"\n[run]\nfile = \"" + text + "\"\n");
  const CliResult typed = run_cli(run_call({"-p", "hi", "-n", "8", "--seed", "3"}));
  const CliResult said = run_cli(run_call({"--config", file, "-n", "8", "--seed", "3"}));
  EXPECT_EQ(said.exit_code, 0) << said.err;
  EXPECT_EQ(said.out, typed.out);
  // Not another command's.
  const std::string other =
      folder.write("o.toml", "draft-model = \"" + cli_models().draft +
                                 "\"\n[bench]\nhf_repo_draft = \"u/nothing\"\n");
  const CliResult drafted = run_cli(run_call({"-p", "hi", "-n", "8", "--json", "--config", other}));
  ASSERT_EQ(drafted.exit_code, 0) << drafted.err;
  EXPECT_TRUE(drafted.object()["speculation"]["drafters"].contains("draft-model"));
}

TEST(CliLayers, WhatIsTypedReplacesWhatExcludesItFurtherAway) {
  const CliFolder folder;
  const std::string grammar = folder.write("g.gbnf", "root ::= [a-c]{3}");
  const std::string schema = folder.write("s.json", R"({"const":1})");
  struct Case {
    std::vector<std::string> typed;
    std::string key;  // of the other option, in the file and in the environment
    std::string value;
  };
  for (const Case& c : std::vector<Case>{{{"--mirostat", "2"}, "top-k", "2"},
                                         {{"--mirostat", "2"}, "temp", "0"},
                                         {{"--top-k", "3"}, "mirostat", "2"},
                                         {{"--temp", "0"}, "mirostat", "1"},
                                         {{"--json-schema", schema}, "grammar", grammar},
                                         {{"--grammar", grammar}, "json-schema", schema},
                                         {{"--grammar", grammar}, "ignore-eos", "true"},
                                         {{"--ignore-eos"}, "grammar", grammar}}) {
    SCOPED_TRACE(c.typed.front() + " beside " + c.key);
    std::vector<std::string> arguments = {"-p", "hi", "-n", "8", "--seed", "3"};
    arguments.insert(arguments.end(), c.typed.begin(), c.typed.end());
    const CliResult alone = run_cli(run_call(arguments));
    ASSERT_EQ(alone.exit_code, 0) << alone.err;
    CliCall call = run_call(arguments);
    std::string variable = "OUTRIDER_" + c.key;
    for (char& letter : variable) letter = letter == '-' ? '_' : static_cast<char>(toupper(letter));
    call.environment[variable] = c.value;
    const CliResult with_variable = run_cli(call);
    EXPECT_EQ(with_variable.exit_code, 0) << with_variable.err;
    EXPECT_EQ(with_variable.out, alone.out);
    const bool bare = c.value.find('/') == std::string::npos;
    const std::string file =
        folder.write("c.toml", c.key + " = " + (bare ? c.value : "\"" + c.value + "\"") + "\n");
    arguments.insert(arguments.end(), {"--config", file});
    const CliResult with_file = run_cli(run_call(arguments));
    EXPECT_EQ(with_file.exit_code, 0) << with_file.err;
    EXPECT_EQ(with_file.out, alone.out);
  }
}

TEST(CliLayers, OfOneLayerTwoThatExcludeEachOtherStayAnError) {
  const CliFolder folder;
  const std::string both = folder.write("c.toml", "top-k = 2\nmirostat = 2\n");
  expect_message(run_cli(run_call({"-p", "hi", "--config", both})), 2,
                 "--top-k cannot be used with mirostat 2");
  CliCall call = run_call({"-p", "hi"});
  call.environment = {{"OUTRIDER_TOP_K", "2"}, {"OUTRIDER_MIROSTAT", "2"}};
  expect_message(run_cli(call), 2, "--top-k cannot be used with mirostat 2");
}

TEST(CliLayers, ATypedNoHistoryReplacesAHistoryFurtherAwayAndTheOtherWayRound) {
  const CliFolder folder;
  const std::string history = folder.path("history");
  const std::string in_table = folder.write("t.toml", "[chat]\nhistory = \"" + history + "\"\n");
  const auto code = [](const std::vector<std::string>& more, const std::string& variable) {
    std::vector<std::string> arguments = {"chat", "-m", cli_models().target, "-c", "512"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    CliCall call = cli_models().folder.call(arguments);
    if (!variable.empty()) call.environment[variable] = "1";
    const CliResult result = run_cli(call);
    return result.exit_code == 0 ? "" : result.err;
  };
  EXPECT_EQ(code({"--no-history", "--config", in_table}, ""), "");
  EXPECT_EQ(code({"--no-history"}, "OUTRIDER_HISTORY"), "");
  EXPECT_EQ(code({"--history", history}, "OUTRIDER_NO_HISTORY"), "");
  EXPECT_EQ(code({"--config", in_table}, "OUTRIDER_NO_HISTORY"), "");
  EXPECT_NE(code({"--history", history, "--no-history"}, "").find("give one of them"),
            std::string::npos);
}

TEST(CliLayers, AFlagWithAWordMayStandInAFile) {
  const CliFolder folder;
  const auto said = [&](const std::string& contents) {
    const std::string file = folder.write("c.toml", contents);
    const CliResult result =
        run_cli(run_call({"-p", "Once upon a time", "-n", "40", "-d", cli_models().draft, "--seed",
                          "7", "--config", file}));
    EXPECT_EQ(result.exit_code, 0) << result.err;
    return result.out;
  };
  EXPECT_NE(said("color = \"always\"\n").find("\033[3"), std::string::npos);
  EXPECT_EQ(said("[run]\ncolor = \"never\"\n").find("\033[3"), std::string::npos);
  EXPECT_EQ(said("json = true\n").rfind('{', 0), 0U);
}

TEST(CliLayers, StopStringsInAFileKeepTheirBytes) {
  const CliFolder folder;
  const std::string file = folder.write("s.toml", "stop = [\"# no, [comment]\", \"\\n\\n\"]\n");
  const CliResult result = run_cli(run_call({"-p", "hi", "-n", "2", "--config", file}));
  EXPECT_EQ(result.exit_code, 0) << result.err;
}

TEST(CliLayers, MistakesInTheEnvironmentAndInFilesAreNamedWithTheirPlace) {
  const CliFolder folder;
  const auto refused = [&](const std::string& contents, const std::string& message,
                           const std::string& hint = "") {
    const std::string file = folder.write("bad.toml", contents);
    expect_message(run_cli(run_call({"-p", "hi", "--config", file})), 2,
                   "config file '" + file + "', " + message, hint);
  };
  refused("ctx = 512\n\ntempp = 1\n", "line 3: unknown option 'tempp'", "did you mean 'temp'?");
  refused("[rnu]\ntemp = 1\n", "line 2: [rnu] is no command", "tables are run, chat, compare, ");
  refused("[inspect]\ntemp = 1\n", "line 2: unknown option 'temp'");
  refused("ctx 512\n", "line 1: Error while parsing key-value pair: expected '='");
  refused("temp = [1, 2]\n", "line 1: 'temp' takes one value");
  refused("json = 5\n", "line 1: 'json' is 5, but must be true or false");
  refused("ctx = 512\ncolor = true\n",
          "line 2: 'color' is true, but must be never, auto or always");
  refused("verbose = []\n", "line 1: 'verbose' takes one value");
  refused("verbose = 2\n", "line 1: 'verbose' is 2, but must be true or false");
  const std::string range = folder.write("range.toml", "width = 1000\n");
  CliCall too_wide = run_call({"-p", "hi", "--config", range});
  too_wide.environment.erase("OUTRIDER_WIDTH");  // it would have the last word
  expect_message(run_cli(too_wide), 2, "--width is '1000'");
  const std::string missing = folder.path("what was not there --at all.toml");
  expect_message(run_cli(run_call({"-p", "hi", "--config", missing})), 2,
                 "cannot read the config file " + missing);
  CliCall call = run_call({"-p", "hi"});
  call.environment["OUTRIDER_THREADS"] = "many";
  expect_message(run_cli(call), 2,
                 "--threads (from OUTRIDER_THREADS) is 'many', but must be a whole");
  // A prompt on the command line replaces another kind of prompt from the environment.
  const std::string prompt = folder.write("prompt.txt", "hello");
  CliCall other = run_call({"-f", prompt, "-n", "1"});
  other.environment["OUTRIDER_PROMPT"] = "hi";
  EXPECT_EQ(run_cli(other).exit_code, 0);
  // A value may look like an option without one.
  EXPECT_EQ(run_cli(run_call({"-p", "--foo=", "-n", "1"})).exit_code, 0);
  // Of another command: not in the way.
  call.environment = {{"OUTRIDER_LIMIT", "many"}};
  EXPECT_EQ(run_cli(run_call({"-p", "hi", "-n", "1"})).exit_code, 0);
}

}  // namespace
}  // namespace outrider::testing
