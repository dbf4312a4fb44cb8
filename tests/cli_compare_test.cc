// outrider compare and outrider inspect.
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "testing/gguf_damage.h"
#include "testing/tiny_gguf.h"
#include "testing/tiny_pair.h"
#include "tests/cli_process.h"
#include "tests/step_widths.h"

namespace outrider::testing {
namespace {

using json::Json;

std::string prompt_file(const CliFolder& folder) {
  return folder.write(
      "prompts.jsonl",
      "{\"question_id\": 81, \"category\": \"writing\", \"turns\": [\"Once upon a time\", "
      "\"more\"]}\n"
      "{\"prompt\": \"The lighthouse\"}\n\n"
      "{\"id\": \"chat-1\", \"messages\": [{\"role\": \"user\", \"content\": \"Hello\"}, "
      "{\"role\": \"assistant\", \"content\": \"Hi\"}]}\n");
}

CliCall compare_call(const CliFolder& folder, const std::vector<std::string>& more) {
  const CliModels& models = cli_models();
  std::vector<std::string> arguments = {
      "compare",           "-m",     models.target, "-c", "1024", "--prompts",
      prompt_file(folder), "--seed", "5",           "-n", "48"};
  arguments.insert(arguments.end(), more.begin(), more.end());
  return whole_probe(models.folder.call(arguments));
}

TEST(CliCompare, AQuantisedPairIsIdenticalAtEveryTemperatureAndWidth) {
  const CliFolder folder;
  for (const char* temperature : {"0", "1"}) {
    for (const char* width : {"2", "5"}) {
      const CliResult result = run_cli(compare_call(
          folder, {"-d", cli_models().draft, "--temp", temperature, "--width", width, "--json"}));
      ASSERT_EQ(result.exit_code, 0) << result.err;
      const Json object = result.object();
      EXPECT_EQ(object["prompts"], 3);
      EXPECT_EQ(object["tokens"], 3 * 48);
      EXPECT_EQ(object["identical"], 3) << result.out;
      EXPECT_EQ(object["first_divergences"], Json::array());
      EXPECT_EQ(object["verdict"], "exact") << result.out;
      EXPECT_EQ(object["drafter"], "draft-model");
      EXPECT_GT(object["acceptance_rate"].get<double>(), 0.0);
    }
  }
}

TEST(CliCompare, WithoutADraftTheTextItselfIsProposed) {
  const CliFolder folder;
  const Json object = run_cli(compare_call(folder, {"--json", "--limit", "2"})).object();
  EXPECT_EQ(object["prompts"], 2);
  EXPECT_EQ(object["identical"], 2);
  EXPECT_EQ(object["drafter"], "replay");
  EXPECT_GT(object["acceptance_rate"].get<double>(), 0.3);
  EXPECT_LT(object["acceptance_rate"].get<double>(), 1.0) << "every fifth proposal is wrong";
}

TEST(CliCompare, SeveralWidthsAndTreesAreComparedInOneCall) {
  const CliModels& models = cli_models();
  const CliFolder folder;
  const std::string prompts =
      folder.write("p.jsonl", "{\"prompt\": \"Once\"}\n{\"prompt\": \"The\"}\n");
  const CliResult result = run_cli(whole_probe(
      folder.call({"compare", "-m",        models.target, "-d",      models.draft, "--prompts",
                   prompts,   "-n",        "24",          "--temp",  "1",          "--seed",
                   "3",       "--exact",   "on",          "--width", "8,2,4",      "--branches",
                   "3",       "--split-p", "0.02",        "--json"})));
  ASSERT_EQ(result.exit_code, 0) << result.err;
  const Json object = result.object();
  EXPECT_EQ(object["identical"], 2) << result.out;
  EXPECT_EQ(object["verdict"], "exact") << result.out;
  EXPECT_EQ(object["logprob_difference"], 0.0);
  ASSERT_EQ(object["widths"].size(), 3U);
  for (std::size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(object["widths"][i]["width"], std::vector<int>({2, 4, 8})[i]);
    EXPECT_EQ(object["widths"][i]["verdict"], "identical");
  }
}

// The negative control. F32 weights take other code for several tokens than for one, so logits
// differ in their last bits; F16 keys and values, which --exact off takes, carry that on. In
// thousands of tokens some choice flips: one in about 1,200, measured.
TEST(CliCompare, ADivergenceIsShownWithItsGapAndNotCalledExact) {
  const CliFolder folder;
  // --exact off takes an F16 cache, with which no batch beyond 256 cells has the bits of single
  // steps.
  TinyPairOptions pair;
  pair.noise = 0.02f;
  ASSERT_TRUE(write_tiny_pair(folder.path("t.gguf"), folder.path("d.gguf"), pair).ok());
  std::string prompts;
  for (int i = 0; i < 4; ++i) prompts += "{\"prompt\": \"Story " + std::to_string(i) + "\"}\n";
  CliCall call = folder.call({"compare",
                              "-m",
                              folder.path("t.gguf"),
                              "-d",
                              folder.path("d.gguf"),
                              "--prompts",
                              folder.write("p.jsonl", prompts),
                              "--seed",
                              "5",
                              "-n",
                              "600",
                              "--temp",
                              "1",
                              "--top-k",
                              "0",
                              "--top-p",
                              "1",
                              "--min-p",
                              "0",
                              "--kernels",
                              "stock",
                              "--exact",
                              "off",
                              "-c",
                              "1024",
                              "--width",
                              "8",
                              "-t",
                              "2",
                              "--json"});
  // Two threads, beside whatever else is being tested: they must not spin while they wait.
  call.environment["OMP_WAIT_POLICY"] = "passive";
  const CliResult result = run_cli(call);
  ASSERT_EQ(result.exit_code, 0) << result.err << "a difference is a result, not a failure";
  const Json object = result.object();
  EXPECT_NE(object["verdict"], "exact") << result.out;
  EXPECT_LT(object["identical"], object["prompts"]) << result.out;
  EXPECT_EQ(object["identical"].get<std::size_t>() + object["first_divergences"].size(), 4U);
  for (const Json& divergence : object["first_divergences"]) {
    EXPECT_TRUE(divergence["prompt"].is_number());
    EXPECT_TRUE(divergence["position"].is_number());
    ASSERT_TRUE(divergence["logit_gap"].is_number()) << result.out;
    EXPECT_LT(divergence["logit_gap"].get<double>(), 0.5) << "rounding, not a bug";
    EXPECT_EQ(divergence["suspicious"], false);
    EXPECT_NE(divergence["plain"]["id"], divergence["speculative"]["id"]);
  }
}

CliResult compare_two_prompts(const CliFolder& folder, const std::string& temperature,
                              const std::string& widths, const std::vector<std::string>& more) {
  const std::string prompts = folder.write(
      "p.jsonl", "{\"prompt\": \"Once upon a time\"}\n{\"prompt\": \"The lighthouse\"}\n");
  const CliModels& models = cli_models();
  std::vector<std::string> arguments = {
      "compare", "-m",     models.target, "-d",     models.draft, "--prompts", prompts, "-n",
      "96",      "--temp", temperature,   "--seed", "5",          "--width",   widths,  "--json"};
  arguments.insert(arguments.end(), more.begin(), more.end());
  return run_cli(folder.call(arguments));
}

TEST(CliCompare, EveryDrafterAndCombinationGivesThePlainText) {
  const CliFolder folder;
  const std::string text = folder.write("t.txt", "Once upon a time there was a lighthouse");
  const std::string store = folder.path("store");
  const std::string ngrams = folder.path("ngrams");
  ASSERT_EQ(
      run_cli(folder.call({"suffix", "build", "--vocab", cli_models().target, text, "-o", store}))
          .exit_code,
      0);
  ASSERT_EQ(
      run_cli(folder.call({"ngram", "create", "--vocab", cli_models().target, text, "-o", ngrams}))
          .exit_code,
      0);
  const std::vector<std::pair<std::vector<std::string>, std::vector<std::string>>> cases = {
      {{"--drafter", "suffix", "--suffix-store", store}, {"suffix"}},
      {{"--drafter", "recycle"}, {"recycle"}},
      {{"--drafter", "suffix,ngram-cache", "--ngram-static", ngrams}, {"suffix", "ngram-cache"}},
      {{"--drafter", "suffix/draft-model,recycle"}, {"draft-model", "suffix", "recycle"}}};
  struct Widths {
    std::string temperature;
    std::string list;
    std::size_t n;
  };
  std::string all = "2";  // the least that compare takes
  for (int width = 3; width <= kWidestCompared; ++width) all += "," + std::to_string(width);
  for (const auto& [options, names] : cases) {
    for (const Widths& widths : {Widths{"1", "3,8", 2}, Widths{"0", all, kWidestCompared - 1}}) {
      const CliResult result =
          compare_two_prompts(folder, widths.temperature, widths.list, options);
      ASSERT_EQ(result.exit_code, 0) << result.err;
      const Json object = result.object();
      EXPECT_EQ(object["identical"], 2) << result.out;
      EXPECT_EQ(object["drafter"], options[1]);
      ASSERT_EQ(object["widths"].size(), widths.n);
      for (const Json& width : object["widths"]) {
        EXPECT_EQ(width["verdict"], "identical") << result.out;
        EXPECT_EQ(width["drafters"].size(), names.size()) << result.out;
        std::int64_t drafted = 0;
        for (const std::string& name : names) {
          drafted += width["drafters"][name]["drafted"].get<std::int64_t>();
        }
        EXPECT_GT(drafted, 0) << options[1];
      }
    }
  }
  for (const std::vector<std::string>& mistake :
       {std::vector<std::string>{"--drafter", "none"},
        {"--drafter", "sufix"},
        {"--drafter", "recycle", "--suffix-store", store},
        {"--drafter", "suffix", "--ngram-dynamic", ngrams}}) {
    const CliResult result = compare_two_prompts(folder, "1", "3,8", mistake);
    EXPECT_EQ(result.exit_code, 2) << mistake[1];
    EXPECT_NE(result.err.find("--drafter"), std::string::npos) << result.err;
  }
}

TEST(CliCompare, TheTableSaysTheSameToPeople) {
  const CliFolder folder;
  const CliResult result =
      run_cli(compare_call(folder, {"-d", cli_models().draft, "--limit", "1"}));
  EXPECT_EQ(result.exit_code, 0) << result.err;
  for (const char* word :
       {"1 prompts", "identical", "1 of 1", "verdict", "exact", "tokens a step"}) {
    EXPECT_NE(result.out.find(word), std::string::npos) << word << "\n" << result.out;
  }
}

TEST(CliCompare, MistakesInAPromptFileNameTheLineAndTheField) {
  const CliFolder folder;
  const auto refused = [&](const std::string& contents, const std::string& message) {
    const std::string file = folder.write("bad.jsonl", contents);
    const CliResult result =
        run_cli(folder.call({"compare", "-m", cli_models().target, "--prompts", file}));
    EXPECT_EQ(result.exit_code, 1);
    EXPECT_NE(result.err.find("prompt file '" + file + "'" + message), std::string::npos)
        << result.err;
  };
  refused("{\"prompt\": \"a\"}\n{\"prompt\": 5}\n",
          ", line 2: 'prompt' must be a text, but is a number");
  refused("{\"turns\": []}\n", ", line 1: 'turns' must be an array of texts");
  refused("{\"messages\": [{\"role\": 1}]}\n", ", line 1: each of 'messages' must have");
  refused("{\"text\": \"a\"}\n", ", line 1: has none of 'turns', 'prompt' and 'messages'");
  refused("[1]\n", ", line 1: must be an object, but is an array");
  refused("{\"prompt\": \"a\"\n", ", line 1, column ");
  refused("\n\n", " is empty");
}

TEST(CliInspect, SaysWhatAModelIsAndNeeds) {
  const CliModels& models = cli_models();
  const CliResult json =
      run_cli(models.folder.call({"inspect", models.target, models.draft, "--json", "-c", "2048"}));
  ASSERT_EQ(json.exit_code, 0) << json.err;
  const Json object = json.object();
  const Json& target = object["target"];
  EXPECT_EQ(target["architecture"], "llama");
  EXPECT_EQ(target["layers"], 2);
  EXPECT_EQ(target["context_trained"], 32768);
  EXPECT_EQ(target["rollback"], "any");
  EXPECT_EQ(target["chat_template"], true);
  EXPECT_EQ(target["memory"]["context"], 2048);
  EXPECT_EQ(target["memory"]["total_bytes"].get<std::uint64_t>(),
            target["memory"]["weights_bytes"].get<std::uint64_t>() +
                target["memory"]["output_packed_bytes"].get<std::uint64_t>() +
                target["memory"]["cache_bytes"].get<std::uint64_t>());
  // 2 layers, one key and one value head of 64, Q8_0: 2 * 2 * 68 bytes a token.
  EXPECT_EQ(target["memory"]["cache_bytes"], 2048 * 2 * 2 * 128);
  const bool own = target["kernels"] == "own";
  EXPECT_EQ(target["exactness"]["cache_type_k"], own ? "f16" : "bf16");
  EXPECT_EQ(object["vocabulary_match"]["kind"], "identical");
  EXPECT_EQ(object["vocabulary_match"]["usable"], true);
  const CliResult table = run_cli(models.folder.call({"inspect", models.target}));
  EXPECT_EQ(table.exit_code, 0) << table.err;
  EXPECT_NE(table.out.find("llama"), std::string::npos) << table.out;
  EXPECT_NE(table.out.find("chat template"), std::string::npos) << table.out;
}

TEST(CliInspect, RefusesACacheThatRunRefuses) {
  const CliModels& models = cli_models();
  const CliResult result = run_cli(models.folder.call(
      {"inspect", models.target, "--cache-type-v", "q4_0", "--flash-attn", "off"}));
  EXPECT_EQ(result.exit_code, 1) << result.out;
  EXPECT_NE(result.err.find("a q4_0 cache for values needs flash attention"), std::string::npos)
      << result.err;
}

TEST(CliInspect, SaysWhichTokensOfAPairDifferAndHowManyAreShared) {
  const CliModels& models = cli_models();
  const CliResult result =
      run_cli(models.folder.call({"inspect", models.target, models.other, "--json"}));
  EXPECT_EQ(result.exit_code, 0) << result.err;
  const Json match = result.object()["vocabulary_match"];
  EXPECT_EQ(match["kind"], "partly shared");
  EXPECT_EQ(match["usable"], true);
  EXPECT_NE(match["message"].get<std::string>().find("common ids differ in text"),
            std::string::npos);
  EXPECT_GT(match["share"]["tokens"].get<int>(), 250);
  EXPECT_EQ(match["share"]["of_sample"], 1.0);
}

TEST(CliInspect, APairThatSharesTooLittleIsToldNotFailed) {
  const CliModels& models = cli_models();
  const CliResult result =
      run_cli(models.folder.call({"inspect", models.wordy, models.draft, "--json"}));
  EXPECT_EQ(result.exit_code, 0) << result.err;
  const Json match = result.object()["vocabulary_match"];
  EXPECT_EQ(match["kind"], "different");
  EXPECT_EQ(match["usable"], false);
  EXPECT_NE(match["message"].get<std::string>().find("share too little"), std::string::npos);
  EXPECT_TRUE(match["share"].is_null());
}

// llama.cpp ends the process that reads it, by an assertion.
TEST(CliInspect, AFileThatLlamaCppAbortsOnIsAnErrorThatNamesIt) {
  const CliFolder folder;
  const std::string good = folder.path("good.gguf");
  const std::string bad = folder.path("bad.gguf");
  ASSERT_TRUE(write_tiny_gguf(good, {.architecture = TinyArchitecture::kShortConv}).ok());
  // Of lfm2moe, without experts: llama.cpp asserts them, and nothing of ours checks that.
  const auto no_experts = [](gguf_context* gguf) {
    gguf_set_val_str(gguf, "general.architecture", "lfm2moe");
    const auto set = [gguf](const std::string& key, std::uint32_t value) {
      gguf_set_val_u32(gguf, ("lfm2moe." + key).c_str(), value);
    };
    set("block_count", 2);
    set("context_length", 64);
    set("embedding_length", 128);
    set("feed_forward_length", 256);
    set("attention.head_count", 2);
    set("shortconv.l_cache", 3);
    set("expert_feed_forward_length", 32);
    set("expert_gating_func", 2);
    gguf_set_val_f32(gguf, "lfm2moe.attention.layer_norm_rms_epsilon", 1e-5F);
  };
  ASSERT_TRUE(copy_changed(good, bad, no_experts, /*left_out=*/"").ok());
  EXPECT_EQ(run_cli(folder.call({"inspect", good})).exit_code, 0) << "the control";
  const CliResult result = run_cli(folder.call({"inspect", bad}));
  EXPECT_EQ(result.signal, 0);
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_EQ(result.out, "");
  EXPECT_NE(result.err.find("what reads '" + bad + "' was ended by signal"), std::string::npos)
      << result.err;
}

}  // namespace
}  // namespace outrider::testing
