// outrider rpc: what it reads and answers, at once and in any order, and how it ends.
#include <signal.h>

#include <algorithm>
#include <map>
#include <random>
#include <sstream>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "api/json_rpc.h"
#include "testing/chi_square.h"
#include "testing/malformed_request.h"
#include "tests/cli_process.h"

namespace outrider::testing {
namespace {

using json::Json;

CliCall rpc(std::vector<std::string> more, const std::string& input) {
  more.insert(more.begin(), "rpc");
  CliCall call = cli_models().folder.call(std::move(more));
  call.input = input;
  return call;
}

CliCall with_models(std::vector<std::string> more, const std::string& input) {
  const CliModels& models = cli_models();
  more.insert(more.end(), {"-m", models.target, "-d", models.draft, "-c", "2048"});
  return rpc(std::move(more), input);
}

std::string request(const Json& id, const std::string& method, const Json& params) {
  return json::encode({{"jsonrpc", "2.0"}, {"id", id}, {"method", method}, {"params", params}}) +
         "\n";
}

std::vector<Json> lines_of(const std::string& out) {
  std::vector<Json> lines;
  std::istringstream stream(out);
  for (std::string line; std::getline(stream, line);) {
    json::Parsed parsed = json::parse(line);
    EXPECT_TRUE(parsed.ok()) << line;
    if (parsed.ok()) lines.push_back(*std::move(parsed.value));
  }
  return lines;
}

// The answers by their ids.
std::map<std::string, Json> answers_of(const std::string& out) {
  std::map<std::string, Json> answers;
  for (const Json& line : lines_of(out)) {
    if (line.contains("id")) answers[json::encode(line["id"])] = line;
  }
  return answers;
}

TEST(CliRpc, AnswersEachLineUnderItsIdAndEndsWithTheInput) {
  const Json off = {
      {"prompt", "Once upon"}, {"max_tokens", 24}, {"seed", 3}, {"speculative", false}};
  Json on = off;
  on["speculative"] = {{"width", 4}};
  const CliResult result = run_cli(with_models(
      {}, request(1, "completion.run", off) + "\n  \n" + request("two", "completion.run", on) +
              "{\"jsonrpc\":\"2.0\",\"method\":\"stats\"}\n" + "[" +
              "{\"jsonrpc\":\"2.0\",\"id\":3,\"method\":\"stats\"}," +
              "{\"jsonrpc\":\"2.0\",\"method\":\"stats\"}]\n" + "not json\n" +
              "{\"jsonrpc\":\"2.0\",\"id\":4,\"method\":\"stats\"}"));
  EXPECT_EQ(result.exit_code, 0) << result.err;
  std::map<std::string, Json> answers = answers_of(result.out);
  EXPECT_EQ(answers["1"]["result"]["tokens"], answers["\"two\""]["result"]["tokens"]);
  EXPECT_EQ(answers["1"]["result"]["usage"]["completion_tokens"], 24);
  EXPECT_GT(answers["\"two\""]["result"]["speculation"]["accepted"], 0);
  EXPECT_EQ(answers["null"]["error"]["code"], -32700);
  EXPECT_TRUE(answers["4"].contains("result")) << "the last line needs no newline";
  const std::vector<Json> lines = lines_of(result.out);
  EXPECT_EQ(lines.size(), 5U) << result.out;
  EXPECT_EQ(std::count_if(lines.begin(), lines.end(), [](const Json& l) { return l.is_array(); }),
            1);
}

// The answer to the second line ends the run of the first; one line at a time would get it only
// when the run has ended by itself.
TEST(CliRpc, ARunHoldsUpNoOtherLineAndASignalEndsItWithWhatItHas) {
  CliCall call = with_models(
      {"-c", "32768"},
      request(1, "completion.run", {{"prompt", "Once"}, {"max_tokens", -1}, {"ignore_eos", true}}) +
          request(2, "stats", Json::object()));
  bool sent = false;
  call.on_output = [&sent](pid_t child, const std::string& out, const std::string&) {
    if (!sent && out.find("\"id\":2,") != std::string::npos) {
      sent = true;
      kill(child, SIGINT);
    }
    return true;
  };
  const CliResult result = run_cli(call);
  EXPECT_EQ(result.exit_code, 130) << result.err;
  std::map<std::string, Json> answers = answers_of(result.out);
  ASSERT_TRUE(answers["1"].contains("result") || answers["1"].contains("error")) << result.out;
  if (answers["1"].contains("result")) {
    EXPECT_EQ(answers["1"]["result"]["finish_reason"], "cancelled");
  } else {  // the signal came before the run had begun
    EXPECT_EQ(answers["1"]["error"]["data"]["code"], "cancelled");
  }
}

TEST(CliRpc, AStandardInputThatIsClosedIsAnErrorAndNoEndlessWait) {
  CliCall call = rpc({}, "");
  call.closed = {0};
  const CliResult result = run_cli(call);
  EXPECT_EQ(result.exit_code, 1) << result.err;
  EXPECT_NE(result.err.find("cannot read standard input"), std::string::npos) << result.err;
}

TEST(CliRpc, EventsAreNotificationsAndAllOfACompletionsComeBeforeTheEnd) {
  const CliResult result = run_cli(with_models(
      {"--events"},
      request(1, "completion.start", {{"prompt", "Once"}, {"max_tokens", 30}, {"seed", 1}})));
  EXPECT_EQ(result.exit_code, 0) << result.err;
  std::string text;
  Json last;
  bool loaded = false;
  for (const Json& line : lines_of(result.out)) {
    if (!line.contains("method")) continue;
    EXPECT_EQ(line["method"], "event");
    const Json& event = line["params"];
    if (event["event"] == "model" && event["state"] == "ready") loaded = true;
    if (event["event"] != "completion") continue;
    for (const Json& update : event["updates"]) text += update["text"].get<std::string>();
    if (event.contains("result")) last = event["result"];
  }
  EXPECT_TRUE(loaded);
  EXPECT_EQ(last["text"], text);
  EXPECT_EQ(last["usage"]["completion_tokens"], 30);
}

TEST(CliRpc, TenThousandMalformedLinesGetAnErrorEachInTheirOrder) {
  const std::uint64_t seed = test_seed(20261122);
  std::mt19937_64 random(seed);
  std::vector<MalformedRequest> requests;
  std::string input;
  for (int i = 0; i < 10'000; ++i) {
    requests.push_back(malformed_request(random));
    input += requests.back().text + "\n";
  }
  const CliResult result =
      run_cli(rpc({"--calls", "1"}, input + request("last", "system.status", Json::object())));
  EXPECT_EQ(result.exit_code, 0) << result.err;
  const std::vector<Json> lines = lines_of(result.out);
  ASSERT_EQ(lines.size(), requests.size() + 1);
  for (std::size_t i = 0; i < requests.size(); ++i) {
    const std::string about = requests[i].what + ", seed " + std::to_string(seed) + ", line " +
                              std::to_string(i) + ": " + requests[i].text.substr(0, 200);
    ASSERT_TRUE(lines[i].is_object() && lines[i].contains("error")) << about;
    ASSERT_EQ(lines[i]["error"]["code"], requests[i].code) << about << " -> " << lines[i];
    const Json& field = lines[i]["error"]["data"]["field"];
    if (requests[i].field.empty()) continue;
    ASSERT_TRUE(field.is_string()) << about << " -> " << lines[i];
    ASSERT_EQ(field.get<std::string>().rfind(requests[i].field, 0), 0U) << about;
  }
  EXPECT_TRUE(lines.back().contains("result"));
}

TEST(CliRpc, ALineThatIsTooLongIsRefusedAndTheNextOneAnswered) {
  const CliResult result =
      run_cli(rpc({}, "{\"x\":\"" + std::string(api::kMaxRequestBytes + 100, 'a') + "\"}\n" +
                          request(1, "system.status", Json::object())));
  EXPECT_EQ(result.exit_code, 0) << result.err;
  std::map<std::string, Json> answers = answers_of(result.out);
  EXPECT_EQ(answers["null"]["error"]["code"], -32700);
  EXPECT_TRUE(answers["1"].contains("result"));
}

TEST(CliRpc, AModelThatCannotBeLoadedIsSaidAndEndsIt) {
  const CliResult result = run_cli(rpc({"-m", "/no/such/file.gguf"}, ""));
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_NE(result.err.find("/no/such/file.gguf"), std::string::npos) << result.err;
  EXPECT_EQ(result.out, "");
  EXPECT_EQ(run_cli(rpc({"-d", "draft.gguf"}, "")).exit_code, 2) << "a draft for nothing";
  EXPECT_EQ(run_cli(rpc({"--calls", "0"}, "")).exit_code, 2);
}

TEST(CliRpc, StoresAreAttachedBeforeTheFirstLineAndComeAndGoByMethod) {
  const CliFolder folder;
  const std::string store = folder.path("store");
  CliCall build = folder.call({"suffix", "build", "--vocab", cli_models().target,
                               folder.write("text.txt", "Once upon a time, and once upon a tree"),
                               "-o", store});
  ASSERT_EQ(run_cli(build).exit_code, 0);
  const Json off = {
      {"prompt", "Once upon"}, {"max_tokens", 24}, {"seed", 3}, {"speculative", false}};
  Json on = off;
  on["speculative"] = {{"drafters", {"suffix/recycle"}}, {"width", 6}};
  const Json file = {{"role", "drafter"}, {"drafter", "suffix"}, {"path", store}};
  const CliResult result = run_cli(with_models(
      {"--suffix-store", store, "--calls", "1"},
      request(1, "drafters.list", Json::object()) + request(2, "completion.run", off) +
          request(3, "completion.run", on) + request(4, "model.unload", file) +
          request(5, "drafters.list", Json::object()) + request(6, "completion.run", on)));
  EXPECT_EQ(result.exit_code, 0) << result.err;
  std::map<std::string, Json> answers = answers_of(result.out);
  const Json before = answers["1"]["result"]["drafters"][1]["files"];
  ASSERT_EQ(before.size(), 1U) << result.out;
  EXPECT_EQ(before[0]["state"], "ready");
  EXPECT_EQ(before[0]["path"], store);
  EXPECT_EQ(answers["5"]["result"]["drafters"][1]["files"], Json::array());
  for (const char* id : {"3", "6"}) {
    EXPECT_EQ(answers[id]["result"]["tokens"], answers["2"]["result"]["tokens"]);
    EXPECT_EQ(answers[id]["result"]["speculation"]["enabled"], true);
    EXPECT_TRUE(answers[id]["result"]["speculation"]["drafters"].contains("suffix"));
  }
}

TEST(CliRpc, NgramFilesAreAttachedBeforeTheFirstLineAndComeAndGoByMethod) {
  const CliFolder folder;
  const std::string corpus = folder.path("corpus");
  const std::string earlier = folder.path("earlier");
  const std::string text = folder.write("text.txt", "Once upon a time, and once upon a tree");
  for (const std::string& path : {corpus, earlier}) {
    CliCall create =
        folder.call({"ngram", "create", "--vocab", cli_models().target, text, "-o", path});
    const CliResult created = run_cli(create);
    ASSERT_EQ(created.exit_code, 0) << created.err;
  }
  const Json off = {
      {"prompt", "Once upon"}, {"max_tokens", 24}, {"seed", 3}, {"speculative", false}};
  Json on = off;
  on["speculative"] = {{"drafters", {"ngram-cache"}}, {"width", 6}};
  const Json file = {{"role", "drafter"}, {"drafter", "ngram-cache"}, {"tier", "static"}};
  const CliResult result = run_cli(with_models(
      {"--ngram-static", corpus, "--ngram-dynamic", earlier, "--calls", "1"},
      request(1, "drafters.list", Json::object()) + request(2, "completion.run", off) +
          request(3, "completion.run", on) + request(4, "model.unload", file) +
          request(5, "drafters.list", Json::object()) + request(6, "completion.run", on)));
  EXPECT_EQ(result.exit_code, 0) << result.err;
  std::map<std::string, Json> answers = answers_of(result.out);
  const Json before = answers["1"]["result"]["drafters"][2]["files"];
  ASSERT_EQ(before.size(), 2U) << result.out;
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(before[i]["state"], "ready");
    EXPECT_EQ(before[i]["path"], i == 0 ? corpus : earlier);
    EXPECT_EQ(before[i]["tier"], i == 0 ? "static" : "dynamic");
    EXPECT_GT(before[i]["memory_bytes"], 0);
  }
  EXPECT_EQ(answers["5"]["result"]["drafters"][2]["files"].size(), 1U);
  for (const char* id : {"3", "6"}) {
    EXPECT_EQ(answers[id]["result"]["tokens"], answers["2"]["result"]["tokens"]);
    EXPECT_EQ(answers[id]["result"]["speculation"]["enabled"], true);
    EXPECT_TRUE(answers[id]["result"]["speculation"]["drafters"].contains("ngram-cache"));
  }
  for (const char* option : {"--ngram-static", "--ngram-dynamic"}) {
    const CliResult missing = run_cli(with_models({option, "/no/such.ngrams"}, ""));
    EXPECT_EQ(missing.exit_code, 1);
    EXPECT_NE(missing.err.find("/no/such.ngrams"), std::string::npos) << missing.err;
    EXPECT_EQ(run_cli(rpc({option, "a.ngrams"}, "")).exit_code, 2) << "without a target";
  }
}

TEST(CliRpc, TextsAreRememberedForTheirNamespaceWhenTheOperatorSaysSo) {
  Json none = {{"prompt", "Once upon"}, {"max_tokens", 60}, {"seed", 3}};
  none["speculative"] = {{"drafters", {"suffix"}}, {"width", 6}};
  Json mine = none;
  mine["speculative"]["namespace"] = "me";
  Json other = none;
  other["speculative"]["namespace"] = "you";
  const std::string input =
      request(1, "completion.run", none) + request(2, "completion.run", mine) +
      request(3, "completion.run", mine) + request(4, "completion.run", other) +
      request(5, "drafters.list", Json::object());
  const CliResult result =
      run_cli(with_models({"--remember-tokens", "4096", "--calls", "1"}, input));
  EXPECT_EQ(result.exit_code, 0) << result.err;
  std::map<std::string, Json> answers = answers_of(result.out);
  const auto accepted = [&](const char* id) {
    const Json& completion = answers[id]["result"];
    EXPECT_EQ(completion["tokens"], answers["1"]["result"]["tokens"]) << id;
    return completion["speculation"]["accepted"].get<std::int64_t>();
  };
  EXPECT_EQ(accepted("2"), accepted("1"));
  EXPECT_GT(accepted("3"), accepted("2"));
  EXPECT_EQ(accepted("4"), accepted("1")) << "nobody else's";
  EXPECT_EQ(answers["5"]["result"]["drafters"][1]["remembered"]["namespaces"], 2);
  EXPECT_EQ(answers["3"]["result"]["speculation"]["remembered"]["tokens"], 60);

  answers = answers_of(run_cli(with_models({"--calls", "1"}, input)).out);
  EXPECT_EQ(accepted("3"), accepted("1")) << "by default nothing is remembered";
  EXPECT_EQ(answers["3"]["result"]["speculation"]["remembered"]["tokens"], 0);
  EXPECT_EQ(answers["5"]["result"]["drafters"][1]["remembered"], nullptr);
  for (const char* tokens : {"7", "x", "-1"}) {
    const CliResult refused = run_cli(rpc({"--remember-tokens", tokens}, ""));
    EXPECT_EQ(refused.exit_code, 2) << tokens;
    EXPECT_NE(refused.err.find("--remember-tokens"), std::string::npos) << refused.err;
  }
}

TEST(CliRpc, AStoreThatCannotBeUsedIsSaidAndEndsIt) {
  const CliResult result = run_cli(with_models({"--suffix-store", "/no/such.store"}, ""));
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_NE(result.err.find("/no/such.store"), std::string::npos) << result.err;
  EXPECT_EQ(run_cli(rpc({"--suffix-store", "a.store"}, "")).exit_code, 2) << "without a target";
}

TEST(CliRpc, EndsWhenNobodyReadsItsAnswers) {
  std::string input;
  for (int i = 0; i < 20'000; ++i) input += request(i, "system.methods", Json::object());
  CliCall call = rpc({}, input);
  call.on_output = [](pid_t, const std::string&, const std::string&) { return false; };
  const CliResult result = run_cli(call);
  EXPECT_EQ(result.exit_code, 0) << result.err;
}

}  // namespace
}  // namespace outrider::testing
