#include "tools/options/llama_names.h"

#include <gtest/gtest.h>

namespace outrider::tools {
namespace {

TEST(LlamaNames, SayWhatStandsHereInTheirPlace) {
  EXPECT_EQ(in_place_of_llamas("-np"), "llama-server's -np is --slots in Outrider");
  EXPECT_EQ(in_place_of_llamas("--lora"), "llama-server's --lora is not an option of Outrider");
  EXPECT_EQ(in_place_of_llamas("-cb"), "llama-server's -cb is not an option of Outrider");
  EXPECT_EQ(in_place_of_llamas("--jinja"),
            "llama-server's --jinja is not needed in Outrider: the template of the file is used");
  EXPECT_EQ(in_place_of_llamas("-cnv"), "llama-server's -cnv is the command 'outrider chat'");
  EXPECT_EQ(in_place_of_llamas("--paralel"), "");
  EXPECT_EQ(in_place_of_llamas("-hf"), "");
  EXPECT_EQ(in_place_of_llamas(""), "");
}

}  // namespace
}  // namespace outrider::tools
