#include "llama/chat/chat_template.h"

#include <exception>
#include <utility>

#include "chat.h"
#include "llama.h"
#include "llama/base/backend.h"
#include "llama/chat/bounded_template.h"
#include "llama/chat/call_grammar.h"
#include "llama/chat/chat_inputs.h"
#include "llama/chat/llama_chat_reader.h"
#include "llama/chat/plain_tools.h"

namespace outrider::llama {
namespace {

// An answer that is all content: what is left where llama-common cannot find out a format.
common_chat_params apply_plainly(const common_chat_templates* templates,
                                 common_chat_templates_inputs inputs) {
  inputs.force_pure_content = true;
  return common_chat_templates_apply(templates, inputs);
}

// Throws what llama-common throws. A format that cannot be found out is an error only where it
// matters: with tools and schemas.
common_chat_params apply(const common_chat_templates* templates,
                         const common_chat_templates_inputs& inputs) {
  if (!inputs.tools.empty() || !inputs.json_schema.empty()) {
    return common_chat_templates_apply(templates, inputs);
  }
  try {
    return common_chat_templates_apply(templates, inputs);
  } catch (const std::invalid_argument&) {  // "Unable to generate parser for this template"
    return apply_plainly(templates, inputs);
  }
}

ReasoningMarks reasoning_marks(const common_chat_params& params) {
  ReasoningMarks marks;
  if (!params.supports_thinking || params.thinking_end_tags.empty()) return marks;
  marks.begin = params.thinking_start_tag;
  marks.end = params.thinking_end_tags;
  if (marks.begin.empty()) return marks;
  const std::string& prompt = params.generation_prompt;
  const std::size_t begun = prompt.rfind(marks.begin);
  marks.open = begun != std::string::npos;
  for (const std::string& end : marks.end) {
    marks.open = marks.open && prompt.find(end, begun) == std::string::npos;
  }
  return marks;
}

ChatGrammar grammar_of(const common_chat_params& params) {
  ChatGrammar grammar;
  grammar.gbnf = params.grammar;
  if (grammar.gbnf.empty()) return grammar;
  if (!params.grammar_lazy) {
    grammar.said = params.generation_prompt;
    return grammar;
  }
  grammar.reasoning = reasoning_marks(params);
  for (const common_grammar_trigger& trigger : params.grammar_triggers) {
    switch (trigger.type) {
      case COMMON_GRAMMAR_TRIGGER_TYPE_WORD:
      case COMMON_GRAMMAR_TRIGGER_TYPE_TOKEN:
        grammar.triggers.push_back(trigger.value);
        break;
      case COMMON_GRAMMAR_TRIGGER_TYPE_PATTERN:
        grammar.patterns.push_back(trigger.value);
        break;
      case COMMON_GRAMMAR_TRIGGER_TYPE_PATTERN_FULL:
        grammar.patterns.push_back("^(?:" + trigger.value + ")$");
        break;
    }
  }
  return grammar;
}

Status refused_by_template(const std::exception& error) {
  return invalid_argument(std::string("the model's chat template refuses these messages: ") +
                          error.what())
      .about("messages");
}

// Whether the answer's content stands alone, so that a schema can hold from its beginning.
bool marks_content(const common_chat_templates* templates) {
  return common_chat_templates_support_enable_thinking(templates);
}

}  // namespace

ChatTemplate::ChatTemplate(const llama_model* model) : model_(model) {}
ChatTemplate::~ChatTemplate() = default;

Result<const common_chat_templates*> ChatTemplate::templates() const {
  std::call_once(once_, [this] {
    if (llama_model_chat_template(model_, /*name=*/nullptr) == nullptr) {
      status_ = unsupported("the model carries no chat template; give a plain prompt");
      return;
    }
    Result<std::shared_ptr<const common_chat_templates>> read = read_templates(model_);
    if (read.ok()) templates_ = std::move(*read);
    status_ = read.status();
  });
  if (!status_.ok()) return status_;
  return templates_.get();
}

std::string ChatTemplate::source() const {
  const char* text = llama_model_chat_template(model_, /*name=*/nullptr);
  return text != nullptr ? text : "";
}

ChatAbilities ChatTemplate::abilities() const {
  const Result<const common_chat_templates*> templates = this->templates();
  if (!templates.ok()) return {};
  const LogSink no_sink;
  const LogCapture log(no_sink);
  const TemplateBudget budget(/*n_given=*/0);
  ChatAbilities abilities;
  try {
    std::map<std::string, bool> caps = common_chat_templates_get_caps(*templates);
    // Some write calls and leave the description of tools to others: llama-common's list of
    // formats.
    abilities.tools = caps["supports_tool_calls"];
    abilities.reasoning = common_chat_templates_support_enable_thinking(*templates);
  } catch (const std::exception&) {  // a template that needs more than one short message
  }
  return abilities;
}

Result<ChatPrompt> ChatTemplate::prompt(const std::vector<ChatMessage>& messages,
                                        const ChatOptions& options) const {
  const bool calls = !options.tools.empty() && options.tool_choice != ToolChoice::kNone;
  return calls && !abilities().tools ? prompt_with_plain_tools(messages, options)
                                     : own_prompt(messages, options);
}

Result<ChatPrompt> ChatTemplate::prompt_with_plain_tools(const std::vector<ChatMessage>& messages,
                                                         const ChatOptions& options) const {
  // Checked as they were given.
  const Result<common_chat_templates_inputs> inputs = chat_inputs(messages, options);
  if (!inputs.ok()) return inputs.status();
  Result<ChatGrammar> grammar = plain_tool_grammar(options);
  if (!grammar.ok()) return grammar.status();
  ChatOptions without = options;
  without.tools.clear();
  Result<ChatPrompt> prompt = own_prompt(describe_tools(messages, options), without);
  if (!prompt.ok()) return prompt.status();
  prompt->grammar = std::move(*grammar);
  prompt->reader = plain_tool_reader();
  return prompt;
}

Result<ChatPrompt> ChatTemplate::own_prompt(const std::vector<ChatMessage>& messages,
                                            const ChatOptions& options) const {
  const Result<const common_chat_templates*> templates = this->templates();
  if (!templates.ok()) return templates.status();
  Result<common_chat_templates_inputs> inputs = chat_inputs(messages, options);
  if (!inputs.ok()) return inputs.status();
  const LogSink no_sink;
  const LogCapture log(no_sink);
  const TemplateBudget budget(input_bytes(*inputs));
  try {
    if (!inputs->json_schema.empty() && !marks_content(*templates)) inputs->json_schema.clear();
    common_chat_params params = apply(*templates, *inputs);
    ChatPrompt prompt;
    prompt.grammar = grammar_of(params);
    if (!options.tools.empty()) narrow_to_calls(params, options, prompt.grammar);
    prompt.reader = make_chat_reader(params, options.continue_last);
    prompt.text = std::move(params.prompt);
    prompt.stop = std::move(params.additional_stops);
    prompt.shown = std::move(params.preserved_tokens);
    return prompt;
  } catch (const std::exception& error) {
    if (budget.exceeded()) return unsupported(budget.why()).about("messages");
    return refused_by_template(error);
  }
}

}  // namespace outrider::llama
