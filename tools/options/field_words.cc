#include "tools/options/field_words.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <map>

#include "model/model_options.h"
#include "request/completion_request.h"
#include "serve/runtime_options.h"
#include "tools/options/options.h"

namespace outrider::tools {
namespace {

// Fields whose option is not their name with dashes, or is another one of a draft.
struct Named {
  std::string_view field;
  std::string_view of_target;
  std::string_view of_draft;
};
constexpr std::array<Named, 7> kNamed = {{
    {"path", "--model", "--draft-model"},
    {"head", "--draft-model", "--draft-model"},
    {"ctx", "--ctx", "--draft-ctx"},
    {"threads", "--threads", "--draft-threads"},
    {"gpu_layers", "--gpu-layers", "--draft-gpu-layers"},
    {"cache_type_k", "--cache-type-k", "--draft-cache-type-k"},
    {"cache_type_v", "--cache-type-v", "--draft-cache-type-v"},
}};

// By name, what stands between the option and its value: switches take one behind a '=' only.
std::map<std::string_view, char> read_fields() {
  std::map<std::string_view, char> fields;
  const auto add = [&fields](const auto& table, const auto& /*object*/) {
    for (const auto& field : table) fields[field.name] = field.type() == "boolean" ? '=' : ' ';
  };
  add(model_fields(), 0);
  add(runtime_fields(), 0);
  const CompletionRequest request;
  visit_settings(request, add);
  return fields;
}

const std::map<std::string_view, char>& all_fields() {
  static const std::map<std::string_view, char> fields = read_fields();
  return fields;
}

bool is_letter(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0; }

// What is part of a longer word beside a name: a path's, an option's.
bool joins(char c) { return is_letter(c) || c == '_' || c == '-' || c == '.' || c == '/'; }

}  // namespace

std::string option_of(std::string_view field, ModelRole role) {
  if (field.starts_with("--")) return std::string(field);
  for (const Named& named : kNamed) {
    if (named.field != field) continue;
    return std::string(role == ModelRole::kDraft ? named.of_draft : named.of_target);
  }
  return option_name(field);
}

std::string in_options(std::string_view text, ModelRole role) {
  constexpr std::string_view kOfNames = "abcdefghijklmnopqrstuvwxyz0123456789_";
  const auto at = [text](std::size_t i) { return i < text.size() ? text[i] : ' '; };
  std::string result;
  for (std::size_t i = 0; i < text.size();) {
    const char before = i == 0 ? ' ' : text[i - 1];
    std::size_t end = i + 1;
    if ((text[i] == '\'' || text[i] == '"') && !is_letter(before)) {  // not "the target's"
      end = std::min(text.find(text[i], end), text.size() - 1) + 1;
    } else if (kOfNames.find(text[i]) != std::string_view::npos) {
      end = std::min(text.find_first_not_of(kOfNames, i), text.size());
      const std::string_view name = text.substr(i, end - i);
      const bool has_value = at(end) == '=' && is_letter(at(end + 1));
      const bool is_alone = before == '(' && at(end) == ')';
      const bool is_plain = name.find('_') != std::string_view::npos && !joins(at(end));
      const auto field = all_fields().find(name);
      const bool is_meant = (has_value || is_alone || is_plain) && !joins(before);
      if (is_meant && field != all_fields().end()) {
        result += option_of(name, role);
        if (has_value) result += field->second;
        i = has_value ? end + 1 : end;
        continue;
      }
    }
    result += text.substr(i, end - i);
    i = end;
  }
  return result;
}

Status in_options(const Status& status, ModelRole role) {
  if (status.ok()) return status;
  const std::string message = status.message_with(option_of(status.field(), role));
  return Status(status.code(), in_options(message, role));
}

}  // namespace outrider::tools
