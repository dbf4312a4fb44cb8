// The command line itself: wrong usage, bad input. Environment and config files:
// cli_layers_test.cc.
#include <algorithm>
#include <regex>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "testing/gguf_damage.h"
#include "tests/build_paths.h"
#include "tests/cli_process.h"

namespace outrider::testing {
namespace {

CliResult outrider(std::vector<std::string> arguments) {
  return run_cli(cli_models().folder.call(std::move(arguments)));
}

// `outrider run` on the tiny target with -n 4, and what else is given.
CliCall run_call(const std::vector<std::string>& more) {
  std::vector<std::string> arguments = {"run", "-m", cli_models().target, "-c", "512"};
  arguments.insert(arguments.end(), more.begin(), more.end());
  return cli_models().folder.call(arguments);
}

TEST(CliUsage, HelpAndVersionGoToStdoutAndAreNoFailure) {
  const CliResult help = outrider({"--help"});
  EXPECT_EQ(help.exit_code, 0);
  EXPECT_EQ(help.err, "");
  for (const char* word : {"run", "chat", "compare", "inspect", "suffix", "bench", "calibrate",
                           "make-draft", "Exit codes: 0 done, 1 failed", "--version"}) {
    EXPECT_NE(help.out.find(word), std::string::npos) << word;
  }
  const CliResult version = outrider({"--version"});
  EXPECT_EQ(version.exit_code, 0);
  EXPECT_EQ(version.out.rfind("outrider ", 0), 0U) << version.out;
  EXPECT_NE(version.out.find("llama.cpp "), std::string::npos) << version.out;
  EXPECT_NE(version.out.find("backends="), std::string::npos) << version.out;
}

TEST(CliUsage, TheVersionNamesTheCommitAsSystemStatusDoes) {
  const CliResult version = outrider({"--version"});
  std::smatch named;
  ASSERT_TRUE(std::regex_search(
      version.out, named,
      std::regex(R"(^outrider \d+\.\d+\.\d+( \(commit ([0-9a-f]{12,40}(-modified)?)\))?\n)")))
      << version.out;
  // Not what git says now: what the build has found.
  const std::string made = read_file(commit_file());
  EXPECT_NE(made.find("{ return \"" + named.str(2) + "\"; }"), std::string::npos)
      << version.out << made;
  CliCall call = cli_models().folder.call({"rpc"});
  call.input = R"({"jsonrpc":"2.0","id":1,"method":"system.status"})"
               "\n";
  const CliResult answer = run_cli(call);
  const std::string status =
      named[2].matched ? "\"commit\":\"" + named.str(2) + "\"" : "\"commit\":null";
  EXPECT_NE(answer.out.find(status), std::string::npos) << answer.out << answer.err;
}

TEST(CliUsage, WithoutACommandItSaysWhichThereAre) {
  expect_message(outrider({}), 2, "no command was given; commands are run, chat, compare, ");
  expect_message(outrider({"rnu"}), 2, "unknown command 'rnu'", "did you mean run?");
  expect_message(outrider({"--json", "run"}), 2, "--json stands before the command",
                 "options go behind it: outrider run --json");
  expect_message(outrider({"run", "--config", "a", "--config", "b"}), 2,
                 "--config is given more than once");
  expect_message(outrider({"--bogus"}), 2, "unknown option --bogus");
  expect_message(outrider({"rnu", "--help"}), 2, "unknown command 'rnu'", "did you mean run?");
  expect_message(outrider({"--help", "completions"}), 2, "unknown command 'completions'",
                 "did you mean completion?");
  expect_message(outrider({"run", "compare"}), 2, "two commands at once: run and compare");
}

TEST(CliUsage, AnUnknownOptionIsNamedWithTheNearestOne) {
  expect_message(run_cli(run_call({"-p", "hi", "--widht", "3"})), 2, "unknown option --widht",
                 "did you mean --width?");
  expect_message(run_cli(run_call({"-p", "hi", "--max-token=3"})), 2, "unknown option --max-token",
                 "did you mean --max-tokens?");
  expect_message(run_cli(run_call({"-p", "hi", "--qqqqqq"})), 2, "unknown option --qqqqqq",
                 "--help");
}

TEST(CliUsage, ASwitchThatIsNoSwitchNamesWhereItCameFrom) {
  CliCall call = run_call({"-p", "hi"});
  call.environment["OUTRIDER_STATS"] = "maybe";
  expect_message(run_cli(call), 2,
                 "--stats (from OUTRIDER_STATS) is 'maybe', but must be true or false");
}

TEST(CliUsage, MoreThreadsThanProcessorsAreWarnedOf) {
  const std::string more = std::to_string(std::thread::hardware_concurrency() + 1);
  const CliResult result = run_cli(run_call({"-p", "hi", "-n", "1", "-t", more}));
  EXPECT_NE(result.err.find("warning: --threads is " + more + ", but "), std::string::npos)
      << result.err;
  EXPECT_NE(result.err.find(" may be used here"), std::string::npos) << result.err;
}

TEST(CliUsage, LlamaServersNamesAreAnsweredWithOurs) {
  for (const std::string name : {"-np", "--parallel", "-ngl", "-md"}) {
    expect_message(outrider({"serve", "-m", "x.gguf", name, "4"}), 2, "unknown option " + name,
                   "llama-server's " + name + " is ");
  }
  // But not with one that the command lacks.
  const CliResult lacking = run_cli(run_call({"-p", "hi", "-np", "4"}));
  expect_message(lacking, 2, "unknown option -np", "'outrider run --help' lists all options");
  EXPECT_EQ(lacking.err.find("--slots"), std::string::npos) << lacking.err;
  // As a value it is one.
  const CliResult said = run_cli(run_call({"-p", "-np", "-n", "2"}));
  EXPECT_EQ(said.exit_code, 0) << said.err;
}

TEST(CliUsage, ValuesOutOfRangeNameTheOptionTheValueAndTheRange) {
  const auto refused = [](const std::vector<std::string>& more, const std::string& message) {
    std::vector<std::string> arguments = {"-p", "hi"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    expect_message(run_cli(run_call(arguments)), 2, message);
  };
  const std::string width = "', but must be auto, or a whole number from 1 to 64";
  refused({"--width", "0"}, "--width is '0" + width);
  refused({"--width", "1000"}, "--width is '1000" + width);
  refused({"--width", "four"}, "--width is 'four" + width);
  refused({"--ctx", "-1"}, "--ctx is '-1', but must be a whole number from 0 to ");
  refused({"-c", "9x"}, "--ctx is '9x', but must be a whole number from 0 to ");
  refused({"-n", "99999999999"},
          "--max-tokens is '99999999999', but must be a whole number from -1");
  refused({"--temp", "warm"}, "--temp is 'warm', but must be a number such as 0.8");
  refused({"--temp", "-0.5"}, "--temp is ");
  refused({"--temp", "nan"}, "--temp is ");
  refused({"--top-p", "1.5"}, "--top-p is ");
  refused({"--min-p", "2"}, "--min-p is ");
  refused({"--typical", "0"}, "--typical is ");
  refused({"--stop", ""}, "--stop has 0");
  refused({"--stop="}, "--stop has 0");
  refused({"--drafter", "sufix"},
          "--drafter is 'sufix', but 'sufix' is no drafter; give draft-model, ");
  refused({"--drafter", "draft-model"}, "--drafter is 'draft-model', but there is no draft model");
  refused({"--rule", "blok"}, "--rule is 'blok', but must be coupled, rejection or block");
  refused({"--rule", "block", "--branches", "2"}, "--branches is 2, but must be 1");
  refused({"--rule", "rejection", "--exact", "on"},
          "--rule is rejection, which keeps the distribution, not the text, but exact is on; take "
          "coupled, or leave exact out");
  refused({"--branches", "0"}, "--branches is '0'");
  refused({"--split-p", "1.5"}, "--split-p is 1.5");
  refused({"--draft-p-min", "-0.1"}, "--draft-p-min is -0.1");
  refused({"--draft-p-ratio", "-1"}, "--draft-p-ratio is -1");
  refused({"--exact", "yes"}, "--exact is 'yes', but must be auto, on or off");
  refused({"--cache-type-k", "q9"}, "--cache-type-k is 'q9', but must be f32, f16");
  refused({"--color=purple"}, "--color is 'purple', but must be never, auto or always");
  refused({"--stats=maybe"}, "--stats");
  refused({"--ctx"}, "--ctx needs a value");
  refused({"--ignore-eos=--maybe"}, "--ignore-eos is '--maybe', but must be true or false");
  expect_message(outrider({"compare", "-m", "x", "--prompts", "y", "-n", "0"}), 2,
                 "--max-tokens is 0");
}

TEST(CliUsage, ExactlyOnePromptAndATargetAreNeeded) {
  const CliModels& models = cli_models();
  expect_message(run_cli(run_call({})), 2, "a prompt is missing", "-p TEXT, -f FILE and -");
  expect_message(run_cli(run_call({"-p", "a", "-f", "b"})), 2, "there is more than one prompt");
  expect_message(run_cli(run_call({"-p", "a", "-"})), 2, "there is more than one prompt");
  expect_message(run_cli(run_call({"hello"})), 2, "unexpected argument 'hello'", "-p 'TEXT'");
  expect_message(outrider({"run", "-p", "hi"}), 2, "--model is missing", "-m FILE");
  expect_message(outrider({"compare", "-m", models.target}), 2, "--prompts is missing");
  expect_message(outrider({"inspect"}), 2, "a model is missing");
  expect_message(outrider({"compare", "-m", models.target, "--prompts", "x", "--width", "1"}), 2,
                 "--width is '1'");
}

TEST(CliBadInput, FilesThatAreNoModelsEndWithOneAndTheirName) {
  const CliModels& models = cli_models();
  const std::string missing = models.folder.path("missing.gguf");
  expect_message(outrider({"run", "-m", missing, "-p", "hi"}), 1, "there is no file '" + missing);
  expect_message(outrider({"inspect", missing}), 1, "there is no file '" + missing);
  const CliFolder folder;
  const Result<std::vector<BadModelFile>> bad =
      write_bad_model_files(models.target, folder.path(""));
  ASSERT_TRUE(bad.ok()) << bad.status().message();
  ASSERT_GE(bad->size(), 8U);
  const Result<std::vector<BadModelFile>> worse =
      write_models_that_abort(models.target, folder.path(""));
  ASSERT_TRUE(worse.ok()) << worse.status().message();
  std::vector<BadModelFile> all = *bad;
  all.insert(all.end(), worse->begin(), worse->end());
  for (const BadModelFile& file : all) {
    SCOPED_TRACE(file.what);
    for (const CliResult& result :
         {outrider({"run", "-m", file.path, "-p", "hi"}),
          outrider({"run", "-m", models.target, "-d", file.path, "-p", "hi"}),
          outrider({"inspect", file.path})}) {
      EXPECT_EQ(result.exit_code, 1) << result.err;
      EXPECT_EQ(result.out, "");
      EXPECT_EQ(result.err.rfind("outrider: error: ", 0), 0U) << result.err;
      EXPECT_NE(result.err.find(file.path), std::string::npos) << result.err;
      EXPECT_EQ(std::count(result.err.begin(), result.err.end(), '\n'), 1) << result.err;
    }
  }
}

TEST(CliBadInput, ADraftWhoseVocabularySharesTooLittleIsRefusedWithTheShare) {
  const CliModels& models = cli_models();
  const std::vector<std::string> pair = {"run", "-m", models.wordy, "-d", models.draft, "-p", "hi"};
  const CliResult result = run_cli(models.folder.call(pair));
  expect_message(result, 1,
                 "the draft model '" + models.draft + "' cannot draft for '" + models.wordy);
  EXPECT_NE(result.err.find("of a sample text; at least 50 % of the sample must be shared"),
            std::string::npos)
      << result.err;
  // Not needed, so not in the way.
  std::vector<std::string> without = pair;
  without.insert(without.end(), {"--drafter", "none", "-n", "2"});
  EXPECT_EQ(run_cli(models.folder.call(without)).exit_code, 0);
}

TEST(CliRun, ADraftWithAnotherVocabularyGivesThePlainTextAndSaysWhatIsShared) {
  const CliModels& models = cli_models();
  const CliResult plain = run_cli(run_call({"-p", "hi", "-n", "24", "--temp", "1", "--seed", "5"}));
  const CliResult drafted =
      run_cli(run_call({"-d", models.other, "-p", "hi", "-n", "24", "--temp", "1", "--seed", "5"}));
  EXPECT_EQ(drafted.exit_code, 0) << drafted.err;
  EXPECT_EQ(drafted.out, plain.out);
  EXPECT_NE(drafted.err.find("its vocabulary is not the target's"), std::string::npos)
      << drafted.err;
}

TEST(CliBadInput, PromptsThatCannotBeReadSayWhy) {
  const CliFolder folder;
  expect_message(run_cli(run_call({"-p", "ab\xFFz"})), 1,
                 "the prompt is not valid UTF-8: byte 0xFF at offset 2");
  const std::string cut = folder.write("cut.txt", "caf\xC3");
  expect_message(run_cli(run_call({"-f", cut})), 1,
                 "the prompt in '" + cut + "' is not valid UTF-8");
  CliCall call = run_call({"-"});
  call.input = "\xC0\x80";
  expect_message(run_cli(call), 1,
                 "the prompt on standard input is not valid UTF-8: byte 0xC0 at offset 0");
  expect_message(run_cli(run_call({"-f", folder.path("no.txt")})), 1,
                 "'" + folder.path("no.txt") + "' does not exist");
  expect_message(run_cli(run_call({"-f", folder.path("")})), 1,
                 "'" + folder.path("") + "' is a folder");
}

TEST(CliBadInput, AResultTakesThePlaceOfNothingThatIsRead) {
  const CliFolder folder;
  const std::string file = folder.write("file", "{\"type\": \"string\"}");
  for (const char* const option : {"-f", "--json-schema"}) {
    std::vector<std::string> arguments = {option, file, "-n", "1", "--result", file};
    if (std::string(option) != "-f") arguments.insert(arguments.end(), {"-p", "words"});
    const CliResult result = run_cli(run_call(arguments));
    EXPECT_EQ(result.exit_code, 1) << result.err;
    EXPECT_NE(result.err.find("--result is '" + file + "' itself"), std::string::npos)
        << result.err;
    EXPECT_EQ(read_file(file), "{\"type\": \"string\"}");
  }
}

TEST(CliBadInput, APromptLongerThanTheContextNamesBothNumbers) {
  const CliResult result = run_cli(run_call({"-c", "64", "-p", std::string(500, 'x')}));
  expect_message(result, 1, "the prompt has ");
  EXPECT_NE(result.err.find("context size of 64"), std::string::npos) << result.err;
}

}  // namespace
}  // namespace outrider::testing
