#include "http/completion/conversation_body.h"

#include <algorithm>
#include <optional>
#include <set>
#include <utility>

#include "api/chat_params.h"
#include "api/json_fields.h"
#include "api/read_fields.h"

namespace outrider::http {
namespace {

using json::Json;

constexpr api::Dialect kPartDialect{
    .names = {}, .ignored = api::kIgnoredOfPart, .null_is_absent = true};

std::string listed(std::span<const std::string_view> names) {
  std::string list;
  for (const std::string_view name : names) {
    list.append(list.empty() ? "" : ", ").append(name);
  }
  return list;
}

// Its type, where that is a text; else what is wrong with it is for the reader of tools to say.
const std::string* type_of(const Json& tool) {
  if (!tool.is_object()) return nullptr;
  const Json::const_iterator type = tool.find("type");
  return type != tool.end() ? type->get_ptr<const std::string*>() : nullptr;
}

// Whether the field, of one of the API's forms, asks for content that is more than a text.
bool asks_for_format(const Json& body, const char* name) {
  const Json::const_iterator format = body.find(name);
  if (format == body.end() || !format->is_object()) return false;
  const Json::const_iterator type = format->find("type");
  return type == format->end() || *type != "text";
}

bool has(const Json& body, const char* name) {
  const Json::const_iterator field = body.find(name);
  return field != body.end() && !field->is_null();
}

bool brings_constraint(const Json& body) {
  if (has(body, "grammar") || has(body, "json_schema")) return true;
  if (asks_for_format(body, "response_format")) return true;
  return (has(body, "text") && asks_for_format(body["text"], "format")) ||
         (has(body, "output_config") && has(body["output_config"], "format"));
}

// Whether `name` has something that may be called, unless `choice` ("none", or Anthropic's
// {"type": "none"}) says no.
bool brings_calls(const Json& body, const char* name, const char* choice) {
  if (!has(body, name) || body[name].empty()) return false;
  if (!has(body, choice)) return true;
  const Json& chosen = body[choice];
  const bool is_none = api::is_text(chosen, "none") || (chosen.is_object() && has(chosen, "type") &&
                                                        api::is_text(chosen["type"], "none"));
  return !is_none;
}

// What a body itself says of options that exclude others, as far as it can be read: what is wrong
// with it is said where all of it is read.
struct Said {
  SamplingOptions options;
  std::set<std::string_view> names;
};

Said said_in(const Json& body, const api::Dialect& dialect) {
  Said said;
  for (const Field<SamplingOptions>& field : sampling_fields()) {
    const bool excludes = !field.replaced_by.empty() || field.name == "temp" ||
                          field.name == "mirostat" || field.name == "ignore_eos";
    api::JsonFields fields(body, "", &dialect);
    if (!excludes || fields.any(field.name) == nullptr) continue;
    said.names.insert(field.name);
    api::read_field(fields, field, said.options);
  }
  return said;
}

// As validate() has it.
bool excludes_mirostat(const Field<SamplingOptions>& field, const SamplingOptions& o) {
  if (field.name == "temp") return !(o.temperature > 0.0f);
  return !field.replaced_by.empty() && is_used(field, o);
}

// Of mirostat and what it excludes, that of the body takes the place of the default.
void settle_mirostat(const Said& said, SamplingOptions& defaults) {
  const bool asked_for = said.options.mirostat != 0;
  for (const Field<SamplingOptions>& field : sampling_fields()) {
    const bool is_said = said.names.count(field.name) > 0;
    if (asked_for && !is_said && excludes_mirostat(field, defaults)) {
      put_back(field, defaults);
    } else if (!asked_for && is_said && excludes_mirostat(field, said.options)) {
      defaults.mirostat = 0;
    }
  }
}

}  // namespace

CompletionRequest defaults_for(const Json& body, const api::Dialect& dialect,
                               const CompletionRequest& defaults) {
  CompletionRequest request = defaults;
  if (!body.is_object()) return request;
  SamplingOptions& sampling = request.sampling;
  const Said said = said_in(body, dialect);
  settle_mirostat(said, sampling);
  const bool other = brings_constraint(body);
  const bool calls = brings_calls(body, "tools", "tool_choice") ||
                     brings_calls(body, "functions", "function_call");
  const bool endless = said.options.ignore_eos;
  if (other || endless) sampling.json_schema.clear();
  if (other || calls || endless) {
    sampling.grammar.clear();
    sampling.grammar_triggers.clear();
  }
  if (other || calls) sampling.ignore_eos = false;  // that of the body is read over it
  return request;
}

void read_context_management(api::JsonFields& fields, std::vector<std::string>& ignored) {
  constexpr const char* kName = "context_management";
  if (fields.any(kName) != nullptr) ignored.emplace_back(kName);
}

void refuse_type(api::JsonFields& fields, const std::string& place, const std::string& type,
                 std::string_view why) {
  fields.take(refused(StatusCode::kUnsupported, place + ".type",
                      "is " + api::shown(Json(type)) + ", but " + std::string(why)));
}

const Json* read_role(api::JsonFields& fields, const Json& message, const std::string& place,
                      const api::Dialect& dialect, std::span<const std::string_view> roles,
                      std::string& role) {
  api::JsonFields inner(message, place + ".", &dialect);
  inner.require("role");
  inner.choice("role", role, roles);
  inner.require("content");
  const Json* content = inner.any("content");
  fields.take(inner.finish());
  return fields.ok() ? content : nullptr;
}

std::string read_text_part(api::JsonFields& fields, const Json& part, const std::string& place) {
  api::JsonFields inner(part, place + ".", &kPartDialect);
  std::string text;
  const Json* type = inner.any("type");
  const std::string_view name =
      type != nullptr && api::is_text(*type, "refusal") ? "refusal" : "text";
  inner.require(name);
  inner.text(name, text);
  fields.take(inner.finish());
  return text;
}

std::string read_text_parts(api::JsonFields& fields, const Json& given, const std::string& place,
                            std::span<const std::string_view> types) {
  if (given.is_string()) return given.get<std::string>();
  if (!given.is_array()) {
    fields.refuse(place, given, "a string, or an array of parts of type " + listed(types));
    return {};
  }
  std::string text;
  for (std::size_t i = 0; i < given.size() && fields.ok(); ++i) {
    const std::string name = api::item_name(place, i);
    api::JsonFields part(given[i], name + ".", &kPartDialect);
    std::string type;
    part.require("type");
    part.text("type", type);
    if (!part.ok()) {
      fields.take(part.finish());
    } else if (std::find(types.begin(), types.end(), type) == types.end()) {
      refuse_type(fields, name, type, "only text is read here (" + listed(types) + ")");
    } else {
      text.append(i > 0 ? "\n" : "").append(read_text_part(fields, given[i], name));
    }
  }
  return text;
}

Result<std::vector<std::string>> take_out_other_tools(Json& body, std::string_view usual) {
  std::vector<std::string> types;
  if (!body.is_object()) return types;
  const Json::iterator tools = body.find("tools");
  if (tools == body.end() || !tools->is_array()) return types;
  if (tools->size() > kMaxGivenTools) {
    return refused("tools", "holds " + std::to_string(tools->size()) + ", at most " +
                                std::to_string(kMaxGivenTools) + " can be");
  }
  std::set<std::string_view> known;  // of tools that stay where they are until all are looked at
  Json left = Json::array();
  for (Json& tool : *tools) {
    const std::string* type = type_of(tool);
    if (type == nullptr || *type == usual) {
      left.push_back(std::move(tool));
    } else if (known.insert(*type).second) {
      types.push_back(*type);
    }
  }
  *tools = std::move(left);
  return types;
}

void check_tools_left(api::JsonFields& fields, std::span<const std::string> taken_out,
                      const CompletionRequest& request) {
  const bool required = request.chat.tool_choice == ToolChoice::kRequired;
  if (taken_out.empty() || !required || !request.chat.tools.empty()) return;
  fields.fail("tool_choice", "tool_choice asks for a call, but no tool is left: none of the type " +
                                 api::shown(Json(taken_out.front())) + " can be called here");
}

ChatMessage& Conversation::of_role(std::string_view role, std::size_t n) {
  if (messages_.size() <= n || messages_.back().role != role) {
    messages_.push_back({.role = std::string(role), .content = ""});
  }
  return messages_.back();
}

void Conversation::add_instructions(const std::string& text) {
  if (text.empty()) return;
  std::string& content = of_role("system").content;
  content.append(content.empty() ? "" : "\n\n").append(text);
}

void Conversation::add_call(ChatMessage& message, ToolCall call) {
  tools_[call.id] = call.name;
  message.tool_calls.push_back(std::move(call));
}

void Conversation::add_result(api::JsonFields& fields, const std::string& place,
                              ChatMessage result) {
  const std::map<std::string, std::string>::const_iterator tool = tools_.find(result.tool_call_id);
  if (tool == tools_.end()) {
    return fields.fail(place, place + " is " + api::shown(Json(result.tool_call_id)) +
                                  ", but no call before it has this id");
  }
  result.name = tool->second;
  messages_.push_back(std::move(result));
}

void read_schema(api::JsonFields& fields, std::string_view name, std::string& schema) {
  const Json* given = fields.any(name);
  if (given == nullptr) return;
  if (!given->is_object()) {
    return fields.refuse(std::string(name), *given, "a JSON schema (an object)");
  }
  schema = json::encode(*given);
}

void keep_to_schema(api::JsonFields& fields, const std::string& place, const Json* schema,
                    bool strict, CompletionRequest& request) {
  if (!fields.ok()) return;
  if (schema != nullptr && !schema->is_object()) {
    return fields.fail(place, place + " has a schema that is " + std::string(json::kind(*schema)) +
                                  ", but must be an object");
  }
  if (request.sampling.constrained()) {
    return fields.fail(place,
                       place + " and grammar or json_schema are both there; give one of them");
  }
  request.sampling.json_schema_strict = strict;
  request.sampling.json_schema = schema != nullptr ? json::encode(*schema) : R"({"type":"object"})";
}

}  // namespace outrider::http
