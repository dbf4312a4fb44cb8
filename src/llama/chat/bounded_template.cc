#include "llama/chat/bounded_template.h"

#include <exception>
#include <string>
#include <utility>

#include "jinja/caps.h"
#include "jinja/lexer.h"
#include "jinja/parser.h"
#include "llama.h"
#include "llama/chat/bounded_nodes.h"
#include "llama/chat/template_tokens.h"

// As llama.cpp's common/chat.cpp has it, which keeps it to itself. bounded_template_test.cc notices
// when it becomes another.
struct common_chat_templates {
  bool add_bos;
  bool add_eos;
  bool has_explicit_template;
  std::unique_ptr<common_chat_template> template_default;
  std::unique_ptr<common_chat_template> template_tool_use;
};

namespace outrider::llama {
namespace {

constexpr std::string_view kEnd = "{{ raise_exception('') }}";

// `source` as llama-common corrects it, with what the model has around it. Throws.
common_chat_templates_ptr read_unrun(const llama_model* model, const std::string& source) {
  return common_chat_templates_init(model, std::string(kEnd) + source);
}

// Throws std::runtime_error and what llama-common throws.
std::unique_ptr<common_chat_template> bounded_template(const llama_model* model,
                                                       const std::string& source) {
  const std::string much = too_much_template(jinja::lexer().tokenize(source));
  if (!much.empty()) throw std::runtime_error("it " + much);
  jinja::parse_from_tokens(jinja::lexer().tokenize(source));  // with its reason, which init loses
  common_chat_templates_ptr unrun = read_unrun(model, source);
  std::unique_ptr<common_chat_template> made = std::move(unrun->template_default);
  const jinja::lexer_result lexed = jinja::lexer().tokenize(made->src.substr(kEnd.size()));
  jinja::program program = jinja::parse_from_tokens(lexed);
  bound_program(program);
  made->prog = std::move(program);
  made->src = lexed.source;
  made->caps = jinja::caps_get(made->prog);
  if (TemplateBudget::current().exceeded()) {
    throw TemplateTooCostly(TemplateBudget::current().why());
  }
  return made;
}

std::string template_of(const llama_model* model, const char* name) {
  const char* source = llama_model_chat_template(model, name);
  return source == nullptr ? "" : source;
}

}  // namespace

std::uint64_t input_bytes(const common_chat_templates_inputs& inputs) {
  std::uint64_t n = inputs.json_schema.size();
  for (const common_chat_msg& msg : inputs.messages) {
    n += msg.content.size() + msg.reasoning_content.size();
    for (const common_chat_tool_call& call : msg.tool_calls) n += call.arguments.size();
  }
  for (const common_chat_tool& tool : inputs.tools) {
    n += tool.description.size() + tool.parameters.size();
  }
  return n;
}

Result<std::shared_ptr<const common_chat_templates>> read_templates(const llama_model* model) {
  const TemplateBudget budget(/*n_given=*/0);
  try {
    const std::string source = template_of(model, nullptr);
    const std::string with_tools = template_of(model, "tool_use");
    const bool named = source.empty() || source == "chatml";
    if (named && with_tools.empty()) {  // llama-common's own, which needs no bounds
      return std::shared_ptr<const common_chat_templates>(
          common_chat_templates_init(model, "chatml"));
    }
    common_chat_templates_ptr templates = read_unrun(model, "");
    templates->template_default = bounded_template(model, named ? with_tools : source);
    if (!with_tools.empty()) templates->template_tool_use = bounded_template(model, with_tools);
    return std::shared_ptr<const common_chat_templates>(std::move(templates));
  } catch (const std::exception& error) {
    return unsupported(std::string("the model's chat template cannot be used: ") + error.what());
  }
}

const common_chat_template& template_for(const common_chat_templates& templates, bool with_tools) {
  const bool other = with_tools && templates.template_tool_use != nullptr;
  return other ? *templates.template_tool_use : *templates.template_default;
}

}  // namespace outrider::llama
