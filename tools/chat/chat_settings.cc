#include "tools/chat/chat_settings.h"

#include <algorithm>
#include <array>
#include <utility>

#include "api/completion_params.h"
#include "base/list_of.h"
#include "base/nearest.h"
#include "json/json.h"

namespace outrider::tools {
namespace {

using json::Json;

// Not settings: what a conversation is made of, what has no meaning for a single user, and tools,
// which nobody here would call.
constexpr std::array<std::string_view, 7> kLeftOut = {
    "prompt",     "messages", "speculative", "namespace", "tools", "parallel_tool_calls",
    "tool_choice"};
constexpr const char* kNotSet = "not set";
constexpr std::string_view kReasoning = "reasoning";
constexpr std::string_view kTemplateValues = "chat_template_kwargs";
constexpr std::size_t kNameColumn = 22;

// Calls visitor(field, object) for each field that can be set.
template <typename Request, typename Visitor>
void visit_each_setting(Request& request, Visitor&& visitor) {
  visit_request(request, [&](const auto& table, auto& object) {
    for (const auto& field : table) {
      if (std::find(kLeftOut.begin(), kLeftOut.end(), field.name) == kLeftOut.end()) {
        visitor(field, object);
      }
    }
  });
}

std::string schema_name(std::string_view name) {
  std::string text(name);
  std::replace(text.begin(), text.end(), '-', '_');
  return text;
}

Status unknown(std::string_view name) {
  const std::vector<std::string> names = setting_names();
  const std::string near = nearest(schema_name(name), names);
  return not_found(
      "there is no setting '" + std::string(name) + "'; " +
      (near.empty() ? "settings are " + list_of(names) : "did you mean " + near + "?"));
}

// Those whose values are not single ones, and which the table leaves to be read by hand.
std::string by_hand_text(std::string_view name, const ChatOptions& chat) {
  return name == kTemplateValues ? chat.template_values : "";
}

std::string by_hand_text(std::string_view name, const SamplingOptions& o) {
  if (name == "json_schema") return o.json_schema;
  std::string text;
  for (const LogitBias& bias : o.logit_bias) {
    text += (text.empty() ? "" : ", ") + std::to_string(bias.token) + ": " + shortest(bias.bias);
  }
  return text;
}

void copy_by_hand(std::string_view name, const ChatOptions& from, ChatOptions& chat) {
  if (name == kTemplateValues) chat.template_values = from.template_values;
}

void copy_by_hand(std::string_view name, const SamplingOptions& from, SamplingOptions& o) {
  if (name == "json_schema") o.json_schema = from.json_schema;
  if (name == "logit_bias") o.logit_bias = from.logit_bias;
}

// The effort that "reasoning" may say is one of the template's values.
void forget_effort(ChatOptions& chat) {
  json::Parsed values = json::parse(chat.template_values);  // empty: no JSON
  if (!values.ok() || values.value->erase("reasoning_effort") == 0) return;
  chat.template_values = values.value->empty() ? "" : json::encode(*values.value);
}

// What an object for the setting leaves as it is where that says something: there another part of
// one request, here what was set before.
void forget_earlier(std::string_view name, ChatOptions& chat) {
  if (name == kReasoning) forget_effort(chat);
  if (name == kTemplateValues) chat.template_values.clear();
}

std::string list_text(const std::vector<std::string>& texts) {
  return texts.empty() ? "" : json::encode(Json(texts));
}

template <typename T>
constexpr bool kHasByHand = std::is_same_v<T, SamplingOptions> || std::is_same_v<T, ChatOptions>;

// A field's value as a text; "" where nothing is set.
template <typename T>
std::string shown(const Field<T>& field, const T& object) {
  return visit_field(field, object, [&](const auto& value) -> std::string {
    using Value = std::decay_t<decltype(value)>;
    if constexpr (std::is_same_v<Value, std::vector<std::string>>) {
      return list_text(value);
    } else if constexpr (std::is_same_v<Value, std::optional<std::int32_t>>) {
      return value ? std::to_string(*value) : "";
    } else if constexpr (std::is_same_v<Value, std::optional<std::string>>) {
      return value.value_or("");
    } else if constexpr (std::is_same_v<Value, ByHand>) {
      // A condition of its own: in one with the other, which waits for `value`, clang looks at the
      // call for any T.
      if constexpr (kHasByHand<T>) return by_hand_text(field.name, object);
    }
    return value_text(field, object);
  });
}

// The field's value of `from` into `object`.
template <typename T>
void copy_field(const Field<T>& field, const T& from, T& object) {
  std::visit(
      [&](const auto& place) {
        using Place = std::decay_t<decltype(place)>;
        if constexpr (std::is_member_object_pointer_v<Place>) {
          object.*place = from.*place;
        } else if constexpr (std::is_same_v<Place, Choice<T>>) {
          place.set(object, place.get(from));
        } else if constexpr (std::is_same_v<Place, OrAuto<T>>) {
          object.*(place.member) = from.*(place.member);
        } else if constexpr (std::is_same_v<Place, TextForm<T>>) {
          (void)place.set(object, place.get(from), std::string(field.name));  // its own text
        } else if constexpr (kHasByHand<T>) {
          copy_by_hand(field.name, from, object);
        }
      },
      field.place);
}

// What was typed, as the field's type in JSON: 40, true, {"2": false}; a text without quotes.
Json typed_value(std::string_view type, const std::string& text) {
  const bool bare = type.find("number") != std::string_view::npos ||
                    type.find("integer") != std::string_view::npos ||
                    type.find("boolean") != std::string_view::npos;
  const bool marked =
      !text.empty() && std::string_view("\"[{").find(text.front()) != std::string_view::npos;
  if (bare || (marked && type != "string") || (marked && text.front() == '"')) {
    json::Parsed parsed = json::parse(text);
    if (parsed.ok()) return std::move(*parsed.value);
  }
  return Json(text);
}

}  // namespace

std::vector<std::string> setting_names() {
  std::vector<std::string> names;
  const CompletionRequest request;
  visit_each_setting(request, [&names](const auto& field, const auto& /*object*/) {
    names.emplace_back(field.name);
  });
  return names;
}

Status change_setting(CompletionRequest& request, std::string_view name, const std::string& value) {
  const std::string wanted = schema_name(name);
  std::string_view type;
  CompletionRequest usual;
  CompletionRequest with_usual = request;
  visit_each_setting(usual, [&](const auto& field, const auto& usual_object) {
    using T = std::decay_t<decltype(usual_object)>;
    if (field.name != wanted) return;
    type = field.type();
    visit_each_setting(with_usual, [&](const auto& same, auto& object) {
      if constexpr (std::is_same_v<std::decay_t<decltype(object)>, T>) {
        if (same.name == wanted) copy_field(same, usual_object, object);
      }
    });
  });
  if (type.empty()) return unknown(name);
  if (value == "default") {
    if (wanted == kReasoning) forget_effort(with_usual.chat);
    OUTRIDER_RETURN_IF_ERROR(validate_settings(with_usual));
    request = std::move(with_usual);
    return Status();
  }
  const Json given = typed_value(type, value);
  CompletionRequest earlier = request;
  if (given.is_object()) forget_earlier(wanted, earlier.chat);
  Result<CompletionRequest> changed =
      api::change_completion(Json{{wanted, given}}, std::move(earlier));
  if (!changed.ok()) return changed.status().about(changed.status().field());
  request = std::move(*changed);
  return Status();
}

Result<std::string> setting_text(const CompletionRequest& request, std::string_view name) {
  const std::string wanted = schema_name(name);
  std::string text;
  bool found = false;
  visit_each_setting(request, [&](const auto& field, const auto& object) {
    if (field.name != wanted) return;
    found = true;
    text = shown(field, object);
  });
  if (!found) return unknown(name);
  return text.empty() ? std::string(kNotSet) : text;
}

std::string changed_settings(const CompletionRequest& request) {
  const CompletionRequest usual;
  std::vector<std::string> before;
  visit_each_setting(usual, [&before](const auto& field, const auto& object) {
    before.push_back(shown(field, object));
  });
  std::string lines;
  std::size_t i = 0;
  visit_each_setting(request, [&](const auto& field, const auto& object) {
    const std::string now = shown(field, object);
    if (now == before[i++]) return;
    std::string line(field.name);
    line.resize(std::max(kNameColumn, line.size() + 1), ' ');
    lines += line + (now.empty() ? kNotSet : now) + "\n";
  });
  return lines;
}

}  // namespace outrider::tools
