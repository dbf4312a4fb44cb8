// outrider chat through pipes, as a script has it. (On a terminal: cli_chat_terminal_test.cc.)
#include <signal.h>

#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "tests/cli_chat.h"

namespace outrider::testing {
namespace {

using json::Json;

CliResult chat(const std::string& input, const std::vector<std::string>& more = {}) {
  return run_cli(chat_call(more, input));
}

// The result objects of --json, one a line.
std::vector<Json> answers(const std::string& input, std::vector<std::string> more = {}) {
  more.emplace_back("--json");
  const CliResult result = chat(input, more);
  std::vector<Json> objects;
  const std::string error = json::parse_lines(result.out, [&](const Json& object, std::size_t) {
    objects.push_back(object);
    return std::string();
  });
  EXPECT_EQ(error, "") << result.out;
  return objects;
}

std::string text_of(const Json& answer) { return answer["text"].get<std::string>(); }

TEST(CliChat, EachLineOfAPipeIsAnsweredAndStdoutHoldsOnlyAnswers) {
  const std::vector<Json> objects = answers("one\n\ntwo\n");
  ASSERT_EQ(objects.size(), 2U);
  const CliResult plain = chat("one\n\ntwo\n");
  EXPECT_EQ(plain.exit_code, 0) << plain.err;
  EXPECT_EQ(plain.err, "");
  const auto line = [](const std::string& text) {
    return text.empty() || text.back() == '\n' ? text : text + "\n";
  };
  const std::string expected = line(text_of(objects[0])) + line(text_of(objects[1]));
  EXPECT_EQ(json::encode(Json(plain.out)), json::encode(Json(expected)));
  EXPECT_GT(objects[1]["usage"]["prompt_tokens"], objects[0]["usage"]["prompt_tokens"])
      << "the second question comes with the first turn";
  EXPECT_GT(objects[1]["usage"]["cached_tokens"], 0) << "which is not read again";
}

TEST(CliChat, TheFirstMessageAndTheSystemMessageMayBeOptions) {
  const std::vector<Json> objects = answers("two\n", {"-p", "one", "--system", "be brief"});
  ASSERT_EQ(objects.size(), 2U);
  EXPECT_EQ(text_of(objects[0]), text_of(answers("/system be brief\none\n")[0]));
  EXPECT_NE(objects[0]["usage"]["prompt_tokens"], answers("one\n")[0]["usage"]["prompt_tokens"]);
}

TEST(CliChat, AStandardInputThatIsClosedIsAnErrorAndNoEndlessWait) {
  CliCall call = chat_call({"-p", "one"});
  call.closed = {0};
  const CliResult result = run_cli(call);
  EXPECT_EQ(result.exit_code, 1) << result.err;
  EXPECT_NE(result.out, "") << "what was asked by -p is answered";
  EXPECT_NE(result.err.find("cannot read standard input"), std::string::npos) << result.err;
}

TEST(CliChat, SeveralLinesAreOneMessage) {
  const CliFolder folder;
  const std::string file = folder.path("c.json");
  const CliResult result =
      chat("a\\\nb\n\"\"\"\nc\n\n/d\n\"\"\"\n\033[200~e\nf\033[201~\n /g\n/save " + file + "\n");
  EXPECT_EQ(result.exit_code, 0) << result.err;
  const std::vector<std::string> messages = saved(file);
  ASSERT_EQ(messages.size(), 8U);
  EXPECT_EQ(messages[0], "user:a\nb");
  EXPECT_EQ(messages[2], "user:c\n\n/d");
  EXPECT_EQ(messages[4], "user:e\nf");
  EXPECT_EQ(messages[6], "user:/g");
}

TEST(CliChat, WhatIsWrongIsNamedAndTheChatGoesOn) {
  const CliResult result = chat("/set top_k many\n/set tpo_k 1\n/sav x\n/save\n/undo now\nhello\n");
  EXPECT_EQ(result.exit_code, 1) << "a script learns of it";
  EXPECT_NE(result.out, "") << "hello was answered";
  for (const char* message :
       {"error: top_k is 'many', but must be a whole number", "did you mean top_k?",
        "there is no command '/sav'; did you mean /save?", "commands are /help, /stats, /set",
        "/save needs its FILE", "/undo takes nothing behind it"}) {
    EXPECT_NE(result.err.find(message), std::string::npos) << message << "\n" << result.err;
  }
}

TEST(CliChat, SettingsCountFromTheNextAnswerOn) {
  const std::vector<Json> objects =
      answers("/set max_tokens 5\none\n/set max_tokens default\n/set drafter none\n/undo\none\n",
              {"-n", "9"});
  ASSERT_EQ(objects.size(), 2U);
  EXPECT_EQ(objects[0]["tokens"].size(), 5U);
  EXPECT_EQ(objects[0]["speculation"]["enabled"], true);
  EXPECT_EQ(objects[1]["speculation"]["enabled"], false);
  EXPECT_EQ(text_of(objects[1]).rfind(text_of(objects[0]), 0), 0U) << "the same text, further";
  const CliResult listed = chat("/set temp 0.5\n/set\n/set temp\n/set temp default\n/set\n",
                                {"-n", "-1", "--seed", "-1", "--width", "auto"});
  EXPECT_NE(listed.err.find("temp                  0.5\n"), std::string::npos) << listed.err;
  EXPECT_NE(listed.err.find("all settings have their defaults"), std::string::npos) << listed.err;
}

TEST(CliChat, WhatWasOffAtFirstCanBeSwitchedOn) {
  const std::vector<Json> objects =
      answers("one\n/undo\n/set drafter draft-model\none\n", {"--drafter", "none"});
  ASSERT_EQ(objects.size(), 2U);
  EXPECT_EQ(objects[0]["speculation"]["enabled"], false);
  EXPECT_EQ(objects[1]["speculation"]["enabled"], true);
  EXPECT_EQ(objects[1]["tokens"], objects[0]["tokens"]) << "the seed makes the text";
}

TEST(CliChat, RetryGivesTheSameTextWithTheSameSeedAndUndoTakesBackATurn) {
  const CliFolder folder;
  const std::string file = folder.path("c.json");
  const std::vector<Json> objects =
      answers("one\n/retry\n/set seed 8\n/retry\ntwo\n/undo\n/save " + file + "\n");
  ASSERT_EQ(objects.size(), 4U);
  EXPECT_EQ(objects[1]["tokens"], objects[0]["tokens"]);
  EXPECT_NE(objects[2]["tokens"], objects[0]["tokens"]);
  const std::vector<std::string> messages = saved(file);
  ASSERT_EQ(messages.size(), 2U);
  EXPECT_EQ(messages[0], "user:one");
  const CliResult nothing = chat("/retry\n/undo\n");
  EXPECT_NE(nothing.err.find("no question to answer again"), std::string::npos) << nothing.err;
  EXPECT_NE(nothing.err.find("nothing to take back"), std::string::npos) << nothing.err;
}

TEST(CliChat, ASavedConversationGoesOnAsIfItHadNotStopped) {
  const CliFolder folder;
  const std::string file = folder.path("c.json");
  const std::vector<Json> whole = answers("/system be brief\none\n/save " + file + "\ntwo\n");
  const std::vector<Json> later = answers("/load " + file + "\ntwo\n");
  ASSERT_EQ(whole.size(), 2U);
  ASSERT_EQ(later.size(), 1U);
  EXPECT_EQ(later[0]["tokens"], whole[1]["tokens"]);
  const CliModels& models = cli_models();
  const CliResult compared = run_cli(
      models.folder.call({"compare", "-m", models.target, "--prompts", file, "-n", "4", "--json"}));
  EXPECT_EQ(compared.exit_code, 0) << "it is a prompt file, too: " << compared.err;
  const CliResult bad = chat("/load " + folder.write("bad.json", "{}") + "\n/load none.json\n");
  EXPECT_NE(bad.err.find("bad.json' is no conversation"), std::string::npos) << bad.err;
  EXPECT_NE(bad.err.find("'none.json' does not exist"), std::string::npos) << bad.err;
}

TEST(CliChat, WithJsonAMessageThatFailsHasALineToo) {
  const CliResult result =
      chat("one\n\xFF\n" + std::string(4000, 'x') + "\ntwo\n", {"--json", "-c", "512"});
  EXPECT_EQ(result.exit_code, 1) << result.err;
  std::vector<Json> lines;
  const std::string wrong = json::parse_lines(result.out, [&](const Json& object, std::size_t) {
    lines.push_back(object);
    return std::string();
  });
  EXPECT_EQ(wrong, "") << result.out;
  ASSERT_EQ(lines.size(), 4U) << result.out;
  EXPECT_TRUE(lines[0].contains("text"));
  EXPECT_EQ(lines[1]["error"]["code"], "invalid_argument");
  EXPECT_NE(lines[1]["error"]["message"].get<std::string>().find("UTF-8"), std::string::npos);
  EXPECT_EQ(lines[2]["error"]["field"], "prompt");
  EXPECT_TRUE(lines[3].contains("text"));
}

TEST(CliChat, AnEditorsMarkInFrontOfAFileIsNoPartOfTheFirstLine) {
  const std::string lines = "/system be brief\none\n";
  const std::vector<Json> marked = answers("\xEF\xBB\xBF" + lines);
  ASSERT_EQ(marked.size(), 1U);
  EXPECT_EQ(marked[0]["tokens"], answers(lines)[0]["tokens"]);
}

TEST(CliChat, OnlyConversationsAndEmptyFilesAreReplaced) {
  const CliFolder folder;
  const std::string notes = folder.write("notes.md", "# notes\n");
  const std::string empty = folder.write("empty", "");
  const std::string& model = cli_models().target;
  const std::string weights = read_file(model);
  CliCall call = chat_call({}, "one\n/save " + model + "\n/save " + notes + "\n/save " + empty +
                                   "\n/clear\n/save ~/empty\n/load ~/empty\n");
  call.environment["HOME"] = folder.path(".");
  const CliResult result = run_cli(call);
  EXPECT_EQ(result.exit_code, 1) << result.err;
  EXPECT_NE(result.err.find("which this command reads"), std::string::npos) << result.err;
  EXPECT_NE(result.err.find("/save would replace a file of another kind"), std::string::npos)
      << result.err;
  EXPECT_NE(result.err.find("saved 2 messages"), std::string::npos) << result.err;
  EXPECT_NE(result.err.find("loaded 0 messages"), std::string::npos) << result.err;
  EXPECT_EQ(read_file(notes), "# notes\n");
  EXPECT_TRUE(read_file(model) == weights);
  EXPECT_TRUE(saved(empty).empty()) << "an older conversation is replaced";
}

TEST(CliChat, StatsAreOfTheLastAnswerAndOfTheChat) {
  const CliResult result = chat("/stats\none\ntwo\n/stats\n");
  for (const char* words :
       {"no answer yet", "last answer\nprompt ", "speculation   draft-model, suffix", "exactness ",
        "\nthis chat\nanswers       2\n", "of them read before", "tokens/s)", "tokens each",
        "  draft-model ", "of the drafted tokens"}) {
    EXPECT_NE(result.err.find(words), std::string::npos) << words << "\n" << result.err;
  }
  const CliResult off = chat("one\n/stats\n", {"--drafter", "none"});
  EXPECT_NE(off.err.find("speculation   off: the request asked"), std::string::npos) << off.err;
}

TEST(CliChat, AFullContextIsSaidWithTheWaysOut) {
  const std::vector<std::string> small = {"-c", "96", "-n", "-1", "--ignore-eos"};
  const CliResult full = chat("hello\nagain\n", small);
  EXPECT_EQ(full.exit_code, 1) << "the second question has no room";
  EXPECT_NE(full.err.find("(the context of 96 tokens is full: /clear"), std::string::npos)
      << full.err;
  EXPECT_NE(full.err.find("the conversation is too long: /clear"), std::string::npos) << full.err;
  const CliResult cleared = chat("hello\n/clear\nagain\n", small);
  EXPECT_EQ(cleared.exit_code, 0) << cleared.err;
  const CliResult shifting =
      chat("hello\nagain\n", {"-c", "96", "-n", "60", "--ignore-eos", "--shift-keep", "8"});
  EXPECT_EQ(shifting.exit_code, 0) << shifting.err;
  EXPECT_NE(shifting.err.find("the oldest text was left out"), std::string::npos) << shifting.err;
}

TEST(CliChat, AModelWithoutATemplateChatsInChatMlWithAWarning) {
  const CliFolder folder;
  TinyModelOptions options;
  options.vocabulary.chat_template = false;
  ASSERT_TRUE(write_tiny_gguf(folder.path("plain.gguf"), options).ok());
  CliCall call = folder.call({"chat", "-m", folder.path("plain.gguf"), "-n", "8"});
  call.input = "hello\n";
  const CliResult result = run_cli(call);
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_NE(result.out, "");
  EXPECT_NE(result.err.find("carries no chat template: conversations are written in ChatML"),
            std::string::npos)
      << result.err;
}

TEST(CliChat, CtrlCEndsAScript) {
  CliCall call = chat_call({"-n", "-1", "--ignore-eos", "-c", "32768"}, "one\ntwo\n");
  bool sent = false;
  call.on_output = [&](pid_t child, const std::string& out, const std::string&) {
    if (!sent && out.size() > 30) kill(child, SIGINT);
    sent = sent || out.size() > 30;
    return true;
  };
  const CliResult result = run_cli(call);
  EXPECT_EQ(result.exit_code, 130) << result.err;
}

TEST(CliChat, ThoughtsAreKeptApartFromTheAnswer) {
  const CliFolder folder;
  const std::string file = folder.path("c.json");
  CliCall call = thinking_call(folder, {});
  call.input = "hello\n/save " + file + "\nagain\n";
  const CliResult result = run_cli(call);
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_EQ(result.out, "Yes.\nYes.\n");
  const json::Parsed parsed = json::parse(read_file(file));
  ASSERT_TRUE(parsed.ok()) << parsed.error;
  const Json& said = (*parsed.value)["messages"][1];
  EXPECT_EQ(said["content"], "Yes.");
  EXPECT_EQ(said["reasoning_content"], "Hm.\n");
  call.input = "/load " + file + "\n/save " + file + "2\n";
  EXPECT_EQ(run_cli(call).exit_code, 0);
  EXPECT_EQ(read_file(file + "2"), read_file(file));
  CliCall cut = thinking_call(folder, {"-n", "9"});
  cut.input = "hello\n";
  const CliResult thinks = run_cli(cut);
  EXPECT_EQ(thinks.out, "");
  EXPECT_NE(thinks.err.find("ended while the model was thinking"), std::string::npos) << thinks.err;
}

TEST(CliChat, WhereAThoughtHasOnlyBegunNothingJoinsTheConversation) {
  const CliFolder folder;
  const std::string file = folder.path("c.json");
  CliCall call = thinking_call(folder, {});
  call.input = "hello\n/set max_tokens 1\n/retry\nagain\n/save " + file + "\n";
  const CliResult result = run_cli(call);
  EXPECT_EQ(result.exit_code, 0) << result.err;
  for (const char* words : {"(it ended before anything was said; the earlier answer stays)",
                            "(it ended before anything was said; the question is taken back)"}) {
    EXPECT_NE(result.err.find(words), std::string::npos) << words << "\n" << result.err;
  }
  EXPECT_EQ(saved(file), (std::vector<std::string>{"user:hello", "assistant:Yes."}));
}

}  // namespace
}  // namespace outrider::testing
