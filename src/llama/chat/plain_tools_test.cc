// Tools in words: what the model is told, what it is held to, and what is read.
#include "llama/chat/plain_tools.h"

#include <gtest/gtest.h>

#include <memory>
#include <regex>

#include "llama/schema/json_schema.h"

namespace outrider::llama {
namespace {

const ChatOptions kOptions{
    .tools = {{.name = "weather",
               .description = "of a city",
               .parameters = R"({"type":"object","properties":{"city":{"type":"string"}}})"}}};

std::vector<ChatMessage> described(const std::vector<ChatMessage>& messages) {
  return describe_tools(messages, kOptions, chat_inputs({}, kOptions)->tool_schemas);
}

Result<ChatGrammar> grammar_of(const ChatOptions& options) {
  OUTRIDER_ASSIGN_OR_RETURN(const ChatInputs inputs, chat_inputs({}, options));
  return plain_tool_grammar(options, inputs.tool_schemas, inputs.rules);
}

TEST(PlainTools, TheToolsStandInTheSystemMessage) {
  const std::vector<ChatMessage> user = {{.role = "user", .content = "Is it raining?"}};
  const std::vector<ChatMessage> alone = described(user);
  ASSERT_EQ(alone.size(), 2U);
  EXPECT_EQ(alone[0].role, "system");
  EXPECT_NE(alone[0].content.find(R"("name":"weather")"), std::string::npos);
  EXPECT_EQ(alone[1].content, "Is it raining?");

  const std::vector<ChatMessage> behind =
      described({{.role = "system", .content = "Be short."}, user[0]});
  ASSERT_EQ(behind.size(), 2U);
  EXPECT_EQ(behind[0].content.find("Be short.\n\nYou can call"), 0U);
}

TEST(PlainTools, CallsAndResultsBecomeMessagesThatAnyTemplateCanWrite) {
  const std::vector<ChatMessage> plain = described(
      {{.role = "user", .content = "And in Paris?"},
       {.role = "assistant",
        .content = "",
        .tool_calls = {{.id = "1", .name = "weather", .arguments = R"({"city":"Paris"})"}}},
       {.role = "tool", .content = "rain", .tool_call_id = "1"}});
  ASSERT_EQ(plain.size(), 4U);
  EXPECT_EQ(plain[2].content,
            R"({"tool_calls":[{"name":"weather","arguments":{"city":"Paris"}}]})");
  EXPECT_TRUE(plain[2].tool_calls.empty());
  EXPECT_EQ(plain[3].role, "user");
  EXPECT_EQ(plain[3].content, "Result of weather: rain");
  // What the model is shown as a call is read as one.
  EXPECT_EQ(plain_tool_reader(false)->read(plain[2].content, true).tool_calls.size(), 1U);
}

// Gemma's template, and others, refuse two messages of one role in a row.
TEST(PlainTools, ResultsAndWhatTheUserSaysBehindThemAreOneMessage) {
  const ChatMessage calls{.role = "assistant",
                          .content = "",
                          .tool_calls = {{.id = "1", .name = "weather", .arguments = "{}"},
                                         {.id = "2", .name = "weather", .arguments = "{}"}}};
  const std::vector<ChatMessage> plain =
      described({{.role = "user", .content = "Here and there?"},
                 calls,
                 {.role = "tool", .content = "rain", .tool_call_id = "1"},
                 {.role = "tool", .content = "sun", .tool_call_id = "2"},
                 {.role = "user", .content = "So?"},
                 {.role = "assistant", .content = "Both."},
                 {.role = "user", .content = "Thanks."}});
  ASSERT_EQ(plain.size(), 6U);
  EXPECT_EQ(plain[3].role, "user");
  EXPECT_EQ(plain[3].content, "Result of weather: rain\n\nResult of weather: sun\n\nSo?");
  EXPECT_EQ(plain[4].content, "Both.");
  EXPECT_EQ(plain[5].content, "Thanks.");
}

// So that an answer may follow in which no call may be made.
TEST(PlainTools, CallsAndResultsAreTextsWithoutADescriptionToo) {
  const std::vector<ChatMessage> called = {
      {.role = "system", .content = "Be short."},
      {.role = "assistant",
       .content = "I look.",
       .tool_calls = {{.id = "1", .name = "weather", .arguments = "{}"}}},
      {.role = "tool", .content = "rain", .tool_call_id = "1"},
      {.role = "user", .content = "So?"}};
  EXPECT_TRUE(has_calls_or_results(called));
  const std::vector<ChatMessage> plain = calls_as_texts(called);
  ASSERT_EQ(plain.size(), 3U);
  EXPECT_EQ(plain[0].content, "Be short.");
  EXPECT_EQ(plain[1].content,
            "I look.\n"
            R"({"tool_calls":[{"name":"weather","arguments":{}}]})");
  EXPECT_EQ(plain[2].role, "user");
  EXPECT_EQ(plain[2].content, "Result of weather: rain\n\nSo?");
  EXPECT_FALSE(has_calls_or_results(plain));
}

// Reasoning up to a '|', and content behind it.
class ReasoningReader : public ChatReader {
 public:
  ChatReply read(std::string_view text, bool /*complete*/) const override {
    const std::size_t mark = text.find('|');
    ChatReply reply;
    reply.reasoning = text.substr(0, mark);
    if (mark != std::string_view::npos) reply.content = text.substr(mark + 1);
    return reply;
  }
};

TEST(PlainTools, ACallThatIsSpokenOfInReasoningIsNone) {
  const auto own = std::make_shared<const ReasoningReader>();
  const std::string call = R"({"tool_calls":[{"name":"weather","arguments":{}}]})";
  const ChatReply thought = plain_tool_reader(false, own)->read("Say " + call + "?|No.", true);
  EXPECT_EQ(thought.reasoning, "Say " + call + "?");
  EXPECT_EQ(thought.content, "No.");
  EXPECT_TRUE(thought.tool_calls.empty());
  const ChatReply called = plain_tool_reader(false, own)->read("Hm.|" + call, true);
  EXPECT_EQ(called.reasoning, "Hm.");
  EXPECT_EQ(called.tool_calls.size(), 1U);
  // Where a grammar held the answer to a call from its beginning.
  EXPECT_EQ(plain_tool_reader(true, own, /*reads_own=*/false)->read(call, true).tool_calls.size(),
            1U);
}

TEST(PlainTools, ARequiredCallIsHeldFromTheBeginningAnyOtherFromItsMark) {
  ChatOptions required = kOptions;
  required.tool_choice = ToolChoice::kRequired;
  EXPECT_TRUE(grammar_of(required)->triggers.empty());
  EXPECT_TRUE(grammar_of(required)->patterns.empty());
  EXPECT_TRUE(grammar_of(kOptions)->triggers.empty());
  ASSERT_EQ(grammar_of(kOptions)->patterns.size(), 1U);
  const std::regex begins(grammar_of(kOptions)->patterns[0]);
  for (const char* call :
       {R"(So: {"tool_calls":)", R"({ "tool_calls" :)", "{\n  \"tool_calls\":"}) {
    EXPECT_TRUE(std::regex_search(call, begins)) << call;
  }
  EXPECT_FALSE(std::regex_search(R"({"tool_call":)", begins));
  ChatOptions wrong = kOptions;
  wrong.tools[0].parameters = R"({"not":{}})";
  EXPECT_TRUE(grammar_of(wrong).ok());
  wrong.tools[0].strict = true;
  EXPECT_EQ(grammar_of(wrong).status().field(), "tools");
}

TEST(PlainTools, ASchemaIsTheOneThatWasReadAndIsNotReadAgain) {
  ChatOptions options = kOptions;
  const Result<ChatInputs> inputs = chat_inputs({}, options);
  ASSERT_TRUE(inputs.ok());
  options.tools[0].parameters = "no schema";
  const std::vector<ChatMessage> plain = describe_tools({}, options, inputs->tool_schemas);
  EXPECT_NE(plain[0].content.find(R"("city")"), std::string::npos) << plain[0].content;
  const Result<ChatGrammar> grammar =
      plain_tool_grammar(options, inputs->tool_schemas, inputs->rules);
  ASSERT_TRUE(grammar.ok()) << grammar.status().message();
  EXPECT_NE(grammar->gbnf.find("city"), std::string::npos) << grammar->gbnf;
}

// Bounds and patterns are rules beside the schema, which has only their marks.
TEST(PlainTools, AValuesRuleComesWithTheSchemaThatHoldsIt) {
  ChatOptions options = kOptions;
  options.tools[0].parameters =
      R"({"properties":{"n":{"type":"integer","minimum":4,"maximum":7}},"required":["n"]})";
  const Result<ChatGrammar> grammar = grammar_of(options);
  ASSERT_TRUE(grammar.ok()) << grammar.status().message();
  EXPECT_NE(grammar->gbnf.find("[4-7]"), std::string::npos) << grammar->gbnf;
}

TEST(PlainTools, AReferenceIsAboutItsOwnTool) {
  ChatOptions options = kOptions;
  options.tools = {{.name = "a",
                    .description = "",
                    .parameters = R"({"properties":{"x":{"$ref":"#/$defs/X"}},)"
                                  R"("$defs":{"X":{"const":"first"}}})",
                    .strict = true},
                   {.name = "b",
                    .description = "",
                    .parameters = R"({"properties":{"x":{"$ref":"#/$defs/X"},"up":{"$ref":"#"}},)"
                                  R"("$defs":{"X":{"const":"second"}}})",
                    .strict = true}};
  const Result<ChatGrammar> grammar = grammar_of(options);
  ASSERT_TRUE(grammar.ok()) << grammar.status().message();
  EXPECT_NE(grammar->gbnf.find("first"), std::string::npos);
  EXPECT_NE(grammar->gbnf.find("second"), std::string::npos);
}

TEST(PlainTools, WhereverTheTextIsCutWhatWasReadOnlyGrows) {
  const std::string call = R"({"tool_calls":[{"name":"weather","arguments":{"city":"a}\"{b"}}]})";
  for (const std::string& text : {call, "Let me see. " + call, "Let me see. " + call + " }",
                                  std::string("{\"tool\": 1} and {\"tool_calls\":[7]}"),
                                  std::string("plain {"), std::string("plain {\"t")}) {
    const ChatReply whole = plain_tool_reader(false)->read(text, true);
    std::string shown;
    for (std::size_t end = 0; end <= text.size(); ++end) {
      const ChatReply part = plain_tool_reader(false)->read(text.substr(0, end), false);
      EXPECT_EQ(part.content.find(shown), 0U) << text.substr(0, end);
      shown = part.content;
      EXPECT_EQ(whole.content.find(shown), 0U) << text.substr(0, end);
      EXPECT_LE(part.tool_calls.size(), whole.tool_calls.size());
    }
    const bool calls = text.find(call) != std::string::npos;
    EXPECT_EQ(whole.tool_calls.size(), calls ? 1U : 0U) << text;
    if (!calls) {
      EXPECT_EQ(whole.content, text);
    } else {
      EXPECT_EQ(whole.tool_calls[0].arguments, R"({"city":"a}\"{b"})");
    }
  }
}

