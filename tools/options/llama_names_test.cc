#include "tools/options/llama_names.h"

#include <gtest/gtest.h>

namespace outrider::tools {
namespace {

TEST(LlamaNames, SayWhatStandsHereInTheirPlace) {
  EXPECT_EQ(in_place_of_llamas("-np"), "llama-server's -np is --slots here");
  EXPECT_EQ(in_place_of_llamas("--lora"), "llama-server's --lora is not done here");
  EXPECT_EQ(in_place_of_llamas("--jinja"),
            "llama-server's --jinja is not needed here: the template of the file is used");
  EXPECT_EQ(in_place_of_llamas("-cnv"), "llama-server's -cnv is the command 'outrider chat' here");
  EXPECT_EQ(in_place_of_llamas("--paralel"), "");
  EXPECT_EQ(in_place_of_llamas(""), "");
}

}  // namespace
}  // namespace outrider::tools
