#include "tools/chat/message_assembler.h"

#include <gtest/gtest.h>

#include <vector>

namespace outrider::tools {
namespace {

// The messages that lines make; a command is in <>, and what is left at the end in ().
std::string messages(const std::vector<std::string>& lines) {
  MessageAssembler assembler;
  std::string all;
  for (const std::string& line : lines) {
    const std::optional<ChatInput> input = assembler.add(line);
    EXPECT_EQ(assembler.pending(), !input.has_value());
    if (input) all += input->command ? "<" + input->text + ">" : "[" + input->text + "]";
  }
  const std::optional<ChatInput> rest = assembler.finish();
  if (rest) all += "(" + rest->text + ")";
  return all;
}

TEST(MessageAssembler, ALineIsAMessageAndOneWithASlashACommand) {
  EXPECT_EQ(messages({"one", "/two three", "  four\t", "", "five\r"}),
            "[one]</two three>[four][][five]");
  EXPECT_EQ(messages({" /etc/hosts is what?"}), "[/etc/hosts is what?]") << "a space in front";
}

TEST(MessageAssembler, ABackslashAtTheEndGoesOnInTheNextLine) {
  EXPECT_EQ(messages({"a\\", "b\\", "c", "d"}), "[a\nb\nc][d]");
  EXPECT_EQ(messages({"a \\ b"}), "[a \\ b]") << "only at the end";
  EXPECT_EQ(messages({"a\\", "/not a command"}), "[a\n/not a command]");
  EXPECT_EQ(messages({"/command\\", "more"}), "[/command\nmore]") << "of several lines: none";
  EXPECT_EQ(messages({"a\\"}), "(a)") << "the input ends there";
}

TEST(MessageAssembler, QuotesHoldLinesAsTheyAre) {
  EXPECT_EQ(messages({"\"\"\"", "a\\", "", "/b", "\"\"\"", "c"}), "[a\\\n\n/b][c]");
  EXPECT_EQ(messages({"\"\"\"a", "b\"\"\"  ", "c"}), "[a\nb][c]");
  EXPECT_EQ(messages({"\"\"\"one line\"\"\"", "c"}), "[one line][c]");
  EXPECT_EQ(messages({"a \"\"\" b", "c"}), "[a \"\"\" b][c]") << "only at the beginning";
  EXPECT_EQ(messages({"\"\"\"a", "b"}), "(a\nb)") << "the input ends before they are closed";
}

TEST(MessageAssembler, APasteIsOneMessage) {
  EXPECT_EQ(messages({"\033[200~a", "/b\\", "\"\"\"c\033[201~", "d"}), "[a\n/b\\\n\"\"\"c][d]");
  EXPECT_EQ(messages({"see: \033[200~a", "b\033[201~ and\033[200~c\033[201~!"}),
            "[see: a\nb andc!]");
  EXPECT_EQ(messages({"\033[200~a", "b", "\033[201~"}), "[a\nb]") << "its last newline goes";
  EXPECT_EQ(messages({"\"\"\"", "\033[200~a\"\"\"", "b\033[201~", "\"\"\""}), "[a\"\"\"\nb]");
  EXPECT_EQ(messages({"\033[200~/stats\033[201~"}), "</stats>") << "one line, as if typed";
}

TEST(MessageAssembler, ALineEditorsPasteIsOneLineWithNewlines) {
  EXPECT_EQ(messages({"a\n/b\\\nc\\", "d"}), "[a\n/b\\\nc\\][d]");
  EXPECT_EQ(messages({"/set stop\nx"}), "[/set stop\nx]");
}

TEST(MessageAssembler, TheFirstOfSeveralLinesKeepsItsIndentation) {
  EXPECT_EQ(messages({"\"\"\"", "  a", "    b", "\"\"\""}), "[  a\n    b]");
  EXPECT_EQ(messages({"    a\n        b"}), "[    a\n        b]") << "a line editor's paste";
  EXPECT_EQ(messages({"\033[200~\ta", "\t\tb", "\033[201~"}), "[\ta\n\t\tb]");
  EXPECT_EQ(messages({"\"\"\"", " \t", "", "  a ", " ", "\"\"\""}), "[  a]") << "empty lines go";
  EXPECT_EQ(messages({"\"\"\"", " ", "\"\"\""}), "[]");
  EXPECT_EQ(messages({"  a  "}), "[a]") << "a line alone";
}

TEST(MessageAssembler, ResetForgetsWhatHasBegun) {
  MessageAssembler assembler;
  EXPECT_FALSE(assembler.add("\"\"\"a").has_value());
  assembler.reset();
  EXPECT_FALSE(assembler.pending());
  EXPECT_EQ(assembler.add("b")->text, "b");
  EXPECT_FALSE(assembler.finish().has_value());
}

}  // namespace
}  // namespace outrider::tools
