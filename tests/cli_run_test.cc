// outrider run: what it prints where, and how it ends.
#include <signal.h>

#include <sstream>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "testing/tiny_gguf.h"
#include "tests/cli_process.h"

namespace outrider::testing {
namespace {

using json::Json;

constexpr const char* kPrompt = "Once upon a time";

// `outrider run` on the tiny pair.
CliCall run_call(const std::vector<std::string>& more, bool with_draft = true) {
  const CliModels& models = cli_models();
  std::vector<std::string> arguments = {"run", "-m", models.target, "-c", "1024", "--seed", "7"};
  if (with_draft) arguments.insert(arguments.end(), {"-d", models.draft});
  arguments.insert(arguments.end(), more.begin(), more.end());
  return models.folder.call(arguments);
}

CliResult run(const std::vector<std::string>& more, bool with_draft = true) {
  return run_cli(run_call(more, with_draft));
}

void expect_kinds(const Json& object,
                  const std::vector<std::pair<std::string, std::string>>& fields) {
  for (const auto& [name, kind] : fields) {
    ASSERT_TRUE(object.contains(name)) << name << " in " << json::encode(object);
    EXPECT_EQ(json::kind(object[name]), kind) << name << " in " << json::encode(object);
  }
}

TEST(CliRun, JsonIsTheContractsObjectAndNothingElse) {
  const CliResult result = run({"-p", kPrompt, "-n", "24", "--json", "--stats"});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  const Json object = result.object();
  expect_kinds(object, {{"text", "a string"},
                        {"tokens", "an array"},
                        {"seed", "a number"},
                        {"finish_reason", "a string"},
                        {"stop", "null"},
                        {"logprobs", "null"},
                        {"usage", "an object"},
                        {"timings", "an object"},
                        {"speculation", "an object"}});
  expect_kinds(object["usage"], {{"prompt_tokens", "a number"},
                                 {"cached_tokens", "a number"},
                                 {"completion_tokens", "a number"}});
  expect_kinds(object["timings"], {{"prompt_ms", "a number"},
                                   {"prompt_per_second", "a number"},
                                   {"predicted_ms", "a number"},
                                   {"predicted_per_second", "a number"},
                                   {"first_token_ms", "a number"}});
  const Json& speculation = object["speculation"];
  expect_kinds(speculation, {{"enabled", "true or false"},
                             {"rule", "a string"},
                             {"exactness", "a string"},
                             {"reason", "null"},
                             {"steps", "a number"},
                             {"drafted", "a number"},
                             {"accepted", "a number"},
                             {"emitted", "a number"},
                             {"tokens_per_step", "a number"},
                             {"acceptance_rate", "a number"},
                             {"draft_ms", "a number"},
                             {"verify_ms", "a number"},
                             {"sample_ms", "a number"},
                             {"plan_ms", "a number"},
                             {"plain_ms", "null"},  // no pass of one token was seen
                             {"drafters", "an object"}});
  ASSERT_TRUE(speculation["drafters"].contains("draft-model"));
  expect_kinds(speculation["drafters"]["draft-model"], {{"calls", "a number"},
                                                        {"drafts", "a number"},
                                                        {"accepted_drafts", "a number"},
                                                        {"drafted", "a number"},
                                                        {"accepted", "a number"},
                                                        {"acceptance_rate", "a number"},
                                                        {"foregone", "a number"},
                                                        {"draft_ms", "a number"},
                                                        {"accept_ms", "a number"}});
  EXPECT_EQ(object["seed"], 7);
  EXPECT_EQ(object["finish_reason"], "length");
  EXPECT_EQ(object["tokens"].size(), 24U);
  EXPECT_EQ(object["usage"]["completion_tokens"], 24);
  EXPECT_EQ(speculation["enabled"], true);
  EXPECT_EQ(speculation["emitted"], 24);
  EXPECT_EQ(speculation["accepted"].get<int>() + speculation["steps"].get<int>(), 24);
  EXPECT_NE(result.err.find("of the drafted tokens"), std::string::npos) << "--stats is on stderr";
}

TEST(CliRun, TextStreamsToStdoutWithoutThePromptAndIsTheSameInEveryWay) {
  const CliFolder folder;
  const std::string file = folder.path("result.json");
  const std::vector<std::string> wish = {"-p", kPrompt, "-n", "40"};
  CliCall call = run_call({"-p", kPrompt, "-n", "40", "--result", file});
  const CliResult streamed = run_cli(call);
  EXPECT_EQ(streamed.exit_code, 0) << streamed.err;
  EXPECT_EQ(streamed.err, "");
  const json::Parsed object = json::parse(read_file(file));
  ASSERT_TRUE(object.ok()) << object.error;
  EXPECT_EQ(json::encode(Json(streamed.out)), json::encode((*object.value)["text"]));
  EXPECT_FALSE(streamed.out.empty());
  // The seed makes the text, not the drafter or the width.
  EXPECT_EQ(run(wish, /*with_draft=*/false).out, streamed.out);
  EXPECT_EQ(run({"-p", kPrompt, "-n", "40", "--drafter", "none"}).out, streamed.out);
  EXPECT_EQ(run({"-p", kPrompt, "-n", "40", "--width", "8", "--exact", "on"}).out, streamed.out);
  EXPECT_NE(run({"-p", kPrompt, "-n", "40", "--seed", "8"}).out, streamed.out);
}

TEST(CliRun, ChatWithoutATemplateIsInChatMlWithAWarning) {
  const CliFolder folder;
  TinyModelOptions options;
  options.vocabulary.chat_template = false;
  ASSERT_TRUE(write_tiny_gguf(folder.path("plain.gguf"), options).ok());
  const CliResult result = run_cli(
      folder.call({"run", "-m", folder.path("plain.gguf"), "-p", "hi", "--chat", "-n", "8"}));
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_NE(result.err.find("carries no chat template: conversations are written in ChatML"),
            std::string::npos)
      << result.err;
}

TEST(CliRun, AStopStringEndsTheTextBeforeIt) {
  const Json whole = run({"-p", kPrompt, "-n", "60", "--json", "--temp", "0"}).object();
  const std::string text = whole["text"];
  ASSERT_GT(text.size(), 20U);
  std::size_t from = 0;  // three letters in a row, whole characters
  const auto ascii = [&text](std::size_t i) { return text[i] > ' ' && text[i] < 127; };
  while (from < 8 || !ascii(from) || !ascii(from + 1) || !ascii(from + 2)) ++from;
  const std::string stop = text.substr(from, 3);
  const std::size_t at = text.find(stop);
  const Json cut = run({"-p", kPrompt, "-n", "60", "--json", "--temp", "0", "--stop", "never said",
                        "--stop", stop})
                       .object();
  EXPECT_EQ(cut["text"], text.substr(0, at));
  EXPECT_EQ(cut["stop"], stop);
  EXPECT_EQ(cut["finish_reason"], "stop");
}

TEST(CliRun, WhySpeculationIsOffIsAlwaysSaid) {
  const auto reason = [](const std::vector<std::string>& more, bool with_draft) {
    std::vector<std::string> arguments = {"-p", kPrompt, "-n", "3", "--json"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    const Json speculation = run(arguments, with_draft).object()["speculation"];
    EXPECT_EQ(speculation["enabled"], false);
    EXPECT_EQ(speculation["drafted"], 0);
    EXPECT_TRUE(speculation["acceptance_rate"].is_null());
    return speculation["reason"].is_string() ? speculation["reason"].get<std::string>() : "";
  };
  EXPECT_EQ(reason({"--drafter", "none"}, true), "the request asked for plain decoding");
  EXPECT_EQ(reason({"--width", "1"}, true), "width=1 is plain decoding");
  const CliResult table = run({"-p", kPrompt, "-n", "3", "--stats", "--drafter", "none"}, false);
  EXPECT_NE(table.err.find("speculation   off: the request asked"), std::string::npos) << table.err;
}

TEST(CliRun, AllThatIsGivenGuesses) {
  const auto names = [](bool with_draft) {
    std::vector<std::string> used;
    const Json result = run({"-p", kPrompt, "-n", "30", "--json"}, with_draft).object();
    EXPECT_EQ(result["speculation"]["enabled"], true);
    for (const auto& drafter : result["speculation"]["drafters"].items()) {
      used.push_back(drafter.key());
    }
    return used;
  };
  EXPECT_EQ(names(false), (std::vector<std::string>{"suffix"}));
  EXPECT_EQ(names(true), (std::vector<std::string>{"draft-model", "suffix"}));
}

TEST(CliRun, ANarrowerTargetThanAskedForIsWarnedOf) {
  const CliResult narrow = run({"-p", kPrompt, "-n", "8", "--batch", "2", "--json"});
  EXPECT_NE(narrow.err.find("--batch 2 leaves no room for wider steps"), std::string::npos)
      << narrow.err;
  EXPECT_EQ(narrow.object()["speculation"]["enabled"], true);
  const CliResult none = run({"-p", kPrompt, "-n", "8", "--batch", "1", "--json"});
  EXPECT_NE(none.err.find("outrider: warning: speculation is off: "), std::string::npos)
      << none.err;
  const Json speculation = none.object()["speculation"];
  EXPECT_EQ(speculation["enabled"], false);
  EXPECT_NE(json::encode(speculation["reason"]).find("batch=1 leaves no room"), std::string::npos);
  EXPECT_EQ(run({"-p", kPrompt, "-n", "8", "--batch", "1"}).out,
            run({"-p", kPrompt, "-n", "8"}).out);
}

TEST(CliRun, StatsNameEverythingThatWasMeasured) {
  const CliResult result = run({"-p", kPrompt, "-n", "16", "--stats"});
  for (const char* word :
       {"prompt ", "generated ", "tokens/s", "speculation   draft-model", "steps ", "accepted ",
        "draft ", "verify ", "sample ", "plan ", "exactness ", "seed "}) {
    EXPECT_NE(result.err.find(word), std::string::npos) << word << "\n" << result.err;
  }
}

TEST(CliRun, StatsFitATerminalOfEightyColumns) {
  for (const char* kernels : {"auto", "stock"}) {
    const CliResult result =
        run({"-p", kPrompt, "-n", "16", "--stats", "--rule", "block", "--kernels", kernels});
    const std::size_t begin = result.err.find("prompt    ");
    ASSERT_NE(begin, std::string::npos) << result.err;
    std::istringstream table(result.err.substr(begin));
    for (std::string line; std::getline(table, line);) EXPECT_LE(line.size(), 80U) << line;
  }
}

TEST(CliRun, StatsSayTheSameOfExactnessAsTheResult) {
  const auto exactness = [](const std::string& rule, bool with_draft) {
    const CliResult result =
        run({"-p", kPrompt, "-n", "16", "--json", "--stats", "--rule", rule}, with_draft);
    const Json speculation = result.object()["speculation"];
    const std::string verdict = speculation["exactness"].get<std::string>();
    EXPECT_NE(result.err.find("\nexactness     " + verdict), std::string::npos) << result.err;
    return result.err.substr(result.err.find("\nexactness     ") + 15);
  };
  const std::string drawn = exactness("rejection", true);
  EXPECT_EQ(drawn.rfind("distributional: the rule rejection keeps the distribution, not the\n"
                        "              text of plain decoding\n",
                        0),
            0U)
      << drawn;
  // Without guesses the rule has no part in the text.
  EXPECT_EQ(exactness("rejection", false).find("keeps the distribution"), std::string::npos);
  EXPECT_EQ(exactness("coupled", true).find("keeps the distribution"), std::string::npos);
}

TEST(CliRun, ARandomSeedIsToldAndRepeatsTheText) {
  const Json first = run({"-p", kPrompt, "-n", "20", "--json", "--seed", "-1"}).object();
  const Json second = run({"-p", kPrompt, "-n", "20", "--json", "--seed", "-1"}).object();
  EXPECT_NE(first["seed"], second["seed"]);
  const Json again =
      run({"-p", kPrompt, "-n", "20", "--json", "--seed", json::encode(first["seed"])}).object();
  EXPECT_EQ(again["tokens"], first["tokens"]);
}

TEST(CliRun, TheContextsEdgeEndsTheText) {
  const Json object = run({"-p", kPrompt, "-c", "64", "--json"}).object();
  EXPECT_EQ(object["finish_reason"], "length");
  EXPECT_EQ(
      object["usage"]["prompt_tokens"].get<int>() + object["usage"]["completion_tokens"].get<int>(),
      64);
  EXPECT_EQ(run({"-p", kPrompt, "-n", "0", "--json"}).object()["tokens"], Json::array());
}

TEST(CliRun, AContextBeyondTheTrainingIsWarnedOf) {
  const CliResult result = run({"-p", kPrompt, "-n", "2", "-c", "40000"});
  EXPECT_EQ(result.exit_code, 0);
  EXPECT_EQ(result.err.rfind("outrider: warning: ", 0), 0U) << result.err;
  EXPECT_NE(result.err.find("40000"), std::string::npos) << result.err;
  EXPECT_NE(result.err.find("32768"), std::string::npos) << result.err;
}

// A text that does not end before somebody ends it.
CliCall endless(const std::vector<std::string>& more) {
  std::vector<std::string> arguments = {"-p", kPrompt, "-c", "32768", "-n", "-1"};
  arguments.insert(arguments.end(), more.begin(), more.end());
  return run_call(arguments);
}

TEST(CliSignals, CtrlCOrAClosedTerminalEndsWithWhatThereIs) {
  const CliFolder folder;
  for (const int number : {SIGINT, SIGTERM, SIGHUP}) {
    CliCall call = endless({"--stats", "--result", folder.path("r.json")});
    bool sent = false;
    call.on_output = [&](pid_t child, const std::string& out, const std::string&) {
      if (!sent && out.size() > 30) kill(child, number);
      sent = sent || out.size() > 30;
      return true;
    };
    const CliResult result = run_cli(call);
    EXPECT_EQ(result.exit_code, 128 + number) << result.err;
    EXPECT_NE(result.err.find("finished: cancelled"), std::string::npos) << result.err;
    const json::Parsed object = json::parse(read_file(folder.path("r.json")));
    ASSERT_TRUE(object.ok()) << object.error;
    EXPECT_EQ((*object.value)["finish_reason"], "cancelled");
    EXPECT_EQ((*object.value)["text"], json::parse(json::encode(Json(result.out))).value);
    EXPECT_GT(result.out.size(), 30U);
  }
}

TEST(CliSignals, CtrlCLeavesOneJsonObject) {
  CliCall call = endless({"--json", "-c", "40000"});
  bool sent = false;  // a second one may kill
  call.on_output = [&](pid_t child, const std::string&, const std::string& err) {
    // The warning about the context comes when everything is loaded.
    if (!sent && err.find("warning") != std::string::npos) {
      kill(child, SIGINT);
      sent = true;
    }
    return true;
  };
  const CliResult result = run_cli(call);
  EXPECT_EQ(result.exit_code, 130) << result.err;
  EXPECT_EQ(result.object()["finish_reason"], "cancelled");
}

TEST(CliSignals, CtrlCWhileThePromptIsTypedEndsAtOnce) {
  CliCall call = run_call({"-"});
  call.input = "half a prompt";
  call.interrupt_when_read = true;
  const CliResult result = run_cli(call);
  EXPECT_EQ(result.signal, SIGINT) << "nothing has begun, so there is nothing to end";
  EXPECT_EQ(result.out, "");
}

TEST(CliOutput, AReaderThatGoesAwayEndsItQuietly) {
  CliCall call = endless({});
  call.on_output = [](pid_t, const std::string& out, const std::string&) {
    return out.size() < 20;
  };
  const CliResult result = run_cli(call);
  EXPECT_EQ(result.signal, 0);
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_EQ(result.err, "");
}

TEST(CliOutput, AFullDiskIsAFailureWithItsReason) {
  for (const std::string& json : {std::string("--json"), std::string("--stats")}) {
    CliCall call = run_call({"-p", kPrompt, "-n", "4", json});
    call.stdout_to = "/dev/full";
    const CliResult result = run_cli(call);
    EXPECT_EQ(result.exit_code, 1) << result.err;
    EXPECT_NE(result.err.find("outrider: error: cannot write to standard output: No space left"),
              std::string::npos)
        << result.err;
  }
  const CliResult result = run({"-p", kPrompt, "-n", "4", "--result", "/dev/full"});
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_NE(result.err.find("--result: cannot write '/dev/full'"), std::string::npos) << result.err;
}

TEST(CliOutput, ColorMarksTheDraftsTokensOnATerminalOrWhenForced) {
  const std::string green = "\033[32m";
  const auto colored = [&](const std::vector<std::string>& more, bool terminal, bool no_color) {
    std::vector<std::string> arguments = {"-p", kPrompt, "-n", "40"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    CliCall call = run_call(arguments);
    call.terminal = terminal;
    if (no_color) call.environment["NO_COLOR"] = "1";
    const CliResult result = run_cli(call);
    EXPECT_EQ(result.exit_code, 0) << result.out << result.err;
    const bool has = result.out.find(green) != std::string::npos;
    EXPECT_EQ(has, result.out.find("\033[0m") != std::string::npos) << "reset at the end";
    return has;
  };
  EXPECT_TRUE(colored({"--color"}, true, false));
  EXPECT_FALSE(colored({"--color"}, true, true)) << "NO_COLOR wins over auto";
  EXPECT_FALSE(colored({"--color"}, false, false)) << "no terminal";
  EXPECT_TRUE(colored({"--color=always"}, false, true)) << "always wins over both";
  EXPECT_FALSE(colored({}, true, false)) << "never is the default";
  EXPECT_FALSE(colored({"--color", "--drafter", "none"}, true, false)) << "nobody drafted";
}

TEST(CliOutput, TheProgressBarIsOnTerminalsOnlyAndGoneAtTheEnd) {
  CliCall call = run_call({"-p", kPrompt, "-n", "4"});
  call.terminal = true;
  call.environment["NO_COLOR"] = "1";
  const CliResult result = run_cli(call);
  EXPECT_EQ(result.exit_code, 0);
  EXPECT_NE(result.out.find("loading target.gguf ["), std::string::npos) << result.out;
  EXPECT_EQ(result.out.find('\033'), std::string::npos) << "no escape sequences with NO_COLOR";
  // What is drawn last is spaces and a carriage return, then the text.
  const std::size_t bar = result.out.rfind('%');
  ASSERT_NE(bar, std::string::npos);
  EXPECT_EQ(result.out.substr(bar + 1).rfind("\r      ", 0), 0U) << result.out;
  const std::size_t shown = bar - result.out.rfind('\r', bar);
  EXPECT_GE(result.out.find_first_not_of(' ', bar + 2) - (bar + 2), shown + 2) << "a ^C, too";
  EXPECT_EQ(run({"-p", kPrompt, "-n", "4"}).err, "") << "no terminal, no bar";
}

TEST(CliOutput, VerboseShowsLlamaCppsLines) {
  const CliResult quiet = run({"-p", kPrompt, "-n", "1"});
  EXPECT_EQ(quiet.err, "");
  const CliResult verbose = run({"-p", kPrompt, "-n", "1", "-v"});
  EXPECT_EQ(verbose.exit_code, 0);
  EXPECT_NE(verbose.err.find("llama.cpp: "), std::string::npos) << verbose.err;
  EXPECT_NE(run({"-p", kPrompt, "-n", "1", "--log-level", "info"}).err, "");
}

}  // namespace
}  // namespace outrider::testing