TEST(PlainTools, CallsAreReadWithSpacesWhereverTheirGrammarAllowsThem) {
  const std::string text =
      "{\n  \"tool_calls\" : [ { \"name\" : \"weather\" , \"arguments\" : { \"city\": \"a]}\" } } ,"
      "\n{\"name\":\"weather\",\"arguments\":{}} ]\n}";
  const ChatReply reply = plain_tool_reader(false)->read(text, true);
  EXPECT_EQ(reply.content, "");
  ASSERT_EQ(reply.tool_calls.size(), 2U);
  EXPECT_EQ(reply.tool_calls[0].name, "weather");
  EXPECT_EQ(reply.tool_calls[0].arguments, R"({ "city": "a]}" })");
  EXPECT_EQ(reply.tool_calls[1].arguments, "{}");
}

TEST(PlainTools, ACallThatIsCutIsACallAsFarAsItGoes) {
  const std::string begin = R"(So: {"tool_calls": [{"name": "weather", "arguments": )";
  const std::string arguments = R"({"city": "Rome", "days": [1, {"a": 2}]})";
  for (std::size_t n = 1; n <= arguments.size(); ++n) {
    for (const bool complete : {false, true}) {
      const ChatReply cut =
          plain_tool_reader(false)->read(begin + arguments.substr(0, n), complete);
      EXPECT_EQ(cut.content, "So: ");
      ASSERT_EQ(cut.tool_calls.size(), 1U) << n;
      EXPECT_EQ(cut.tool_calls[0].name, "weather");
      EXPECT_EQ(cut.tool_calls[0].arguments, arguments.substr(0, n));
    }
  }
}

TEST(PlainTools, ACallThatIsCutBeforeItsArgumentsIsNoContent) {
  const std::string call = R"({ "tool_calls": [{"name": "weather", "arguments": )";
  for (std::size_t n = 0; n <= call.size(); ++n) {
    const std::string cut = call.substr(0, n);
    const ChatReply free = plain_tool_reader(false)->read("So: " + cut, true);
    // Less may be the beginning of any object.
    const bool decided = n >= call.find("calls");
    EXPECT_EQ(free.content, decided ? "So: " : "So: " + cut);
    EXPECT_TRUE(free.tool_calls.empty());
    EXPECT_EQ(plain_tool_reader(false)->read("So: " + cut, false).content, "So: ");
    const ChatReply required = plain_tool_reader(true)->read(cut, true);
    EXPECT_EQ(required.content, "") << cut;
    EXPECT_TRUE(required.tool_calls.empty());
  }
}

}  // namespace
}  // namespace outrider::llama
