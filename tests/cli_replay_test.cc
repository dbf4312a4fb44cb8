// outrider replay.
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "tests/cli_ngram.h"
#include "tests/cli_process.h"

namespace outrider::testing {
namespace {

using json::Json;

CliResult replay(const CliFolder& folder, std::vector<std::string> arguments) {
  const std::vector<std::string> front = {"replay", "--vocab", cli_models().target, "--drafter",
                                          "ngram-cache"};
  arguments.insert(arguments.begin(), front.begin(), front.end());
  return run_cli(folder.call(std::move(arguments)));
}

TEST(CliReplay, TellsWhatARepetitiveTextWouldHaveGiven) {
  const CliFolder folder;
  const std::string text = folder.write("t.txt", story(30));
  const std::string cost = folder.write(
      "cost.json", "{\"curve\": [{\"width\": 1, \"ms\": 10}, {\"width\": 8, \"ms\": 17}]}");
  const CliResult result = replay(folder, {text, "--width", "8", "--cost", cost, "--json"});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  const Json o = result.object();
  // Each step gives what held and one token more, but for one that reaches the text's end.
  const std::int64_t beyond = o["accepted"].get<std::int64_t>() + o["steps"].get<std::int64_t>() -
                              o["tokens"].get<std::int64_t>();
  EXPECT_GE(beyond, 0);
  EXPECT_LE(beyond, 1);
  EXPECT_GT(o["tokens_per_step"], 3.0);
  EXPECT_LE(o["tokens_per_step"], 8.0);
  EXPECT_GT(o["predicted_speedup"], 1.5);
  EXPECT_LT(o["predicted_speedup"], 80.0 / 17.0);
  EXPECT_TRUE(o["draft_us_per_step"].is_number());
  const CliResult wide = replay(folder, {text, "--width", "999"});
  EXPECT_EQ(wide.exit_code, 2) << "no step is wider than 64";
  EXPECT_NE(wide.err.find("--width is '999', but must be a whole number from 1 to 64"),
            std::string::npos)
      << wide.err;
  const Json plain = replay(folder, {text, "--width", "1", "--json"}).object();
  EXPECT_EQ(plain["steps"], plain["tokens"]);
  EXPECT_EQ(plain["acceptance_rate"], Json());
  EXPECT_EQ(plain["predicted_speedup"], Json());
}

TEST(CliReplay, OnlyTheAssistantsTurnsOfAConversationAreDrafted) {
  const CliFolder folder;
  const std::string said = "The lamp was lit and the sea was calm.";
  const std::string chat = folder.write(
      "c.jsonl", "{\"messages\": [{\"role\": \"user\", \"content\": \"Say: " + said +
                     "\"}, {\"role\": \"assistant\", \"content\": \"" + said +
                     "\"}, {\"role\": \"user\", \"content\": \"Again\"}, {\"role\": \"assistant\", "
                     "\"content\": \"" +
                     said + "\"}]}\n");
  const Json chats = replay(folder, {chat, "--json"}).object();
  EXPECT_EQ(chats["texts"], 2);
  EXPECT_LT(chats["tokens"], 2.2 * static_cast<double>(said.size()));
  EXPECT_GT(chats["tokens_per_step"], 1.5) << "the prompt says it already";
  const std::string turns =
      folder.write("t.jsonl", "{\"turns\": [\"" + said + "\"]}\n{\"prompt\": \"" + said + "\"}\n");
  EXPECT_EQ(replay(folder, {turns, "--json"}).object()["texts"], 2);
}

TEST(CliReplay, ChunksLearnAndAnIncompleteTailIsSkipped) {
  const CliFolder folder;
  const std::string text = folder.write("t.txt", story(30));
  const Json whole = replay(folder, {text, "--json"}).object();
  const Json chunks = replay(folder, {text, "-c", "64", "--json"}).object();
  const std::int64_t n = whole["tokens"].get<std::int64_t>() + 1;
  EXPECT_EQ(chunks["texts"], (n - 1) / 64);
  EXPECT_EQ(chunks["skipped"], n - 64 * chunks["texts"].get<std::int64_t>());
  EXPECT_GT(chunks["memory_bytes"]["dynamic"], 0);
  EXPECT_GT(chunks["tokens_per_step"], 2.0) << "what a chunk held drafts for the next ones";
}

TEST(CliReplay, FilesThatAreMissingOrOfAnotherTokenizerAreErrors) {
  const CliFolder folder;
  const std::string text = folder.write("t.txt", story(5));
  const std::string none = folder.path("none");
  const CliResult missing = replay(folder, {text, "--ngram-static", none});
  EXPECT_EQ(missing.exit_code, 1);
  EXPECT_NE(missing.err.find("--ngram-static"), std::string::npos) << missing.err;
  EXPECT_NE(missing.err.find(none), std::string::npos) << missing.err;
  EXPECT_EQ(replay(folder, {text, "--ngram-dynamic", none}).exit_code, 2);
  EXPECT_FALSE(std::filesystem::exists(none)) << "replay writes no file";
  // Another tokenizer's file is refused for both.
  ASSERT_EQ(ngram(folder, {"create", "--vocab", cli_models().other, text, "-o", none}).exit_code,
            0);
  for (const char* option : {"--ngram-static", "--ngram-dynamic"}) {
    const CliResult refused = replay(folder, {text, option, none});
    EXPECT_EQ(refused.exit_code, 1);
    EXPECT_NE(refused.err.find("tokenizer"), std::string::npos) << refused.err;
  }
  // So is a damaged one, by replay and by run, which leaves it as it is.
  const std::string good = folder.path("good");
  ASSERT_EQ(ngram(folder, {"create", "--vocab", cli_models().target, text, "-o", good}).exit_code,
            0);
  EXPECT_EQ(replay(folder, {text, "--ngram-dynamic", good}).exit_code, 0);
  const std::string damaged = read_file(good).substr(0, read_file(good).size() - 50);
  const std::string cut = folder.write("cut", damaged);
  for (const char* option : {"--ngram-static", "--ngram-dynamic"}) {
    for (const CliResult& refused :
         {replay(folder, {text, option, cut}),
          run_cli(folder.call({"run", "-m", cli_models().target, "-p", "Once", "-n", "4",
                               "--drafter", "ngram-cache", option, cut}))}) {
      EXPECT_EQ(refused.exit_code, 1);
      EXPECT_NE(refused.err.find(option), std::string::npos) << refused.err;
      EXPECT_NE(refused.err.find(cut), std::string::npos) << refused.err;
      EXPECT_EQ(refused.err.find("tokenizer"), std::string::npos) << refused.err;
    }
  }
  EXPECT_EQ(read_file(cut), damaged);
}

TEST(CliReplay, TheSuffixDrafterIsReplayedWithAndWithoutAStore) {
  const CliFolder folder;
  const std::string& vocab = cli_models().target;
  const std::string text = folder.write("t.txt", story(12));
  const std::string store = folder.path("s.store");
  ASSERT_EQ(
      run_cli(folder.call({"suffix", "build", "--vocab", vocab, text, "-o", store})).exit_code, 0);
  const auto suffix = [&](const std::vector<std::string>& more) {
    std::vector<std::string> arguments = {"replay",  "--vocab", vocab, "--drafter", "suffix",
                                          "--width", "8",       text,  "--json"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return run_cli(folder.call(arguments)).object();
  };
  const Json alone = suffix({});
  const Json with_store = suffix({"--suffix-store", store});
  EXPECT_GT(alone["tokens_per_step"], 2.0);
  EXPECT_GT(with_store["tokens_per_step"], alone["tokens_per_step"]) << "the store holds the text";
  EXPECT_GT(with_store["memory_bytes"]["stores_mapped"], 0);
  EXPECT_GE(suffix({"--branches", "1"})["tokens_per_step"], 2.0);
}

TEST(CliReplay, SeveralDraftersAreMergedOrAskedInTurn) {
  const CliFolder folder;
  const std::string text = folder.write("t.txt", story(20));
  const auto replayed = [&](const std::string& drafters) {
    return run_cli(folder.call({"replay", "--vocab", cli_models().target, "--drafter", drafters,
                                "--width", "6", text, "--json"}))
        .object();
  };
  const Json alone = replayed("suffix");
  const Json merged = replayed("suffix,ngram-cache");
  EXPECT_GT(merged["drafters"]["ngram-cache"]["drafted"], 0);
  EXPECT_EQ(merged["drafters"]["ngram-cache"]["calls"], merged["steps"]);
  EXPECT_GT(merged["tokens_per_step"], 0.9 * alone["tokens_per_step"].get<double>());
  const Json chain = replayed("ngram-cache/suffix");
  const Json& first = chain["drafters"]["ngram-cache"];
  EXPECT_EQ(chain["drafters"]["suffix"]["calls"],
            chain["steps"].get<std::int64_t>() - first["drafts"].get<std::int64_t>());
  EXPECT_EQ(first["drafted"].get<std::int64_t>() +
                chain["drafters"]["suffix"]["drafted"].get<std::int64_t>(),
            chain["drafted"]);
  EXPECT_TRUE(first.contains("foregone"));
}

TEST(CliReplay, DraftersThatNeedAModelAreRefusedByName) {
  const CliFolder folder;
  const std::string text = folder.write("t.txt", story(2));
  for (const char* name : {"recycle", "draft-model", "magic", "suffix,recycle", "suffix,suffix"}) {
    const CliResult result =
        run_cli(folder.call({"replay", "--vocab", cli_models().target, "--drafter", name, text}));
    EXPECT_EQ(result.exit_code, 2);
    EXPECT_NE(result.err.find(name), std::string::npos) << result.err;
  }
  const CliResult cost = replay(folder, {text, "--cost", folder.write("c.json", "[]")});
  EXPECT_EQ(cost.exit_code, 1);
  EXPECT_NE(cost.err.find("c.json"), std::string::npos) << cost.err;
}

}  // namespace
}  // namespace outrider::testing
