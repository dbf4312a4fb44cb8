// -hf and -hfd: what users meet with a hub on loopback, with one that breaks, and with none.
#include <signal.h>

#include <filesystem>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "testing/llama_hub.h"
#include "tests/cli_process.h"

namespace outrider::testing {
namespace {

class CliHub : public ::testing::Test {
 protected:
  CliHub() {
    hub_.put("u/target", "target-Q8_0.gguf", {.bytes = read_file(cli_models().target)});
    hub_.put("u/draft", "draft-Q8_0.gguf", {.bytes = read_file(cli_models().draft)});
  }

  CliCall call(const std::vector<std::string>& arguments) const {
    CliCall call = folder_.call(arguments);
    call.environment["HF_ENDPOINT"] = hub_.endpoint();
    call.environment["LLAMA_CACHE"] = folder_.path("hub");
    return call;
  }
  static CliResult run(const CliCall& call) { return run_cli(call); }

  // Half of it comes, the rest not before let_go().
  void put_slow(const std::string& repo = "u/slow") {
    HubFile file{.bytes = read_file(cli_models().target)};
    file.breaks_after = static_cast<std::int64_t>(file.bytes.size() / 2);
    file.stalls = true;
    hub_.put(repo, "slow.gguf", file);
  }

  CliFolder folder_;
  LlamaHub hub_;
};

TEST_F(CliHub, ATargetAndADraftFromTheHubGiveTheTextOfTheirFiles) {
  const std::vector<std::string> rest = {"-p", "hi", "-n",     "12",     "-c", "1024",
                                         "-t", "1",  "--json", "--seed", "5"};
  std::vector<std::string> from_hub = {"run", "-hf", "u/target:Q8_0", "-hfd", "u/draft"};
  std::vector<std::string> from_files = {"run", "-m", cli_models().target, "-d",
                                         cli_models().draft};
  from_hub.insert(from_hub.end(), rest.begin(), rest.end());
  from_files.insert(from_files.end(), rest.begin(), rest.end());
  const CliResult hub = run(call(from_hub));
  ASSERT_EQ(hub.exit_code, 0) << hub.err;
  const CliResult files = run(call(from_files));
  ASSERT_EQ(files.exit_code, 0) << files.err;
  EXPECT_EQ(hub.object()["tokens"], files.object()["tokens"]);
  const std::int64_t sent = hub_.bytes_sent();
  EXPECT_EQ(run(call(from_hub)).exit_code, 0);
  EXPECT_EQ(hub_.bytes_sent(), sent) << "it was in the cache";
}

TEST_F(CliHub, InspectTakesItToo) {
  const CliResult result = run(call({"inspect", "--hf-repo=u/target"}));
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_NE(result.out.find("target-Q8_0.gguf"), std::string::npos) << result.out;
}

TEST_F(CliHub, OnATerminalThereIsAProgressBar) {
  CliCall terminal = call({"inspect", "-hf", "u/target"});
  terminal.terminal = true;
  const CliResult result = run(terminal);
  EXPECT_EQ(result.exit_code, 0) << result.out;
  EXPECT_EQ(run(call({"inspect", "-hf", "u/draft"})).err, "");
}

TEST_F(CliHub, WithoutANetworkItSaysSoAndWhatToDo) {
  CliCall nobody = call({"run", "-hf", "u/target", "-p", "hi"});
  nobody.environment["HF_ENDPOINT"] = "http://127.0.0.1:1";
  const CliResult result = run(nobody);
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_EQ(result.err.rfind("outrider: error: cannot reach 127.0.0.1 (", 0), 0U) << result.err;
  EXPECT_NE(result.err.find("give it with -m FILE"), std::string::npos);
}

TEST_F(CliHub, WrongNamesAndUnknownModelsAreRefused) {
  const CliResult unknown = run(call({"run", "-hf", "u/nothing", "-p", "hi"}));
  EXPECT_EQ(unknown.exit_code, 1);
  EXPECT_NE(unknown.err.find("there is no model 'u/nothing'"), std::string::npos) << unknown.err;
  const CliResult wrong = run(call({"run", "-hf", "nothing", "-p", "hi"}));
  EXPECT_EQ(wrong.exit_code, 2);
  EXPECT_EQ(wrong.err.rfind("outrider: error: --hf-repo: 'nothing' names no model", 0), 0U)
      << wrong.err;
  const CliResult both = run(call({"run", "-hf", "u/target", "-m", "x.gguf", "-p", "hi"}));
  EXPECT_EQ(both.exit_code, 2);
  EXPECT_NE(both.err.find("--model and --hf-repo are both given"), std::string::npos) << both.err;
  const CliResult none = run(call({"run", "-p", "hi"}));
  EXPECT_NE(none.err.find("-hf ggml-org/"), std::string::npos) << none.err;
  const CliResult value = run(call({"run", "-p", "-hf", "-m", cli_models().target, "-n", "1"}));
  EXPECT_EQ(value.exit_code, 0) << "a prompt that looks like the option: " << value.err;
}

TEST_F(CliHub, WhatIsTypedReplacesTheOtherKindOfModelInTheEnvironmentAndInAFile) {
  const std::string file = folder_.write("o.toml", "model = \"gone.gguf\"\ndraft-model = \"x\"\n");
  const std::vector<std::string> typed = {"inspect", "-hf", "u/target"};
  CliCall environment = call(typed);
  environment.environment["OUTRIDER_MODEL"] = "gone.gguf";
  CliCall config = call(typed);
  config.arguments.insert(config.arguments.end(), {"--config", file, "-d", ""});
  CliCall other = call({"inspect", cli_models().target});
  other.environment["OUTRIDER_HF_REPO"] = "u/nothing";
  for (const CliCall& replaced : {environment, config, other}) {
    const CliResult result = run(replaced);
    EXPECT_EQ(result.exit_code, 0) << result.err;
  }
  CliCall nearer = call({"inspect", "--config", file, "-d", ""});
  nearer.environment["OUTRIDER_HF_REPO"] = "u/target";
  EXPECT_EQ(run(nearer).exit_code, 0) << "the environment wins over the file";
}

TEST_F(CliHub, WhatIsWrongWithOtherFilesIsToldBeforeAModelIsDownloaded) {
  const std::string gone = folder_.path("gone");
  const std::string prompts = folder_.write("p.jsonl", "{\"prompt\": \"Once\"}\n");
  const std::string wrong = folder_.write("w.jsonl", "{}\n");
  const std::string nowhere = folder_.path("none/file");
  for (const std::vector<std::string>& more :
       std::vector<std::vector<std::string>>{{"run", "-f", gone},
                                             {"run", "-p", "hi", "--grammar", gone},
                                             {"run", "-p", "hi", "--result", nowhere},
                                             {"run", "-p", "hi", "--result", ""},
                                             {"chat", "--json-schema", gone},
                                             {"serve", "--grammar", gone, "--port", "0"},
                                             {"compare", "--prompts", gone},
                                             {"compare", "--prompts", wrong},
                                             {"bench", "--prompts", gone},
                                             {"bench", "--prompts", prompts, "--report", nowhere},
                                             {"calibrate", "--plot", nowhere},
                                             {"make-draft", "-o", nowhere}}) {
    std::vector<std::string> arguments = more;
    arguments.insert(arguments.end(), {"-hf", "u/target"});
    const CliResult result = run(call(arguments));
    EXPECT_EQ(result.exit_code, 1) << more[0] << ": " << result.err;
    EXPECT_EQ(hub_.bytes_sent(), 0) << more[0] << " " << more[1] << ": " << result.err;
  }
  // What the hub's file is compared with is known only behind that.
  const CliResult itself = run(call({"run", "-hf", "u/target", "-p", "hi", "-n", "1"}));
  ASSERT_EQ(itself.exit_code, 0) << itself.err;
  for (const std::filesystem::directory_entry& entry :
       std::filesystem::recursive_directory_iterator(folder_.path("hub"))) {
    if (entry.path().extension() != ".gguf") continue;
    const std::string file = entry.path().string();
    const CliResult refused =
        run(call({"run", "-hf", "u/target", "-p", "hi", "-n", "1", "--result", file}));
    EXPECT_EQ(refused.exit_code, 1);
    EXPECT_NE(refused.err.find("itself, which this command reads"), std::string::npos)
        << refused.err;
  }
}

TEST_F(CliHub, ACommandsTableWithAHubModelWinsOverAFileAtTheTop) {
  const std::string file =
      folder_.write("c.toml", "model = \"gone\"\n[inspect]\nhf-repo = \"u/target\"\n");
  const CliResult result = run(call({"inspect", "--config", file}));
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_NE(result.out.find("target-Q8_0.gguf"), std::string::npos) << result.out;
}

TEST_F(CliHub, ASignalEndsAServersDownloadWithZeroAsItEndsAServer) {
  for (const int number : {SIGTERM, SIGINT, SIGHUP}) {
    const std::string repo = "u/slow" + std::to_string(number);  // no part of it is there
    put_slow(repo);
    CliCall slow = call({"serve", "-hf", repo, "--port", "0"});
    slow.terminal = true;
    bool is_sent = false;
    slow.on_output = [&](pid_t child, const std::string& out, const std::string&) {
      if (!is_sent && out.find("downloading slow.gguf [##") != std::string::npos) {
        is_sent = true;
        kill(child, number);
      }
      return true;
    };
    const CliResult result = run(slow);
    EXPECT_TRUE(is_sent) << result.out;
    EXPECT_EQ(result.exit_code, 0) << number << ": " << result.out;
    EXPECT_NE(result.out.find("goes on from there"), std::string::npos) << result.out;
    EXPECT_EQ(result.out.find("error"), std::string::npos) << result.out;
  }
}

TEST_F(CliHub, SighupThatMeansTheAccessLogEndsNoDownload) {
  put_slow();
  CliCall slow =
      call({"serve", "-hf", "u/slow", "--port", "0", "--access-log", folder_.path("access.log")});
  slow.terminal = true;
  bool is_hung_up = false;
  bool is_ended = false;
  slow.on_output = [&](pid_t child, const std::string& out, const std::string&) {
    if (!is_hung_up && out.find("downloading slow.gguf [##") != std::string::npos) {
      is_hung_up = true;
      kill(child, SIGHUP);
      hub_.let_go();
    }
    if (!is_ended && out.find("outrider: ready") != std::string::npos) {
      is_ended = true;
      kill(child, SIGTERM);
    }
    return true;
  };
  const CliResult result = run(slow);
  EXPECT_TRUE(is_hung_up);
  EXPECT_TRUE(is_ended) << result.out;
  EXPECT_EQ(result.exit_code, 0) << result.out;
}

TEST_F(CliHub, CtrlCEndsADownloadAndKeepsThePart) {
  put_slow();
  CliCall slow = call({"run", "-hf", "u/slow", "-p", "hi"});
  slow.terminal = true;
  bool is_sent = false;
  slow.on_output = [&](pid_t child, const std::string& out, const std::string&) {
    if (!is_sent && out.find("downloading slow.gguf [##") != std::string::npos) {
      is_sent = true;
      kill(child, SIGINT);
    }
    return true;
  };
  const CliResult result = run(slow);
  EXPECT_TRUE(is_sent);
  EXPECT_EQ(result.exit_code, 130) << result.out;
  EXPECT_NE(result.out.find("goes on from there"), std::string::npos) << result.out;
  int parts = 0;
  for (const std::filesystem::directory_entry& entry :
       std::filesystem::recursive_directory_iterator(folder_.path("hub"))) {
    parts += entry.path().extension() == ".downloadInProgress" ? 1 : 0;
  }
  EXPECT_EQ(parts, 1);
}

}  // namespace
}  // namespace outrider::testing
