#include "llama/chat/chat_template.h"

#include <exception>
#include <optional>
#include <utility>

#include "chat.h"
#include "llama.h"
#include "llama/base/backend.h"
#include "llama/chat/bounded_template.h"
#include "llama/chat/call_grammar.h"
#include "llama/chat/chat_inputs.h"
#include "llama/chat/either_grammar.h"
#include "llama/chat/llama_chat_reader.h"
#include "llama/chat/plain_tools.h"
#include "llama/chat/retold.h"
#include "llama/chat/template_rendering.h"
#include "llama/chat/untold_tools.h"
#include "llama/schema/json_schema.h"

namespace outrider::llama {
namespace {

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
  if (grammar.gbnf.empty()) {  // what else is to be held may look behind reasoning only
    grammar.reasoning = reasoning_marks(params);
    return grammar;
  }
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

// Whether there is a schema that is the template's to hold: where it says what stands around the
// content, a schema cannot hold from the answer's beginning. To find that out, it is rendered.
Result<bool> holds_schema(const common_chat_templates& templates, const TemplateFacts& facts,
                          const ChatOptions& options) {
  if (options.json_schema.empty()) return false;
  const LogSink no_sink;
  const LogCapture log(no_sink);
  const TemplateBudget budget(/*n_given=*/0);
  try {
    return facts.supports_thinking(templates);
  } catch (const std::exception& error) {
    if (budget.exceeded()) return unsupported(budget.why()).about("messages");
    return refused_by_template(error);
  }
}

bool has_calls(const ChatOptions& options) {
  return !options.tools.empty() && options.tool_choice != ToolChoice::kNone;
}

// With both an answer is either of them; a call that is required leaves no content to be held.
bool is_calls_or_content(const ChatOptions& options) {
  return has_calls(options) && !options.json_schema.empty() &&
         options.tool_choice == ToolChoice::kAuto;
}

// One conversation, for what several renderings of it are made of.
struct Conversation {
  const common_chat_templates& templates;
  const TemplateFacts& facts;
  const ChatInputs& inputs;
  const ChatOptions& options;
  bool schema_is_templates;  // holds_schema()
};

// Else the templates are llama-common's ChatML.
bool carries_template(const llama_model* model) {
  return llama_model_chat_template(model, /*name=*/nullptr) != nullptr ||
         llama_model_chat_template(model, "tool_use") != nullptr;
}

// What ends a turn in ChatML. A model that has it as a text only would go on behind it.
constexpr const char* kChatMlTurnEnd = "<|im_end|>";

// The template's value that a schema is, where llama-common gives it one (DeepSeek V4).
constexpr const char* kSchemaValue = "response_format";

// Whether the template may say the schema. Few do.
bool may_say_schema(const Conversation& c) {
  return c.schema_is_templates &&
         common_chat_templates_source(&c.templates).find(kSchemaValue) != std::string::npos;
}

// The prompt with schemas as they were given. No call is read with what else comes of it, and
// nothing held to it: so the schema is no schema here, of which llama-common would make a grammar
// once more, but a value of the template.
std::string text_as_given(const Conversation& c) {
  common_chat_templates_inputs given = c.inputs.common;
  given.tool_choice = COMMON_CHAT_TOOL_CHOICE_NONE;
  for (std::size_t i = 0; i < c.inputs.given_parameters.size(); ++i) {
    given.tools[i].parameters = c.inputs.given_parameters[i];
  }
  given.json_schema.clear();
  std::string text = c.facts.text_of(c.templates, given);
  if (!may_say_schema(c)) return text;
  common_chat_templates_inputs any_schema = given;
  any_schema.json_schema = R"({"type":"object"})";
  if (c.facts.text_of(c.templates, any_schema) == text) return text;
  given.chat_template_kwargs[kSchemaValue] = c.inputs.given_json_schema;
  return c.facts.text_of(c.templates, given);
}

// Whether that is another prompt than the one of `made`, which was rendered for its grammar.
bool says_otherwise(const Conversation& c, const common_chat_templates_inputs& made) {
  const bool schema = may_say_schema(c) && made.json_schema != c.inputs.given_json_schema;
  return schema || !c.inputs.given_parameters.empty();
}

// Takes everything but calls for content, as it is said.
std::shared_ptr<const ChatReader> raw_reader(const Conversation& c,
                                             common_chat_templates_inputs inputs) {
  inputs.json_schema.clear();
  inputs.reasoning_format = COMMON_REASONING_FORMAT_NONE;
  return make_chat_reader(apply_template(c.templates, inputs), c.options.continue_last);
}

// What holds content to the schema, from the answer's beginning.
Result<ChatGrammar> content_grammar(const Conversation& c) {
  if (c.schema_is_templates) {
    common_chat_templates_inputs content = c.inputs.common;
    content.tool_choice = COMMON_CHAT_TOOL_CHOICE_NONE;
    return grammar_of(apply_template(c.templates, content));
  }
  // Its values' rules come with those of the calls.
  OUTRIDER_ASSIGN_OR_RETURN(
      std::string gbnf,
      grammar_from_convertible(json::Json::parse(c.inputs.common.json_schema), ValueRules()));
  return ChatGrammar{.gbnf = std::move(gbnf)};
}

Result<ChatGrammar> calls_or_content(const Conversation& c) {
  common_chat_templates_inputs required = c.inputs.common;
  required.json_schema.clear();
  required.tool_choice = COMMON_CHAT_TOOL_CHOICE_REQUIRED;
  ChatOptions options = c.options;
  options.tool_choice = ToolChoice::kRequired;
  const common_chat_params params = apply_template(c.templates, required);
  ChatGrammar calls = grammar_of(params);
  narrow_to_calls(params, options, calls);
  OUTRIDER_ASSIGN_OR_RETURN(const ChatGrammar content, content_grammar(c));
  return either(calls, content);
}

// `params`: what came out without a schema beside tools.
Result<ChatGrammar> whole_grammar(const Conversation& c, const common_chat_params& params) {
  ChatGrammar grammar;
  if (is_calls_or_content(c.options)) {
    OUTRIDER_ASSIGN_OR_RETURN(grammar, calls_or_content(c));
  } else {
    grammar = grammar_of(params);
    if (!c.options.tools.empty()) narrow_to_calls(params, c.options, grammar);
  }
  grammar.gbnf = c.inputs.rules.write(grammar.gbnf);
  return grammar;
}

// A schema that is left to the caller holds from the answer's first new token. Where a message goes
// on, what it has said belongs to the content, so the grammar is made here.
Status hold_what_goes_on(const Conversation& c, ChatPrompt& prompt) {
  const bool left_to_caller = prompt.grammar.gbnf.empty() && !c.options.json_schema.empty();
  if (!c.options.continue_last || !left_to_caller) return Status();
  std::string said = prompt.reader->given().content;
  if (said.empty()) return Status();
  OUTRIDER_ASSIGN_OR_RETURN(
      prompt.grammar.gbnf,
      grammar_from_json_schema(c.options.json_schema, keeping_of(c.options.json_schema_strict)));
  prompt.grammar.said = std::move(said);
  return Status();
}

// Whether the message that is to go on has nothing that could. llama-common then writes neither it
// nor what begins an answer (docs/bugs.md), and the model says its header itself.
bool goes_on_from_nothing(const std::vector<ChatMessage>& messages, const ChatOptions& options) {
  if (!options.continue_last || messages.empty()) return false;
  const ChatMessage& last = messages.back();
  return last.role == "assistant" && last.content.empty() && last.reasoning.empty() &&
         last.tool_calls.empty();
}

}  // namespace

ChatTemplate::ChatTemplate(const llama_model* model)
    : model_(model), facts_(std::make_unique<const TemplateFacts>()) {}
ChatTemplate::~ChatTemplate() = default;

Result<const common_chat_templates*> ChatTemplate::templates() const {
  std::call_once(once_, [this] {
    Result<std::shared_ptr<const common_chat_templates>> read = read_templates(model_);
    if (read.ok()) templates_ = std::move(*read);
    status_ = read.status();
  });
  if (!status_.ok()) return status_;
  return templates_.get();
}

std::string ChatTemplate::source() const {
  const char* text = llama_model_chat_template(model_, /*name=*/nullptr);
  if (text != nullptr) return text;
  const Result<const common_chat_templates*> templates = this->templates();
  return templates.ok() ? common_chat_templates_source(*templates) : "";
}

ChatAbilities ChatTemplate::abilities() const {
  if (!carries_template(model_)) return {};
  const Result<const common_chat_templates*> templates = this->templates();
  if (!templates.ok()) return {};
  const LogSink no_sink;
  const LogCapture log(no_sink);
  const TemplateBudget budget(/*n_given=*/0);
  ChatAbilities abilities;
  try {
    abilities.tools = knows_tools();
    abilities.reasoning = facts_->supports_thinking(**templates);
  } catch (const std::exception&) {  // a template that needs more than one short message
  }
  return abilities;
}

// They were found out when the template was read.
std::map<std::string, bool> ChatTemplate::caps() const {
  const Result<const common_chat_templates*> templates = this->templates();
  if (!templates.ok()) return {};
  return common_chat_templates_get_caps(*templates);
}

TemplateTools ChatTemplate::tools() const {
  const Result<const common_chat_templates*> templates = this->templates();
  if (!carries_template(model_) || !templates.ok()) return TemplateTools::kNone;
  const LogSink no_sink;
  const LogCapture log(no_sink);
  const TemplateBudget budget(/*n_given=*/0);
  try {
    return facts_->tools(**templates);
  } catch (const std::exception&) {  // as abilities()
    return TemplateTools::kNone;
  }
}

bool ChatTemplate::knows_tools() const { return tools() != TemplateTools::kNone; }

Result<ChatPrompt> ChatTemplate::prompt(const std::vector<ChatMessage>& messages,
                                        const ChatOptions& options) const {
  if (goes_on_from_nothing(messages, options)) {
    if (messages.size() == 1) {
      return invalid_argument(
                 "the only message says nothing: there is nothing to answer or to go on with")
          .about("messages");
    }
    ChatOptions begins = options;
    begins.continue_last = false;
    return prompt({messages.begin(), messages.end() - 1}, begins);
  }
  Result<ChatPrompt> made = prompt_as_given(messages, options);
  const Status refusal = made.status();
  if (refusal.code() != StatusCode::kInvalidArgument || refusal.field() != "messages") return made;
  for (const std::vector<ChatMessage>& other : retold(messages)) {
    Result<ChatPrompt> again = prompt_as_given(other, options);
    if (again.ok()) return again;
  }
  return made;
}

Result<ChatPrompt> ChatTemplate::prompt_as_given(const std::vector<ChatMessage>& messages,
                                                 const ChatOptions& options) const {
  const bool earlier = has_calls_or_results(messages);
  if ((!has_calls(options) && !earlier) || knows_tools()) return own_prompt(messages, options);
  if (has_calls(options)) return prompt_with_plain_tools(messages, options);
  // Checked as they were given.
  ChatOptions checked = options;
  checked.json_schema.clear();  // own_prompt() reads it
  OUTRIDER_RETURN_IF_ERROR(chat_inputs(messages, checked).status());
  return own_prompt(calls_as_texts(messages), options);
}

Result<ChatPrompt> ChatTemplate::prompt_with_plain_tools(const std::vector<ChatMessage>& messages,
                                                         const ChatOptions& options) const {
  const bool content_has_schema = is_calls_or_content(options);
  ChatOptions calls = options;
  if (content_has_schema) calls.json_schema.clear();  // own_prompt() reads it
  // Checked as they were given.
  OUTRIDER_ASSIGN_OR_RETURN(const ChatInputs inputs, chat_inputs(messages, calls));
  if (content_has_schema) calls.tool_choice = ToolChoice::kRequired;
  OUTRIDER_ASSIGN_OR_RETURN(ChatGrammar grammar,
                            plain_tool_grammar(calls, inputs.tool_schemas, inputs.rules));
  ChatOptions without = options;
  without.tools.clear();
  if (!content_has_schema) without.json_schema.clear();
  OUTRIDER_ASSIGN_OR_RETURN(
      ChatPrompt prompt,
      own_prompt(describe_tools(messages, options, inputs.tool_schemas), without));
  if (content_has_schema) {
    ChatGrammar content = prompt.grammar;
    if (content.gbnf.empty()) {  // left to the caller
      OUTRIDER_ASSIGN_OR_RETURN(
          content.gbnf,
          grammar_from_json_schema(options.json_schema, keeping_of(options.json_schema_strict)));
    }
    grammar = either(grammar, content);
  }
  // What waits for a call does not look for it in reasoning; what holds from the answer's beginning
  // has no reasoning in front of it.
  if (!grammar.patterns.empty()) grammar.reasoning = prompt.grammar.reasoning;
  prompt.grammar = std::move(grammar);
  const bool only_calls = options.tool_choice == ToolChoice::kRequired;
  prompt.reader = plain_tool_reader(only_calls, std::move(prompt.reader),
                                    /*reads_own=*/!prompt.grammar.patterns.empty());
  return prompt;
}

Result<ChatPrompt> ChatTemplate::own_prompt(const std::vector<ChatMessage>& messages,
                                            const ChatOptions& options) const {
  const Result<const common_chat_templates*> templates = this->templates();
  if (!templates.ok()) return templates.status();
  OUTRIDER_ASSIGN_OR_RETURN(const bool schema_is_templates,
                            holds_schema(**templates, *facts_, options));
  ChatOptions read = options;
  // Else it is the caller's to read, and that once suffices.
  if (!schema_is_templates && !has_calls(options)) read.json_schema.clear();
  Result<ChatInputs> inputs = chat_inputs(messages, read);
  if (!inputs.ok()) return inputs.status();
  const bool has_tools = has_calls(options) || has_calls_or_results(messages);
  if (has_tools) add_untold_tools(tools(), options, *inputs);
  const LogSink no_sink;
  const LogCapture log(no_sink);
  const TemplateBudget budget(input_bytes(inputs->common));
  try {
    const Conversation c{.templates = **templates,
                         .facts = *facts_,
                         .inputs = *inputs,
                         .options = options,
                         .schema_is_templates = schema_is_templates};
    common_chat_templates_inputs first = inputs->common;
    if (has_calls(options) || !c.schema_is_templates) first.json_schema.clear();
    common_chat_params params = apply_template(c.templates, first);
    ChatPrompt prompt;
    OUTRIDER_ASSIGN_OR_RETURN(prompt.grammar, whole_grammar(c, params));
    prompt.reader = options.reasoning_in_content ? raw_reader(c, first)
                                                 : make_chat_reader(params, options.continue_last);
    OUTRIDER_RETURN_IF_ERROR(hold_what_goes_on(c, prompt));
    prompt.text = says_otherwise(c, first) ? text_as_given(c) : std::move(params.prompt);
    prompt.stop = std::move(params.additional_stops);
    if (!carries_template(model_)) prompt.stop.emplace_back(kChatMlTurnEnd);
    prompt.shown = std::move(params.preserved_tokens);
    return prompt;
  } catch (const std::exception& error) {
    if (budget.exceeded()) return unsupported(budget.why()).about("messages");
    return refused_by_template(error);
  }
}

}  // namespace outrider::llama
