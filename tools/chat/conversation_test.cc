#include "tools/chat/conversation.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <fstream>

#include "input/prompt_file.h"

namespace outrider::tools {
namespace {

std::string roles(const Conversation& conversation) {
  std::string text;
  for (const ChatMessage& message : conversation.messages()) {
    text += message.role.substr(0, 1) + ":" + message.content + " ";
  }
  return text;
}

Conversation two_turns() {
  Conversation c;
  c.set_system("be brief");
  c.add_user("one?");
  c.add_answer({.role = "assistant", .content = "1"});
  c.add_user("two?");
  c.add_answer({.role = "assistant", .content = "2"});
  return c;
}

class ConversationFile : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string name = (std::filesystem::temp_directory_path() / "conversation-XXXXXX").string();
    ASSERT_NE(mkdtemp(name.data()), nullptr);
    folder_ = name;
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }
  std::string path(const std::string& name) const { return (folder_ / name).string(); }
  std::string error_of(const std::string& contents) const {
    std::ofstream(path("bad.json"), std::ios::binary) << contents;
    const Result<Conversation> read = Conversation::load(path("bad.json"));
    return read.ok() ? "it was read" : read.status().message();
  }

  std::filesystem::path folder_;
};

TEST(Conversation, TheSystemsMessageStandsInFrontAndIsReplacedOrTakenAway) {
  Conversation c = two_turns();
  EXPECT_EQ(roles(c), "s:be brief u:one? a:1 u:two? a:2 ");
  c.set_system("be long");
  EXPECT_EQ(roles(c), "s:be long u:one? a:1 u:two? a:2 ");
  c.set_system("");
  EXPECT_EQ(roles(c), "u:one? a:1 u:two? a:2 ");
  EXPECT_EQ(c.system(), "");
  c.set_system("again");
  EXPECT_EQ(c.system(), "again");
}

TEST(Conversation, UndoTakesAwayAQuestionWithItsAnswerUntilThereIsNone) {
  Conversation c = two_turns();
  EXPECT_EQ(*c.last_question(), "two?");
  EXPECT_TRUE(c.undo());
  EXPECT_EQ(roles(c), "s:be brief u:one? a:1 ");
  c.add_user("unanswered");
  EXPECT_TRUE(c.undo());
  EXPECT_TRUE(c.undo());
  EXPECT_EQ(roles(c), "s:be brief ");
  EXPECT_FALSE(c.undo());
  EXPECT_EQ(c.last_question(), nullptr);
  EXPECT_EQ(roles(c), "s:be brief ");
}

TEST(Conversation, DroppingAnAnswerKeepsItsQuestion) {
  Conversation c = two_turns();
  EXPECT_TRUE(c.drop_answer());
  EXPECT_EQ(roles(c), "s:be brief u:one? a:1 u:two? ");
  EXPECT_TRUE(c.drop_answer()) << "there is a question, if no answer";
  EXPECT_EQ(roles(c), "s:be brief u:one? a:1 u:two? ");
  c.clear();
  EXPECT_EQ(roles(c), "s:be brief ");
  EXPECT_FALSE(c.drop_answer());
}

TEST_F(ConversationFile, WhatIsSavedIsReadAgainAndIsAPromptFile) {
  Conversation c = two_turns();
  c.add_user("lines\nand \"quotes\" and \xC3\xA4");
  ASSERT_TRUE(c.save(path("c.json")).ok());
  const Result<Conversation> read = Conversation::load(path("c.json"));
  ASSERT_TRUE(read.ok()) << read.status().message();
  EXPECT_EQ(roles(*read), roles(c));
  const Result<std::vector<FilePrompt>> prompts = read_prompt_file(path("c.json"), 0);
  ASSERT_TRUE(prompts.ok()) << prompts.status().message();
  ASSERT_EQ(prompts->size(), 1U);
  EXPECT_EQ(prompts->front().messages.size(), 6U);
  ASSERT_TRUE(Conversation().save(path("c.json")).ok()) << "it replaces the file";
  EXPECT_EQ(roles(*Conversation::load(path("c.json"))), "");
}

TEST_F(ConversationFile, ThoughtsAndCallsAreSavedToo) {
  Conversation c;
  c.add_user("one?");
  c.add_answer({.role = "assistant",
                .content = "",
                .reasoning = "hm",
                .tool_calls = {{.id = "a", .name = "get", .arguments = "{}"}}});
  ASSERT_TRUE(c.save(path("c.json")).ok());
  const Result<Conversation> read = Conversation::load(path("c.json"));
  ASSERT_TRUE(read.ok()) << read.status().message();
  const ChatMessage& said = read->messages().back();
  EXPECT_EQ(said.reasoning, "hm");
  ASSERT_EQ(said.tool_calls.size(), 1U);
  EXPECT_EQ(said.tool_calls[0].name + said.tool_calls[0].id + said.tool_calls[0].arguments,
            "geta{}");
}

TEST_F(ConversationFile, WhatIsWrongInAFileIsNamedWithTheFile) {
  EXPECT_EQ(Conversation::load(path("none.json")).status().code(), StatusCode::kNotFound);
  EXPECT_NE(error_of("{").find("bad.json' is no conversation: line 1"), std::string::npos);
  EXPECT_NE(error_of("[]").find("must be one object"), std::string::npos);
  EXPECT_NE(error_of(R"({"messages":7})").find("messages is 7"), std::string::npos);
  EXPECT_NE(error_of(R"({"messages":[{"role":"user"}]})").find("messages[0].content"),
            std::string::npos);
  EXPECT_NE(error_of(R"({"messages":[{"role":"judge","content":""}]})").find("messages[0].role"),
            std::string::npos);
  EXPECT_FALSE(Conversation().save(path("no/folder.json")).ok());
}

// A pipe that nobody writes to would be waited for, and standard input are the chat's messages.
TEST_F(ConversationFile, WhatIsNoRegularFileOrTooLongIsRefusedUnread) {
  ASSERT_EQ(mkfifo(path("fifo").c_str(), 0600), 0);
  for (const std::string& name : {path("fifo"), std::string("/dev/zero"), std::string("-")}) {
    EXPECT_EQ(Conversation::load(name).status().code(), StatusCode::kInvalidArgument) << name;
  }
  ASSERT_TRUE(Conversation().save(path("long.json")).ok());
  std::filesystem::resize_file(path("long.json"), Conversation::kMostFileBytes + 1);
  const Status status = Conversation::load(path("long.json")).status();
  EXPECT_NE(status.message().find("at most 67108864 can be"), std::string::npos)
      << status.message();
  const std::atomic<bool> raised{true};
  ASSERT_TRUE(Conversation().save(path("c.json")).ok());
  EXPECT_EQ(Conversation::load(path("c.json"), {.interrupt = &raised}).status().code(),
            StatusCode::kCancelled);
}

}  // namespace
}  // namespace outrider::tools
