#include "tools/paste.h"

#include <gtest/gtest.h>

namespace outrider::tools {
namespace {

std::string keys(const std::vector<std::string>& parts) {
  PasteDecoder decoder('^', "<tab>");
  std::string text;
  for (const std::string& part : parts) decoder.feed(part, text);
  return text;
}

TEST(Paste, WhatIsTypedStaysAsItIs) {
  EXPECT_EQ(keys({"hello\r\x01\x04"}), "hello\r\x01\x04");
  EXPECT_EQ(keys({"\033[A\033[2~"}), "\033[A\033[2~") << "arrow keys and Insert";
  EXPECT_EQ(keys({"\033\033[200~a\033[201~"}), "\033a") << "an Escape before the mark";
}

TEST(Paste, WhatIsPastedHasItsControlCharactersQuoted) {
  EXPECT_EQ(keys({"\033[200~a\rb\r\nc\nd\te\033[201~\t\r"}), "a^\nb^\nc^\nd<tab>e\t\r")
      << "and a tab that is typed is a key";
  EXPECT_EQ(keys({"\033[200~\033[A\x03\033[201~"}), "^\033[A^\x03") << "no key of the editor's";
  EXPECT_EQ(keys({"\033[200~a\r\r\n\nb\033[201~"}), "a^\n^\n^\nb") << "empty lines stay";
}

TEST(Paste, EveryCutOfTheBytesGivesTheSameKeys) {
  const std::string bytes = "x\033[200~one\r\ntwo \033[2 \xC3\xA4\033[201~\r\033[B";
  const std::string whole = keys({bytes});
  EXPECT_EQ(whole,
            "x"
            "one^\ntwo ^\033[2 \xC3\xA4"
            "\r\033[B");
  for (std::size_t i = 0; i <= bytes.size(); ++i) {
    for (std::size_t j = i; j <= bytes.size(); ++j) {
      EXPECT_EQ(keys({bytes.substr(0, i), bytes.substr(i, j - i), bytes.substr(j)}), whole);
    }
  }
}

}  // namespace
}  // namespace outrider::tools
