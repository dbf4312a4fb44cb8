// How often llama-common looks for a template's format, told by the operations that templates take
// (template_budget.h), and that a prompt is the same where it does not.
#include <gtest/gtest.h>

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <functional>
#include <optional>
#include <sstream>
#include <string>
#include <vector>

#include "llama/base/backend.h"
#include "llama/chat/bounded_template.h"
#include "llama/chat/chat_inputs.h"
#include "llama/chat/template_rendering.h"
#include "testing/llama_chat_vocabularies.h"
#include "testing/sanitized.h"

namespace outrider::llama {
namespace {

const std::vector<ChatMessage> kQuestion = {{.role = "user", .content = "Is it raining?"}};
constexpr const char* kObject = R"({"type":"object","properties":{"a":{"type":"string"}}})";
// No grammar can count so far, so that what the prompt says is another schema than the grammar's.
constexpr const char* kBeyond =
    R"({"type":"object","properties":{"a":{"type":"string","maxLength":98765}}})";

std::uint64_t operations_of(const std::function<void()>& work) {
  const std::uint64_t before = TemplateBudget::counted();
  work();
  return TemplateBudget::counted() - before;
}

class ChatTemplateCostTest : public ChatVocabularies {
 protected:
  // Of a prompt after the first one.
  static std::uint64_t prompt_operations(const LlamaVocabulary& v, const ChatOptions& options) {
    std::uint64_t operations = 0;
    for (int i = 0; i < 2; ++i) {
      operations = operations_of([&] {
        const Result<ChatPrompt> made = v.chat_prompt(kQuestion, options);
        EXPECT_TRUE(made.ok()) << made.status().message();
      });
    }
    return operations;
  }
};

// Whatever is asked for beside the message: a second search would double the operations.
TEST_F(ChatTemplateCostTest, AFormatIsLookedForOnceForEachPrompt) {
  for (const char* name : {"Qwen-Qwen3-0.6B", "Qwen-Qwen2.5-7B-Instruct",
                           "meta-llama-Llama-3.1-8B-Instruct", "GLM-4.6"}) {
    const LlamaVocabulary& v = vocabulary(name);
    const double once = static_cast<double>(prompt_operations(v, {}));
    ASSERT_GT(once, 0.0) << name;
    const auto times = [&](const ChatOptions& options) {
      return static_cast<double>(prompt_operations(v, options)) / once;
    };
    ChatOptions options;
    options.tools = {{.name = "look", .description = "Looks.", .parameters = kObject}};
    EXPECT_LT(times(options), 1.75) << name << ", a tool";
    options.tools[0].parameters = kBeyond;
    EXPECT_LT(times(options), 1.75) << name << ", a tool whose schema is said as it was given";
    options.tools.clear();
    options.json_schema = kObject;
    EXPECT_LT(times(options), 1.75) << name << ", a schema";
    // What shows that a second search would be seen.
    options.json_schema.clear();
    options.reasoning_in_content = true;
    EXPECT_GT(times(options), 1.75) << name << ", which takes two";
  }
}

struct Case {
  std::vector<ChatMessage> messages;
  ChatOptions options;
};

std::vector<Case> cases() {
  const ChatTool tool{.name = "look", .description = "Looks.", .parameters = kBeyond};
  const ChatMessage call{.role = "assistant",
                         .content = "",
                         .reasoning = "Hm.",
                         .tool_calls = {{.id = "123456789", .name = "look", .arguments = "{}"}}};
  const ChatMessage result{
      .role = "tool", .content = "rain", .tool_call_id = "123456789", .name = "look"};
  const ChatMessage system{.role = "system", .content = " Be brief.\n"};
  const ChatMessage answer{.role = "assistant", .content = " Yes ", .reasoning = "So it is."};
  const std::vector<ChatMessage> called = {system, kQuestion[0], call, result};
  std::vector<ChatMessage> answered = called;
  answered.push_back(answer);
  std::vector<ChatMessage> again = answered;
  again.push_back(kQuestion[0]);
  std::vector<Case> all = {{kQuestion, {}},
                           {{system, kQuestion[0], answer, kQuestion[0]}, {}},
                           {kQuestion, {.tools = {tool}}},
                           {called, {.tools = {tool}}},
                           {again, {.tools = {tool}}},
                           {answered, {.tools = {tool}}},
                           {again, {.tools = {tool}}}};
  all[4].options.tool_choice = ToolChoice::kNone;
  all[5].options.continue_last = true;
  all[6].options.reasoning = false;
  return all;
}

// The prompt of one case, by a whole apply; nothing: the template refuses it.
std::optional<std::string> whole_text(const common_chat_templates& templates,
                                      const common_chat_templates_inputs& inputs) {
  try {
    return apply_template(templates, inputs).prompt;
  } catch (const std::exception&) {
    return std::nullopt;
  }
}

TEST(TemplateRendering, ThePromptOfEveryTemplateIsThatOfAWholeApply) {
  const testing::TempDir dir;
  const LogSink no_sink;
  const LogCapture log(no_sink);
  int n_templates = 0;
  int n_same = 0;
  int n_cheaper = 0;
  for (const auto& entry : std::filesystem::directory_iterator(OUTRIDER_CHAT_TEMPLATES)) {
    if (entry.path().extension() != ".jinja") continue;
    // A search takes ten times as long there.
    if (n_templates++ % 4 != 0 && testing::kSanitized) continue;
    const std::string name = entry.path().stem();
    std::stringstream source;
    source << std::ifstream(entry.path()).rdbuf();
    testing::TinyModelOptions model;
    model.vocabulary.tokenizer = testing::TinyTokenizer::kBpe;
    model.vocabulary.template_text = source.str();
    ASSERT_TRUE(testing::write_tiny_gguf(dir.file(name), model).ok());
    const Result<std::shared_ptr<ModelFile>> file =
        ModelFile::load_vocabulary(dir.file(name), LoadHooks{});
    ASSERT_TRUE(file.ok()) << file.status().message();
    const auto templates = read_templates((*file)->handle());
    ASSERT_TRUE(templates.ok()) << name << ": " << templates.status().message();
    const TemplateFacts facts;
    for (const Case& c : cases()) {
      const Result<ChatInputs> inputs = chat_inputs(c.messages, c.options);
      ASSERT_TRUE(inputs.ok()) << inputs.status().message();
      const TemplateBudget budget(input_bytes(inputs->common));
      std::optional<std::string> whole;
      const std::uint64_t of_whole =
          operations_of([&] { whole = whole_text(**templates, inputs->common); });
      if (!whole) continue;
      std::string text = facts.text_of(**templates, inputs->common);
      EXPECT_EQ(text, *whole) << name;
      const std::uint64_t of_text =
          operations_of([&] { text = facts.text_of(**templates, inputs->common); });
      EXPECT_EQ(text, *whole) << name << ", once that is known";
      n_cheaper += 3 * of_text < of_whole ? 1 : 0;
      ++n_same;
    }
  }
  EXPECT_GT(n_same, 2 * n_templates / (testing::kSanitized ? 4 : 1));
  EXPECT_GT(n_cheaper, testing::kSanitized ? 5 : 50) << "where no format is looked for";
}

}  // namespace
}  // namespace outrider::llama
