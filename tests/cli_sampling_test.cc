// The sampling options on the command line: each is honoured, or refused by its name.
#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "testing/tiny_vocabulary.h"
#include "tests/cli_process.h"

namespace outrider::testing {
namespace {

using json::Json;

constexpr const char* kPrompt = "the end of the stop and the end of the stop and ";

CliResult run(const std::vector<std::string>& more, const std::string& width = "1") {
  const CliModels& models = cli_models();
  std::vector<std::string> arguments = {"run",    "-m",      models.target, "-c", "512",
                                        "--seed", "7",       "-n",          "32", "-p",
                                        kPrompt,  "--width", width};
  if (width != "1") arguments.insert(arguments.end(), {"-d", models.draft});
  arguments.insert(arguments.end(), more.begin(), more.end());
  return run_cli(models.folder.call(arguments));
}

TEST(CliSampling, EveryOptionChangesTheTextAndSpeculationDoesNot) {
  const std::string usual = run({}).out;
  const std::string a = run({"--json"}).object()["tokens"][3].dump();  // one that is said
  const std::vector<std::vector<std::string>> options = {
      {"--temp", "1.7"},
      {"--top-k", "2"},
      {"--top-p", "0.3"},
      {"--min-p", "0.6"},
      {"--typical", "0.3"},
      {"--top-n-sigma", "0.5"},
      {"--xtc-probability", "1", "--xtc-threshold", "0.05"},
      {"--xtc-probability", "0.7", "--xtc-threshold", "0.1"},
      {"--dynatemp-range", "0.7"},
      {"--dynatemp-range", "0.7", "--dynatemp-exp", "3"},
      {"--repeat-penalty", "1.8"},
      {"--frequency-penalty", "-6", "--repeat-last-n", "3"},
      {"--frequency-penalty", "1.5"},
      {"--presence-penalty", "2"},
      {"--dry-multiplier", "4", "--dry-allowed-length", "0"},
      {"--dry-multiplier", "40", "--dry-base", "3", "--dry-allowed-length", "0",
       "--dry-penalty-last-n", "500", "--dry-sequence-breaker", "none"},
      {"--mirostat", "1", "--mirostat-ent", "2"},
      {"--mirostat", "2", "--mirostat-ent", "1", "--mirostat-lr", "0.5"},
      {"--logit-bias", a + "+9"},
      {"--logit-bias=" + a + "+9", "--logit-bias=" + a + "-12"},
  };
  for (const std::vector<std::string>& option : options) {
    SCOPED_TRACE(option.front() + " " + option.back());
    const CliResult plain = run(option);
    ASSERT_EQ(plain.exit_code, 0) << plain.err;
    EXPECT_NE(plain.out, usual);
    EXPECT_EQ(run(option, "4").out, plain.out);
  }
}

TEST(CliSampling, IgnoreEosGoesOnToTheLimit) {
  const std::string eos = std::to_string(kTinyEos);
  const std::string end = std::to_string(kTinyTurnEnd);
  const CliResult ends = run({"--logit-bias", eos + "+60", "--json"});
  EXPECT_EQ(ends.object()["finish_reason"], "stop");
  const CliResult goes_on = run({"--logit-bias", eos + "+60", "--ignore-eos", "--json"}, "4");
  EXPECT_EQ(goes_on.object()["finish_reason"], "length");
  EXPECT_EQ(goes_on.object()["tokens"].size(), 32U);
}

TEST(CliSampling, GrammarsAndSchemasConstrainTheText) {
  const CliFolder folder;
  const std::string grammar = folder.write("g.gbnf", "root ::= [a-c]{3,9} # letters\n");
  const CliResult letters = run({"--grammar", grammar, "--json"}, "4");
  ASSERT_EQ(letters.exit_code, 0) << letters.err;
  const std::string text = letters.object()["text"].get<std::string>();
  EXPECT_GE(text.size(), 3U);
  EXPECT_EQ(text.find_first_not_of("abc"), std::string::npos) << text;
  EXPECT_EQ(letters.object()["finish_reason"], "stop");
  EXPECT_EQ(run({"--grammar", grammar, "--json"}).object()["tokens"], letters.object()["tokens"]);

  const std::string schema = folder.write(
      "s.json", R"({"type":"array","items":{"enum":[1,"the"]},"minItems":1,"maxItems":2})");
  const CliResult array = run({"--json-schema", schema}, "4");
  ASSERT_EQ(array.exit_code, 0) << array.err;
  const json::Parsed parsed = json::parse(array.out);
  ASSERT_TRUE(parsed.ok()) << array.out;
  EXPECT_TRUE(parsed.value->is_array());
  EXPECT_EQ(run({"--json-schema", schema}).out, array.out);

  const std::string lazy = folder.write("l.gbnf", "root ::= \"?\" [0-9]*");
  const CliResult bound = run({"--grammar", lazy, "--grammar-trigger", "?", "--temp", "1",
                               "--logit-bias", std::to_string(kTinyFirstByte + '?') + "+5"});
  ASSERT_EQ(bound.exit_code, 0) << bound.err;
  const std::size_t at = bound.out.find('?');
  ASSERT_NE(at, std::string::npos) << bound.out;
  EXPECT_EQ(bound.out.find_first_not_of("0123456789\n", at + 1), std::string::npos) << bound.out;
}

TEST(CliSampling, LogprobsAreInTheResultAndTheSameWithSpeculation) {
  const Json plain = run({"--logprobs", "3", "--json"}).object();
  const Json drafted = run({"--logprobs", "3", "--json"}, "5").object();
  ASSERT_EQ(plain["logprobs"].size(), plain["tokens"].size());
  ASSERT_EQ(drafted["tokens"], plain["tokens"]);
  for (std::size_t i = 0; i < plain["tokens"].size(); ++i) {
    const Json& token = plain["logprobs"][i];
    EXPECT_EQ(token["id"], plain["tokens"][i]);
    EXPECT_LE(token["logprob"].get<double>(), 0.0);
    ASSERT_EQ(token["top_logprobs"].size(), 3U);
    EXPECT_GE(token["top_logprobs"][0]["logprob"], token["logprob"]);
    EXPECT_NEAR(token["logprob"].get<double>(), drafted["logprobs"][i]["logprob"].get<double>(),
                1e-5);
  }
  EXPECT_EQ(run({"--logprobs", "0", "--json"}).object()["logprobs"][0]["top_logprobs"],
            Json::array());
  EXPECT_TRUE(run({"--json"}).object()["logprobs"].is_null());
}

TEST(CliSampling, WrongValuesNameTheOptionAndEndWithTwo) {
  const CliFolder folder;
  const std::string good = folder.write("good.gbnf", "root ::= \"a\"");
  const std::string bad = folder.write("bad.gbnf", "root ::= root \"a\"");
  const std::string empty = folder.write("empty.gbnf", "");
  const std::string schema = folder.write("s.json", "{}");
  const std::string cyclic = folder.write("c.json", R"({"$ref":"#/a","a":{"$ref":"#/a"}})");
  std::string deep = "root ::= ";
  for (int i = 0; i < 60000; ++i) deep += '(';
  const std::string nested = folder.write("deep.gbnf", deep);
  const std::vector<std::vector<std::string>> cases = {
      {"--temp", "-1"},
      {"--temp", "nan"},
      {"--temp", "warm"},
      {"--top-k", "-2"},
      {"--top-k", "2.5"},
      {"--top-p", "-0.1"},
      {"--min-p", "1.5"},
      {"--typical", "0"},
      {"--top-n-sigma", "inf"},
      {"--xtc-probability", "1.1"},
      {"--xtc-threshold", "-0.1"},
      {"--dynatemp-range", "-1"},
      {"--dynatemp-exp", "-1"},
      {"--repeat-last-n", "-1"},
      {"--repeat-last-n", "2000000"},
      {"--repeat-penalty", "0"},
      {"--repeat-penalty", "1e-45"},
      {"--frequency-penalty", "inf"},
      {"--presence-penalty", "nan"},
      {"--dry-multiplier", "-1"},
      {"--dry-base", "0.5"},
      {"--dry-allowed-length", "-1"},
      {"--dry-penalty-last-n", "-1"},
      {"--dry-sequence-breaker", ""},
      {"--dry-sequence-breaker", std::string(41, 'x')},
      {"--mirostat", "3"},
      {"--mirostat-ent", "-1"},
      {"--mirostat-lr", "nan"},
      {"--logit-bias", "5"},
      {"--logit-bias", "x+1"},
      {"--logit-bias", "5+"},
      {"--logit-bias", "5+1x"},
      {"--logit-bias", "5+inf"},
      {"--logit-bias", "5*2"},
      {"--logprobs", "21"},
      {"--grammar", bad},
      {"--grammar", empty},
      {"--grammar", nested},
      {"--json-schema", bad},
      {"--json-schema", cyclic},
      {"--json-schema", schema, "--grammar", good},
      {"--grammar-trigger", "x"},
      {"--grammar-trigger", "", "--grammar", good},
      {"--ignore-eos", "--grammar", good},
      {"--top-k", "7", "--mirostat", "2"},
      {"--repeat-penalty", "1.1", "--mirostat", "1"},
      {"--dry-multiplier", "1", "--mirostat", "1"},
  };
  for (const std::vector<std::string>& arguments : cases) {
    const CliResult result = run(arguments);
    SCOPED_TRACE(arguments[0]);
    EXPECT_EQ(result.exit_code, 2) << result.err;
    EXPECT_EQ(result.out, "");
    EXPECT_EQ(result.err.rfind("outrider: error: " + arguments[0], 0), 0U) << result.err;
    EXPECT_EQ(std::count(result.err.begin(), result.err.end(), '\n'), 1) << result.err;
  }
}

TEST(CliSampling, ABiasForANegativeTokenIsRefusedBeforeTheModelIsLoaded) {
  const CliResult result = run({"--logit-bias=-5+1", "-m", "no-such-file.gguf"});
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_NE(result.err.find("--logit-bias names token -5"), std::string::npos) << result.err;
}

TEST(CliSampling, WhatOnlyTheModelCanTellEndsWithOneAndTheOptionsName) {
  const CliFolder folder;
  EXPECT_NE(run({"--logit-bias", "999999+1"}).err.find("--logit-bias names token 999999"),
            std::string::npos);
  const CliResult missing = run({"--grammar", folder.path("none.gbnf")});
  EXPECT_EQ(missing.exit_code, 1);
  EXPECT_NE(missing.err.find("--grammar: "), std::string::npos) << missing.err;
  const CliResult token = run({"--grammar", folder.write("t.gbnf", "root ::= <[999999]>")});
  EXPECT_EQ(token.exit_code, 1);
  EXPECT_NE(token.err.find("--grammar: "), std::string::npos) << token.err;
}

TEST(CliSampling, TheEnvironmentAndAFileSetThemToo) {
  const CliFolder folder;
  const std::string wanted = run({"--repeat-penalty", "1.8", "--top-k", "3"}).out;
  const std::string config = folder.write("o.toml", "repeat-penalty = 1.8\n[run]\ntop-k = 3\n");
  EXPECT_EQ(run({"--config", config}).out, wanted);
}

}  // namespace
}  // namespace outrider::testing
