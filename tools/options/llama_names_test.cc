#include "tools/options/llama_names.h"

#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

namespace outrider::tools {
namespace {

const std::vector<std::string>& of_serve() {
  static const std::vector<std::string> all = {
      "--draft-model", "--hf-repo-draft", "--drafter",       "--width",      "--slots",
      "--gpu-layers",  "--read-timeout",  "--write-timeout", "--timeout-ms", "--reuse-prefix",
      "--grammar",     "--json-schema",   "--stop",          "--seed",       "--logit-bias",
      "--temp",        "--no-page"};
  return all;
}

std::string in_serve(std::string_view name) { return in_place_of_llamas(name, of_serve()); }

TEST(LlamaNames, SayWhatStandsHereInTheirPlace) {
  EXPECT_EQ(in_serve("-np"), "llama-server's -np is --slots in Outrider");
  EXPECT_EQ(in_serve("--lora"), "llama-server's --lora is not an option of Outrider");
  EXPECT_EQ(in_serve("-ot"), "llama-server's -ot is not an option of Outrider");
  EXPECT_EQ(in_serve("--jinja"),
            "llama-server's --jinja is not needed in Outrider: the template of the file is used");
  EXPECT_EQ(in_serve("--chat-template"),
            "llama-server's --chat-template is not an option of Outrider: the template of the file "
            "is used, or ChatML where it has none");
  EXPECT_EQ(in_serve("-cnv"), "llama-server's -cnv is the command 'outrider chat'");
  EXPECT_EQ(in_serve("--offline"),
            "llama-server's --offline is the environment variable HF_HUB_OFFLINE=1");
  EXPECT_EQ(
      in_serve("--reranking"),
      "llama-server's --reranking is not an option of Outrider, which makes no embeddings and "
      "ranks nothing");
  EXPECT_EQ(in_serve("--paralel"), "");
  EXPECT_EQ(in_serve("-hf"), "");
  EXPECT_EQ(in_serve(""), "");
}

TEST(LlamaNames, OfFrequentOptionsAreAllAnswered) {
  const std::pair<std::string_view, std::string_view> all[] = {
      {"--grammar-file", "--grammar"},
      {"--json-schema-file", "--json-schema"},
      {"-jf", "--json-schema"},
      {"--reverse-prompt", "--stop"},
      {"-r", "--stop"},
      {"-s", "--seed"},
      {"-l", "--logit-bias"},
      {"--temperature", "--temp"},
      {"--spec-draft-hf", "-hfd, --hf-repo-draft"},
      {"--no-cache-prompt", "--reuse-prefix=false"},
      {"-to", "--read-timeout, --write-timeout or --timeout-ms"}};
  for (const auto& [theirs, ours] : all) {
    EXPECT_EQ(in_serve(theirs), "llama-server's " + std::string(theirs) + " is " +
                                    std::string(ours) + " in Outrider");
  }
  for (const char* name :
       {"--embedding", "--embeddings", "--rerank", "--sse-ping-interval", "--spec-ngram-mod-n-max",
        "--cache-prompt", "-cb", "--mlock", "--adaptive-target", "--adaptive-decay"}) {
    EXPECT_NE(in_serve(name), "") << name;
  }
}

TEST(LlamaNames, NoOptionIsNamedThatTheCommandLacks) {
  const std::vector<std::string> of_run = {"--temp", "--timeout-ms", "--drafter"};
  for (const char* name : {"-np", "--no-webui", "-ngl"}) {
    EXPECT_TRUE(is_llamas(name)) << name;
    EXPECT_NE(in_serve(name), "") << name;
    EXPECT_EQ(in_place_of_llamas(name, of_run), "") << name;
  }
  EXPECT_NE(in_place_of_llamas("--temperature", of_run), "");
  EXPECT_EQ(in_place_of_llamas("--timeout", of_run),
            "llama-server's --timeout is --timeout-ms in Outrider");
  EXPECT_EQ(in_place_of_llamas("--draft-max", of_run),
            "llama-server's --draft-max is not needed in Outrider: who guesses and how much is "
            "chosen in each step");
  EXPECT_NE(in_place_of_llamas("--lora", of_run), "") << "names none";
  EXPECT_FALSE(is_llamas("--temp"));
  EXPECT_FALSE(is_llamas(""));
}

}  // namespace
}  // namespace outrider::tools
