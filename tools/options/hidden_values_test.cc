#include "tools/options/hidden_values.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace outrider::tools {
namespace {

std::vector<std::string> hidden(std::vector<std::string> arguments) {
  std::vector<char*> argv;
  for (std::string& argument : arguments) argv.push_back(argument.data());
  hide_values(static_cast<int>(argv.size()), argv.data(), "--api-key");
  return arguments;
}

TEST(HiddenValues, AreStarsInBothSpellings) {
  using List = std::vector<std::string>;
  EXPECT_EQ(hidden({"outrider", "serve", "--api-key", "secret", "--api-key=other", "-m", "x"}),
            (List{"outrider", "serve", "--api-key", "******", "--api-key=*****", "-m", "x"}));
  EXPECT_EQ(hidden({"outrider", "--api-key-file", "keys", "--api-key"}),
            (List{"outrider", "--api-key-file", "keys", "--api-key"}));
  EXPECT_EQ(hidden({"outrider", "--api-key", ""}), (List{"outrider", "--api-key", ""}));
}

}  // namespace
}  // namespace outrider::tools
