// Trained heads in files of their own, given to the commands as drafts.
#include <gtest/gtest.h>
#include <signal.h>

#include <cstdlib>
#include <string>
#include <vector>

#include "testing/socket_client.h"
#include "testing/tiny_gguf_dflash.h"
#include "testing/tiny_gguf_eagle3.h"
#include "testing/tiny_gguf_lag.h"
#include "tests/cli_process.h"

namespace outrider::testing {
namespace {

using json::Json;

// A target whose texts are words of bytes, and an EAGLE-3 head that equals it, but for some noise.
class CliHeads : public ::testing::Test {
 protected:
  void SetUp() override {
    TinyLagOptions target;
    target.weight_type = WeightType::kQ8_0;
    target.odd_byte_bias = -30.0F;
    ASSERT_TRUE(write_tiny_lag(target_, target).ok());
    TinyEagle3Options head;
    head.noise = 0.02F;
    ASSERT_TRUE(write_tiny_eagle3(head_, target, head).ok());
  }

  CliResult run(const std::vector<std::string>& arguments) const {
    return run_cli(whole_probe(folder_.call(arguments)));
  }

  CliFolder folder_;
  std::string target_ = folder_.path("target.gguf");
  std::string head_ = folder_.path("head.gguf");
};

TEST_F(CliHeads, RunGuessesWithTheHeadAndGivesThePlainText) {
  for (const char* temperature : {"0", "1"}) {
    const std::vector<std::string> call = {
        "run",    "-m",        target_,     "-p",     "Once upon", "-n", "48",     "--seed", "3",
        "--temp", temperature, "--drafter", "eagle3", "--width",   "4",  "--json", "-d",     head_};
    const CliResult guessed = run(call);
    ASSERT_EQ(guessed.exit_code, 0) << guessed.err;
    std::vector<std::string> plain(call.begin(), call.begin() + 11);
    plain.insert(plain.end(), {"--drafter", "none", "--json"});
    const CliResult alone = run(plain);
    ASSERT_EQ(alone.exit_code, 0) << alone.err;
    const Json object = guessed.object();
    EXPECT_EQ(object["text"], alone.object()["text"]);
    const Json& drafter = object["speculation"]["drafters"]["eagle3"];
    EXPECT_GT(drafter["accepted"], 10) << guessed.out;
  }
}

// The same with a head that guesses blocks.
TEST_F(CliHeads, RunAndInspectTakeADflashHead) {
  TinyLagOptions target;
  target.weight_type = WeightType::kQ8_0;
  target.odd_byte_bias = -30.0F;
  target.lags = {3, 4};
  target.reads_current = false;
  ASSERT_TRUE(write_tiny_lag(target_, target).ok());
  TinyDflashOptions head;
  head.noise = 0.02F;
  ASSERT_TRUE(write_tiny_dflash(head_, target, head).ok());
  for (const char* width : {"5", "auto"}) {
    const std::vector<std::string> call = {"run", "-m",     target_, "-p",     "Once upon", "-n",
                                           "48",  "--seed", "3",     "--temp", "1"};
    std::vector<std::string> guessing = call;
    guessing.insert(guessing.end(),
                    {"--drafter", "dflash", "--width", width, "--json", "-d", head_});
    const CliResult guessed = run(guessing);
    ASSERT_EQ(guessed.exit_code, 0) << guessed.err;
    std::vector<std::string> plain = call;
    plain.insert(plain.end(), {"--drafter", "none", "--json"});
    const CliResult alone = run(plain);
    ASSERT_EQ(alone.exit_code, 0) << alone.err;
    EXPECT_EQ(guessed.object()["text"], alone.object()["text"]);
    const Json drafter = guessed.object()["speculation"]["drafters"]["dflash"];
    if (std::string(width) == "5") {
      EXPECT_GT(drafter["accepted"], 10) << guessed.out;
    }
  }
  const CliResult table = run({"inspect", target_, head_});
  EXPECT_NE(table.out.find("DFlash, the drafter dflash"), std::string::npos) << table.out;
  const CliResult alone = run({"run", "-m", head_, "-p", "x"});
  EXPECT_EQ(alone.exit_code, 1);
  EXPECT_NE(alone.err.find("trained head (DFlash)"), std::string::npos) << alone.err;
}

TEST_F(CliHeads, CompareAndBenchTakeIt) {
  const std::string prompts = folder_.write("p.jsonl", "{\"prompt\": \"Once\"}\n");
  const CliResult compared = run({"compare", "-m", target_, "-d", head_, "--prompts", prompts, "-n",
                                  "24", "--temp", "1", "--width", "2,4", "--json"});
  ASSERT_EQ(compared.exit_code, 0) << compared.err;
  EXPECT_EQ(compared.object()["identical"], 1) << compared.out;
  const CliResult measured =
      run({"bench", "-m", target_, "-d", head_, "--prompts", prompts, "-n", "16", "--width", "4",
           "--repeat", "1", "--drafter", "eagle3", "--json"});
  ASSERT_EQ(measured.exit_code, 0) << measured.err;
  EXPECT_NE(measured.out.find("\"eagle3\""), std::string::npos) << measured.out;
  const CliResult oracle = run({"bench", "-m", target_, "-d", head_, "--prompts", prompts, "-n",
                                "16", "--oracle", "--json"});
  EXPECT_EQ(oracle.exit_code, 1);
  EXPECT_NE(oracle.err.find("eagle3, which guesses from the target's hidden states"),
            std::string::npos)
      << oracle.err;
  const CliResult calibrated = run({"calibrate", "-m", target_, "-d", head_});
  EXPECT_EQ(calibrated.exit_code, 1);
  EXPECT_NE(calibrated.err.find("is a trained head (eagle3)"), std::string::npos) << calibrated.err;
  EXPECT_EQ(calibrated.err.find("loading"), std::string::npos) << "before all that takes long";
}

TEST_F(CliHeads, InspectSaysWhatItReadsAndWhyItDoesNotFit) {
  const CliResult inspected = run({"inspect", target_, head_, "--json"});
  ASSERT_EQ(inspected.exit_code, 0) << inspected.err;
  const Json head = inspected.object()["draft"]["head"];
  EXPECT_EQ(head["drafter"], "eagle3");
  EXPECT_EQ(head["layers"], Json({0, 1, 2}));
  const CliResult table = run({"inspect", target_, head_});
  EXPECT_NE(table.out.find("EAGLE-3, the drafter eagle3"), std::string::npos) << table.out;
  const CliResult wrong = run({"inspect", cli_models().target, head_});
  EXPECT_EQ(wrong.exit_code, 1);
  EXPECT_NE(wrong.err.find(head_), std::string::npos) << wrong.err;
}

TEST_F(CliHeads, WhereItIsNamedOtherwiseOrMissingThatIsSaid) {
  const CliResult missing = run({"run", "-m", target_, "-p", "x", "--drafter", "eagle3"});
  EXPECT_EQ(missing.exit_code, 2);
  EXPECT_NE(missing.err.find("no file of that head"), std::string::npos) << missing.err;
  const CliResult other = run({"run", "-m", target_, "-d", head_, "-p", "x", "-n", "4", "--drafter",
                               "draft-model", "--json"});
  ASSERT_EQ(other.exit_code, 0) << other.err;
  EXPECT_NE(other.out.find("is the drafter eagle3, not draft-model"), std::string::npos)
      << other.out;
  const CliResult alone = run({"run", "-m", head_, "-p", "x"});
  EXPECT_EQ(alone.exit_code, 1);
  EXPECT_NE(alone.err.find("trained head (EAGLE-3)"), std::string::npos) << alone.err;
  const CliResult isolated = run({"run", "-m", target_, "-d", head_, "-p", "x", "--isolate"});
  EXPECT_EQ(isolated.exit_code, 1);
  EXPECT_NE(isolated.err.find("process of its own"), std::string::npos) << isolated.err;
}

// Not in silence: whoever names them believes that they are there.
TEST_F(CliHeads, PredictionLayersThatAreNamedMustBeThere) {
  const std::string none = "--drafter is 'mtp', but the target's file has no prediction layers";
  const std::string prompts = folder_.write("p.jsonl", "{\"prompt\": \"Once\"}\n");
  for (const std::vector<std::string>& call :
       {std::vector<std::string>{"run", "-p", "x", "-n", "4"},
        {"chat", "-p", "x"},
        {"bench", "--prompts", prompts, "-n", "4"},
        {"serve", "--port", "0"}}) {
    std::vector<std::string> all = call;
    all.insert(all.end(), {"-m", target_, "--drafter", "mtp"});
    const CliResult missing = run(all);
    EXPECT_EQ(missing.exit_code, 1) << call[0] << ": " << missing.err;
    EXPECT_EQ(missing.out, "") << call[0];
    EXPECT_NE(missing.err.find(none), std::string::npos) << call[0] << ": " << missing.err;
  }
  const CliResult plain =
      run({"run", "-m", target_, "-p", "x", "-n", "4", "--drafter", "mtp", "--width", "1"});
  EXPECT_EQ(plain.exit_code, 0) << plain.err;
  TinyLagOptions with_layer;
  with_layer.architecture = TinyLagArchitecture::kHyV3;
  with_layer.mtp = {TinyHead::kEqual};
  with_layer.weight_type = WeightType::kQ8_0;
  ASSERT_TRUE(write_tiny_lag(target_, with_layer).ok());
  const std::vector<std::string> call = {"run", "-m",      target_, "-p",     "Once", "-n",
                                         "16",  "--seed",  "3",     "--temp", "0",    "--drafter",
                                         "mtp", "--width", "3",     "--json"};
  const CliResult there = run(call);
  ASSERT_EQ(there.exit_code, 0) << there.err;
  EXPECT_GT(there.object()["speculation"]["drafters"]["mtp"]["accepted"], 0) << there.out;
  std::vector<std::string> off = call;
  off.insert(off.end(), {"--mtp", "off"});
  const CliResult switched_off = run(off);
  EXPECT_EQ(switched_off.exit_code, 1);
  EXPECT_NE(switched_off.err.find("switched off (--mtp off)"), std::string::npos)
      << switched_off.err;
}

// A list of several works without them, also where they are in the file and cannot be used.
TEST_F(CliHeads, PredictionLayersAmongOthersMayBeMissing) {
  const auto check = [this](const std::vector<std::string>& more, const std::string& why) {
    std::vector<std::string> call = {"run", "-m", target_,     "-p",         "Once",
                                     "-n",  "8",  "--drafter", "mtp,suffix", "--json"};
    call.insert(call.end(), more.begin(), more.end());
    const CliResult there = run(call);
    ASSERT_EQ(there.exit_code, 0) << there.err;
    const Json speculation = there.object()["speculation"];
    EXPECT_TRUE(speculation["enabled"]) << there.out;
    EXPECT_NE(speculation["reason"].get<std::string>().find(why), std::string::npos) << there.out;
  };
  check({}, "has no prediction layers");
  TinyLagOptions with_layer;
  with_layer.architecture = TinyLagArchitecture::kHyV3;
  with_layer.mtp = {TinyHead::kEqual};
  with_layer.weight_type = WeightType::kQ8_0;
  ASSERT_TRUE(write_tiny_lag(target_, with_layer).ok());
  check({"--isolate"}, "process of its own");
  const CliResult lone =
      run({"run", "-m", target_, "-p", "x", "-n", "4", "--drafter", "mtp", "--isolate"});
  EXPECT_EQ(lone.exit_code, 1);
}

TEST_F(CliHeads, AServersOwnListIsNoErrorOfAClientThatNamedNothing) {
  CliCall call =
      whole_probe(folder_.call({"serve", "-m", target_, "--port", "0", "--drafter", "mtp,suffix"}));
  bool asked = false;
  call.on_output = [&asked](pid_t child, const std::string&, const std::string& err) {
    if (asked || err.find("ready") == std::string::npos) return true;
    asked = true;
    const std::string before = "listening on http://127.0.0.1:";
    const int port = std::atoi(err.c_str() + err.find(before) + before.size());
    Json body = {{"prompt", "Once"}, {"max_tokens", 4}};
    const auto ask = [&] {
      return SocketClient(static_cast<std::uint16_t>(port))
          .ask("POST", "/v1/completions", body.dump());
    };
    const auto plain = ask();
    EXPECT_EQ(plain.status, 200) << plain.body;
    EXPECT_NE(plain.body.find("has no prediction layers"), std::string::npos) << plain.body;
    body["speculative"] = {{"drafters", {"mtp", "suffix"}}};
    EXPECT_EQ(ask().status, 400) << "the client's own word";
    kill(child, SIGTERM);
    return true;
  };
  const CliResult served = run_cli(call);
  EXPECT_TRUE(asked) << served.err;
  EXPECT_EQ(served.exit_code, 0) << served.err;
}

TEST_F(CliHeads, ReplayRefusesItWithTheReason) {
  const CliResult replayed = run({"replay", "--vocab", target_, "--drafter", "suffix,eagle3",
                                  folder_.write("t.txt", "a b a b")});
  EXPECT_EQ(replayed.exit_code, 2);
  EXPECT_NE(replayed.err.find("eagle3 reads the target's hidden states"), std::string::npos)
      << replayed.err;
}

}  // namespace
}  // namespace outrider::testing
