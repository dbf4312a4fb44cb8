// outrider chat on a terminal, as a person has it.
#include <signal.h>
#include <sys/stat.h>

#include <algorithm>
#include <filesystem>
#include <set>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "tests/cli_chat.h"
#include "tests/pty_process.h"
#include "tools/chat/line_editor.h"

namespace outrider::testing {
namespace {

// On a terminal. `term`: with "dumb" lines are the terminal's own, else libedit's if built in.
class CliChatTerminal : public ::testing::TestWithParam<const char*> {
 protected:
  CliCall call(const std::vector<std::string>& more = {}) const {
    CliCall call = chat_call(more);
    call.environment["TERM"] = GetParam();
    return call;
  }
};

// Up to its first prompt.
void wait_until_asked(PtyProcess& chat) {
  chat.expect("Ctrl-D ends.");
  chat.expect("> ");
}

void ask_once_and_end(PtyProcess& chat) {
  wait_until_asked(chat);
  chat.type("hello\r/stats\r");
  chat.expect("answers       1");
  chat.expect("> ");
  chat.type("\x04");
  EXPECT_EQ(chat.wait(), 0) << chat.screen();
}

TEST_P(CliChatTerminal, AQuestionIsAnsweredAndCtrlDEnds) {
  PtyProcess chat(call());
  wait_until_asked(chat);
  chat.type("hello\r/stats\r");
  EXPECT_NE(chat.expect("answers       1").find("hello"), std::string::npos) << "what was typed";
  chat.expect("> ");
  chat.type("\x04");
  EXPECT_EQ(chat.wait(), 0) << chat.screen();
}

TEST_P(CliChatTerminal, CtrlCStopsTheAnswerAndKeepsWhatWasSaid) {
  const CliFolder folder;
  const std::string file = folder.path("c.json");
  PtyProcess chat(
      call({"-c", "32768", "-n", "-1", "--ignore-eos", "--width", "4", "--color=always"}));
  chat.expect("> ");
  chat.type("hello\r");
  chat.expect("\033[32m");  // a guess: it speaks
  chat.type("\x03");
  chat.expect("(stopped)");
  chat.type("/save " + file + "\r");
  chat.expect("saved 2 messages");
  const std::vector<std::string> messages = saved(file);
  ASSERT_EQ(messages.size(), 2U);
  EXPECT_GT(messages[1].size(), std::string("assistant:").size());
  chat.type("/exit\r");
  EXPECT_EQ(chat.wait(), 0) << chat.screen();
}

// Looking for a draft beside the target must not leave threads that take the signal.
TEST_P(CliChatTerminal, CtrlCStopsTheAnswerWhereNoDraftIsGivenAndOtherModelsLieBeside) {
  const CliModels& models = cli_models();
  CliCall alone =
      models.folder.call({"chat", "-m", models.target, "-c", "32768", "-n", "-1", "--ignore-eos",
                          "--temp", "0", "--color=always", "--no-history"});
  alone.environment["TERM"] = GetParam();
  PtyProcess chat(alone);
  chat.expect("> ");
  chat.type("hello\r");
  chat.expect("\033[3");  // a guess, of what repeats: it speaks
  chat.type("\x03");
  chat.expect("(stopped)");
  chat.type("/exit\r");
  EXPECT_EQ(chat.wait(), 0) << chat.screen();
}

TEST_P(CliChatTerminal, CtrlCAtAnEmptyPromptEndsWhenItComesTwice) {
  PtyProcess chat(call());
  wait_until_asked(chat);
  chat.type("\x03");
  chat.expect("(Ctrl-C again, or Ctrl-D, ends)");
  chat.expect("> ");
  chat.type("/set temp 0\r");  // what comes between makes the next one a first one
  chat.expect("temp is 0");
  chat.expect("> ");
  chat.type("\x03");
  chat.expect("ends)");
  chat.expect("> ");
  chat.type("\x03");
  EXPECT_EQ(chat.wait(), 130) << chat.screen();
}

TEST_P(CliChatTerminal, APasteOfManyLinesIsOneMessage) {
  const CliFolder folder;
  const std::string file = folder.path("c.json");
  PtyProcess chat(call());
  chat.expect("> ");
  chat.type("see: \033[200~one\r/two\r\tthree\033[201~!\r/save " + file + "\r");
  chat.expect("saved 2 messages");
  const std::vector<std::string> messages = saved(file);
  ASSERT_EQ(messages.size(), 2U) << chat.screen();
  EXPECT_EQ(messages[0], "user:see: one\n/two\n\tthree!");
  // A tab has a width that depends on where it is, of which libedit loses count.
  if (std::string(GetParam()) != "dumb") {
    EXPECT_NE(chat.screen().find("\xE2\x90\x89three"), std::string::npos) << chat.screen();
  }
  chat.type("\x04");
  EXPECT_EQ(chat.wait(), 0);
}

TEST_P(CliChatTerminal, ABackslashGoesOnInALineWithItsOwnPrompt) {
  const CliFolder folder;
  const std::string file = folder.path("c.json");
  PtyProcess chat(call());
  chat.expect("> ");
  chat.type("one\\\r");
  chat.expect(". ");
  chat.type("two\r/save " + file + "\r");
  chat.expect("saved 2 messages");
  EXPECT_EQ(saved(file).front(), "user:one\ntwo");
  chat.type("\x04");
  EXPECT_EQ(chat.wait(), 0);
}

TEST_P(CliChatTerminal, SigtermEndsAtThePrompt) {
  PtyProcess chat(call());
  wait_until_asked(chat);
  kill(chat.pid(), SIGTERM);
  EXPECT_EQ(chat.wait(), 143) << chat.screen();
}

TEST_P(CliChatTerminal, WhatIsNoFileIsNotWaitedForByLoad) {
  const CliFolder folder;
  ASSERT_EQ(mkfifo(folder.path("fifo").c_str(), 0600), 0);
  PtyProcess chat(call());
  wait_until_asked(chat);
  chat.type("/load " + folder.path("fifo") + "\r");
  chat.expect("no regular file");
  chat.expect("> ");
  chat.type("/load -\r");
  chat.expect("a file of that name is ./-");
  chat.expect("> ");
  chat.type("/exit\r");
  EXPECT_EQ(chat.wait(), 0) << chat.screen();
}

TEST_P(CliChatTerminal, CtrlZGivesTheTerminalBackAndFgGoesOn) {
  const CliFolder folder;
  const std::string file = folder.path("c.json");
  PtyProcess chat(call(), PtyProcess::By::kShell);
  wait_until_asked(chat);
  chat.type("\x1a");
  chat.expect("[stopped]");
  chat.type("fg\r");
  chat.type("hello\r/save " + file + "\r");
  chat.expect("saved 2 messages");
  EXPECT_EQ(saved(file).front(), "user:hello") << chat.screen();
  chat.type("\x04");
  EXPECT_EQ(chat.wait(), 0) << chat.screen();
}

TEST_P(CliChatTerminal, CtrlZInAnAnswerStopsItAndFgGoesOnWithTheAnswer) {
  PtyProcess chat(
      call({"-c", "32768", "-n", "-1", "--ignore-eos", "--width", "4", "--color=always"}),
      PtyProcess::By::kShell);
  chat.expect("> ");
  chat.type("hello\r");
  chat.expect("\033[32m");  // a guess: it speaks
  chat.type("\x1a");
  chat.expect("[stopped]");
  chat.type("fg\r");
  chat.expect("\033[32m");
  chat.type("\x03");
  chat.expect("(stopped)");
  chat.expect("> ");
  chat.type("/exit\r");
  EXPECT_EQ(chat.wait(), 0) << chat.screen();
}

TEST_P(CliChatTerminal, WhatIsTypedAheadIsNotLost) {
  PtyProcess chat(call());
  chat.type("hello\r/stats\r");  // while it loads
  chat.expect("answers       1");
  chat.type("/set temp 0\r\x04");
  chat.expect("temp is 0");
  EXPECT_EQ(chat.wait(), 0);
}

TEST_P(CliChatTerminal, CtrlCAtThePromptForgetsTheLine) {
  const CliFolder folder;
  PtyProcess chat(call());
  wait_until_asked(chat);
  chat.type("forget this\\\r");
  chat.expect(". ");
  chat.type("\x03");
  chat.expect("> ");
  chat.type("/set temp 0\r");
  chat.expect("temp is 0");
  chat.expect("> ");
  chat.type("\x04");
  EXPECT_EQ(chat.wait(), 0);
}

TEST_P(CliChatTerminal, WhatIsNoTextIsNoCrash) {
  PtyProcess chat(call());
  wait_until_asked(chat);
  chat.type("a\xFF\xC3(b\r");
  chat.expect("> ");
  chat.type("/set temp 0\r");
  chat.expect("temp is 0");
  chat.type(std::string(1000, 'x') + "\r/stats\r");
  chat.expect("this chat");
  chat.type("/exit\r");
  EXPECT_EQ(chat.wait(), 0);
}

TEST_P(CliChatTerminal, AnotherWidthOfTheWindowKeepsTheLine) {
  PtyProcess chat(call());
  wait_until_asked(chat);
  chat.type("/set ");
  chat.resize(24, 10);
  chat.type("temperature ");
  chat.resize(24, 100);
  chat.type("\x15/set temp 0\r");  // Ctrl-U
  chat.expect("temp is 0");
  chat.type("\x04");
  EXPECT_EQ(chat.wait(), 0);
}

TEST_P(CliChatTerminal, AnErrorIsBrokenBetweenWords) {
  PtyProcess chat(call());
  chat.expect("> ");
  chat.resize(24, 40);
  chat.type("/nonsense\r");
  const std::string said = chat.expect("/exit");
  const std::size_t error = said.find("outrider: error: ");
  ASSERT_NE(error, std::string::npos) << said;
  for (std::size_t at = error; at < said.size();) {
    const std::size_t end = std::min(said.find("\r\n", at), said.size());
    EXPECT_LE(end - at, 40U) << said.substr(at, end - at);
    at = end + 2;
  }
  chat.type("/quit\r");
  EXPECT_EQ(chat.wait(), 0);
}

TEST_P(CliChatTerminal, TheLegendNamesOnlyDraftersThatAreThere) {
  PtyProcess chat(call({"--color=always", "--width", "4"}));
  chat.expect("> ");
  chat.type("/help\r");
  const std::string said = chat.expect("none.");
  EXPECT_NE(said.find("draft-model"), std::string::npos) << said;
  EXPECT_EQ(said.find("eagle3"), std::string::npos) << said;
  EXPECT_EQ(said.find("mtp"), std::string::npos) << said;
  chat.type("\x04");
  EXPECT_EQ(chat.wait(), 0);
}

TEST_P(CliChatTerminal, ThoughtsAreDimmedWhereTheTerminalCan) {
  const CliFolder folder;
  CliCall asks = thinking_call(folder, {});
  asks.environment["TERM"] = GetParam();
  PtyProcess chat(asks);
  chat.expect("> ");
  chat.type("hello\r");
  const std::string said = chat.expect("Yes.");
  const bool dumb = std::string(GetParam()) == "dumb";
  EXPECT_NE(said.find(dumb ? "(thinking)\r\nHm." : "\033[0;2mHm."), std::string::npos) << said;
  EXPECT_EQ(said.find("think>"), std::string::npos) << said;
  chat.type("\x04");
  EXPECT_EQ(chat.wait(), 0);
}

TEST_P(CliChatTerminal, ColoursAreForTerminalsThatTakeThem) {
  PtyProcess chat(call({"--color", "--width", "4"}));
  chat.expect("> ");
  chat.type("/help\rhello\r/stats\r");
  const std::string said = chat.expect("this chat");
  const bool dumb = std::string(GetParam()) == "dumb";
  EXPECT_EQ(said.find("\033[") == std::string::npos, dumb) << said;
  EXPECT_EQ(said.find("\033[32mdraft-model") == std::string::npos, dumb) << said;
  chat.type("\x04");
  EXPECT_EQ(chat.wait(), 0);
  CliCall plain = call({"--color"});
  plain.environment["NO_COLOR"] = "1";
  PtyProcess none(plain);
  none.expect("> ");
  none.type("hello\r/stats\r");
  EXPECT_EQ(none.expect("this chat").find("\033[3"), std::string::npos);
  none.type("\x04");
  EXPECT_EQ(none.wait(), 0);
}

// Both have read the history before either writes it.
TEST_P(CliChatTerminal, OfTwoChatsAtOnceBothLeaveTheirMessagesInTheHistory) {
  const CliFolder folder;
  const std::string file = folder.path("history");
  PtyProcess one(call({"--history", file}));
  PtyProcess other(call({"--history", file}));
  for (PtyProcess* chat : {&one, &other}) wait_until_asked(*chat);
  one.type("said-in-the-first\r/stats\r");
  one.expect("answers       1");
  other.type("said-in-the-second\r/stats\r");
  other.expect("answers       1");
  for (PtyProcess* chat : {&one, &other}) {
    chat->expect("> ");
    chat->type("\x04");
    EXPECT_EQ(chat->wait(), 0) << chat->screen();
  }
  if (std::string(GetParam()) == "dumb") {
    EXPECT_FALSE(std::filesystem::exists(file)) << "only edited lines have a history";
    return;
  }
  EXPECT_EQ(other.screen().find("warning"), std::string::npos) << other.screen();
  if (!tools::has_line_editor()) GTEST_SKIP() << "built without libedit";
  const std::string kept = read_file(file);
  EXPECT_NE(kept.find("said-in-the-first"), std::string::npos) << kept;
  EXPECT_NE(kept.find("said-in-the-second"), std::string::npos) << kept;
  PtyProcess next(call({"--history", file}));  // has them at its arrow keys
  wait_until_asked(next);
  next.type("\033[A\033[A\033[A\033[A\r/save " + folder.path("c.json") + "\r");
  next.expect("saved 2 messages");
  EXPECT_EQ(saved(folder.path("c.json")).front(), "user:said-in-the-first");
  next.type("\x04");
  EXPECT_EQ(next.wait(), 0) << next.screen();
}

TEST_P(CliChatTerminal, TheHistoryBecomesItsOwnersAloneALinkToItStaysOneAndTheLockIsTheFiles) {
  const CliFolder folder;
  using std::filesystem::perms;
  const std::string file = folder.write("history", "_HiStOrY_V2_\nearlier\n");  // not by a chat
  std::filesystem::permissions(
      file, perms::owner_read | perms::owner_write | perms::group_read | perms::others_read);
  const std::string link = folder.path("link");
  std::filesystem::create_symlink(file, link);
  folder.write("history.4000000-0.part", "of a chat that was killed");
  PtyProcess chat(call({"--history", link}));
  ask_once_and_end(chat);
  if (std::string(GetParam()) == "dumb") return;
  if (!tools::has_line_editor()) GTEST_SKIP() << "built without libedit";
  EXPECT_TRUE(std::filesystem::is_symlink(link));
  // One lock for all names of the file, so that two chats never hold different ones; and nothing of
  // the one that was killed.
  std::set<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(folder.path(""))) {
    names.insert(entry.path().filename().string());
  }
  EXPECT_EQ(names, (std::set<std::string>{"history", "history.lock", "link"}));
  EXPECT_NE(read_file(file).find("earlier\nhello\n"), std::string::npos) << read_file(file);
  EXPECT_EQ(std::filesystem::status(file).permissions(), perms::owner_read | perms::owner_write);
}

TEST_P(CliChatTerminal, AFileThatIsNoHistoryStaysAsItIs) {
  const CliFolder folder;
  const std::string notes = folder.write("notes.txt", "my notes\n");
  PtyProcess chat(call({"--history", notes}));
  ask_once_and_end(chat);
  EXPECT_EQ(read_file(notes), "my notes\n");
  if (std::string(GetParam()) == "dumb" || !tools::has_line_editor()) return;
  EXPECT_NE(chat.screen().find("no history that can be read"), std::string::npos) << chat.screen();
}

INSTANTIATE_TEST_SUITE_P(Terminals, CliChatTerminal, ::testing::Values("xterm", "dumb"));

}  // namespace
}  // namespace outrider::testing
