#include "llama/chat/template_rendering.h"

#include <exception>
#include <map>
#include <stdexcept>

#include "chat-auto-parser.h"
#include "llama/chat/bounded_template.h"
#include "llama/chat/template_budget.h"

namespace outrider::llama {
namespace {

// An answer that is all content: what is left where llama-common cannot find out a format.
common_chat_params apply_plainly(const common_chat_templates& templates,
                                 common_chat_templates_inputs inputs) {
  inputs.force_pure_content = true;
  return common_chat_templates_apply(&templates, inputs);
}

}  // namespace

common_chat_params apply_template(const common_chat_templates& templates,
                                  const common_chat_templates_inputs& inputs) {
  if (!inputs.tools.empty() || !inputs.json_schema.empty()) {
    return common_chat_templates_apply(&templates, inputs);
  }
  try {
    return common_chat_templates_apply(&templates, inputs);
  } catch (const std::invalid_argument&) {  // "Unable to generate parser for this template"
    return apply_plainly(templates, inputs);
  }
}

bool TemplateFacts::supports_thinking(const common_chat_templates& templates) const {
  if (supports_thinking_ != Known::kNot) return supports_thinking_ == Known::kTrue;
  const bool does = common_chat_templates_support_enable_thinking(&templates);
  supports_thinking_ = does ? Known::kTrue : Known::kFalse;
  return does;
}

TemplateTools TemplateFacts::tools(const common_chat_templates& templates) const {
  std::map<std::string, bool> caps = common_chat_templates_get_caps(&templates);
  // A template for tools alone is not looked at there; it is made to tell of them.
  const bool is_for_tools = &template_for(templates, true) != &template_for(templates, false);
  const bool describes = caps["supports_tools"] || is_for_tools;
  if (caps["supports_tool_calls"]) {
    return describes ? TemplateTools::kAll : TemplateTools::kNoDescription;
  }
  if (!describes) return TemplateTools::kNone;
  if (has_lfm2_calls_ == Known::kNot) {
    bool has = false;
    try {
      has = has_lfm2_calls(templates);
    } catch (const std::invalid_argument&) {  // as above: it has no format, and will have none
      if (TemplateBudget::current().exceeded()) throw;
    }
    has_lfm2_calls_ = has ? Known::kTrue : Known::kFalse;
  }
  return has_lfm2_calls_ == Known::kTrue ? TemplateTools::kNoCalls : TemplateTools::kNone;
}

// A message that goes on is put behind the prompt by what finds the format.
std::string TemplateFacts::text_of(const common_chat_templates& templates,
                                   const common_chat_templates_inputs& inputs) const {
  const bool goes_on = inputs.continue_final_message != COMMON_CHAT_CONTINUATION_NONE;
  if (goes_on || has_own_code(templates, !inputs.tools.empty())) {
    return apply_template(templates, inputs).prompt;
  }
  return apply_plainly(templates, inputs).prompt;
}

bool TemplateFacts::has_own_code(const common_chat_templates& templates, bool with_tools) const {
  std::atomic<Known>& known = has_own_code_[with_tools ? 1 : 0];
  if (known != Known::kNot) return known == Known::kTrue;
  const common_chat_template& used = template_for(templates, with_tools);
  autoparser::generation_params inputs;
  inputs.messages = common_json::array({common_json{{"role", "user"}, {"content", "test"}}});
  inputs.extra_context = common_json::object();
  bool has = true;
  try {  // which it is, llama-common tells by the source alone, and then renders
    has = common_chat_try_specialized_template(used, used.source(), inputs).has_value();
  } catch (const std::exception&) {
    return true;
  }
  known = has ? Known::kTrue : Known::kFalse;
  return has;
}

}  // namespace outrider::llama
