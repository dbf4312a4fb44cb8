#include "rpcserver/command_line.h"

#include <gtest/gtest.h>

namespace outrider::rpcserver {
namespace {

using Words = std::vector<std::string>;

// The cmd in JSON that `text` stands for, with exactly these warnings.
std::string cmd_of(const std::string& text, const Words& expected = {}) {
  Words warnings;
  const Result<json::Json> cmd = parse_command_line(text, warnings);
  EXPECT_TRUE(cmd.ok()) << cmd.status().message();
  EXPECT_EQ(warnings, expected);
  return cmd.ok() ? json::encode(*cmd) : "";
}

Status refusal(const std::string& text) {
  Words warnings;
  return parse_command_line(text, warnings).status();
}

TEST(CommandLineTest, WordsArePartedByWhiteSpaceAndKeptTogetherByQuotes) {
  EXPECT_EQ(split_words(""), Words());
  EXPECT_EQ(split_words(" \t\r\n"), Words());
  EXPECT_EQ(split_words("a  b\tc\n"), (Words{"a", "b", "c"}));
  EXPECT_EQ(split_words("a 'b c' \"d e\""), (Words{"a", "b c", "d e"}));
  EXPECT_EQ(split_words("a '' \"\""), (Words{"a", "", ""}));
  EXPECT_EQ(split_words("x'y z'w"), (Words{"xy zw"}));
  EXPECT_EQ(split_words(R"("a \" b \\ c \d")"), (Words{R"(a " b \ c \d)"}));
  EXPECT_EQ(split_words(R"('a \ b')"), (Words{R"(a \ b)"}));
  EXPECT_EQ(split_words(R"(my\ model.gguf)"), (Words{"my model.gguf"}));
  EXPECT_EQ(split_words(R"(C:\models\m.gguf)"), (Words{R"(C:\models\m.gguf)"}));
  EXPECT_EQ(split_words("'open"), std::nullopt);
  EXPECT_EQ(split_words("\"open\\\""), std::nullopt);
}

TEST(CommandLineTest, TheFirstWordIsTheProgramsNameAndPassedOver) {
  EXPECT_EQ(cmd_of(""), "{}");
  EXPECT_EQ(cmd_of("server"), "{}");
  EXPECT_EQ(cmd_of("-m -m model.gguf"), R"({"model":"model.gguf"})");
}

TEST(CommandLineTest, FlagsBecomeTheKeysOfTheOtherForm) {
  EXPECT_EQ(cmd_of("server -m m.gguf -md d.gguf -a name -c 2048 -b 256 -t 4 -tb 8 -ngl 10 "
                   "-ngld 5 --draft 6 -mg 1 -ts 3,1 --rope-freq-base 10000 --rope-freq-scale 0.5 "
                   "--no-mmap --mlock --numa --memory-f32 --lora l.gguf --lora-base b.gguf"),
            R"({"model":"m.gguf","model_draft":"d.gguf","model_alias":"name","n_ctx":2048,)"
            R"("n_batch":256,"n_threads":4,"n_threads_batch":8,"n_gpu_layers":10,)"
            R"("n_gpu_layers_draft":5,"n_draft":6,"main_gpu":1,"tensor_split":[3,1],)"
            R"("rope_freq_base":10000,"rope_freq_scale":0.5,"use_mmap":false,"use_mlock":true,)"
            R"("numa":true,"memory_f16":false,"lora_adapter":"l.gguf","lora_base":"b.gguf"})");
  EXPECT_EQ(cmd_of("server --model=m.gguf --ctx-size=64 --temp=0.5"),
            R"({"model":"m.gguf","n_ctx":64,"temperature":0.5})");
}

TEST(CommandLineTest, ValuesMayBeNegativeNumbersAndQuotedFlags) {
  EXPECT_EQ(cmd_of("server -s -1 -n -1 -m '--odd name'"),
            R"({"seed":-1,"n_predict":-1,"model":"--odd name"})");
}

TEST(CommandLineTest, TheSeedServersOwnFlagsAreAcceptedAndIgnored) {
  EXPECT_EQ(
      cmd_of("server --host 0.0.0.0 --port 8080 --path /srv -to 600 -v --embedding -m m.gguf"),
      R"({"model":"m.gguf"})");
}

TEST(CommandLineTest, FlagsThatAreNotKnownAreWarningsAndTakeTheirValueWithThem) {
  EXPECT_EQ(
      cmd_of("server --grp-attn-n 4 --flash -m m.gguf stray --other=3",
             {"'--grp-attn-n' is not known and has no effect",
              "'--flash' is not known and has no effect", "'stray' is not known and has no effect",
              "'--other' is not known and has no effect"}),
      R"({"model":"m.gguf"})");
}

TEST(CommandLineTest, WhatCannotBeReadIsRefusedWithTheKeyItStandsFor) {
  EXPECT_EQ(refusal("server -c").field(), "n_ctx");
  EXPECT_EQ(refusal("server -c").message(), "-c needs a value behind it");
  EXPECT_EQ(refusal("server -c many").message(), "-c is 'many', but must be a number");
  EXPECT_EQ(refusal("server -c 1e999").field(), "n_ctx");
  EXPECT_EQ(refusal("server -c nan").field(), "n_ctx");
  EXPECT_EQ(refusal("server -ts 1,,2").field(), "tensor_split");
  EXPECT_EQ(refusal("server 'm").message(), "the command line has a quote that is not closed");
}

}  // namespace
}  // namespace outrider::rpcserver
