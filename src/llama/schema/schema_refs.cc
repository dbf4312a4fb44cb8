#include "llama/schema/schema_refs.h"

#include <algorithm>
#include <functional>
#include <map>
#include <set>
#include <string_view>
#include <vector>

#include "llama/schema/schema_words.h"

namespace outrider::llama {
namespace {

using json::Json;

constexpr std::size_t kMaxRefs = 500;
constexpr std::size_t kMaxCopied = 20000;  // values of all copies together
constexpr int kLongestChain = 64;
constexpr std::string_view kPlace = "#/$defs/";

// A name in a JSON pointer in a URL: %20, ~1 (a slash), ~0 (a tilde).
std::string unescaped(std::string_view name) {
  std::string plain;
  for (std::size_t i = 0; i < name.size(); ++i) {
    const std::string_view rest = name.substr(i);
    const auto hex = [&rest](std::size_t at) {
      const char c = rest[at];
      return c >= '0' && c <= '9'   ? c - '0'
             : c >= 'a' && c <= 'f' ? c - 'a' + 10
             : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                    : -1;
    };
    if (rest.size() > 2 && rest[0] == '%' && hex(1) >= 0 && hex(2) >= 0) {
      plain += static_cast<char>(hex(1) * 16 + hex(2));
      i += 2;
    } else if (rest.starts_with("~1") || rest.starts_with("~0")) {
      plain += rest[1] == '1' ? '/' : '~';
      ++i;
    } else {
      plain += rest[0];
    }
  }
  return plain;
}

// Whether what stands under `key` is data, which is no schema.
bool holds_data(std::string_view key) {
  return key == "const" || key == "enum" || key == "default" || key == "examples";
}

// Whether what stands under `key` is schemas by their names.
bool holds_names(std::string_view key) {
  return key == "properties" || key == "patternProperties" || key == "$defs" ||
         key == "definitions";
}

// Depth is bounded by json::kMaxDepth, when the text is parsed. `names`: the keys are no keywords.
void for_each_ref(Json& node, const std::function<void(Json& ref)>& visit, bool names = false) {
  if (node.is_array()) {
    for (Json& child : node) for_each_ref(child, visit);
  }
  if (!node.is_object()) return;
  for (auto& [key, child] : node.items()) {
    if (!names && key == "$ref" && child.is_string()) {
      visit(child);
    } else if (names || !holds_data(key)) {
      for_each_ref(child, visit, !names && holds_names(key));
    }
  }
}

std::size_t count_values(const Json& value) {
  std::size_t n = 1;
  if (!value.is_structured()) return n;
  for (const Json& child : value) n += count_values(child);
  return n;
}

// A JSON pointer in `root`; null: it leads nowhere.
const Json* resolve(const Json& root, const std::string& ref) {
  if (ref == "#") return &root;
  if (!ref.starts_with("#/")) return nullptr;
  const Json* at = &root;
  for (std::size_t begin = 2; begin <= ref.size();) {
    const std::size_t end = std::min(ref.find('/', begin), ref.size());
    const std::string key = unescaped(std::string_view(ref).substr(begin, end - begin));
    begin = end + 1;
    if (at->is_object() && at->contains(key)) {
      at = &(*at)[key];
    } else if (at->is_array() && !key.empty() && key.size() < 6 &&
               key.find_first_not_of("0123456789") == std::string::npos &&
               std::stoul(key) < at->size()) {
      at = &(*at)[std::stoul(key)];
    } else {
      return nullptr;
    }
  }
  return at;
}

}  // namespace

std::string definition_ref(const std::string& name) { return std::string(kPlace) + name; }

std::map<std::string, std::string> name_refs(Json& root, ValueRules& rules) {
  if (!root.is_object()) return {};
  std::map<std::string, std::string> names;  // by the reference
  std::map<std::string, std::string> given;
  Json copies = Json::object();
  std::size_t n_copied = 0;
  for_each_ref(root, [&](const Json& ref) {
    const std::string text = ref.get<std::string>();
    if (names.contains(text) || names.size() >= kMaxRefs || n_copied > kMaxCopied) return;
    const Json* target = resolve(root, text);
    if (target == nullptr) return;
    n_copied += count_values(*target);
    if (n_copied > kMaxCopied) return;
    Json copy = *target;
    if (copy.is_object()) {  // the definitions stay at the root
      copy.erase("$defs");
      copy.erase("definitions");
    }
    const std::string name = rules.next_definition();
    copies[name] = std::move(copy);
    names[text] = definition_ref(name);
    given[definition_ref(name)] = text;
  });
  root.erase("$defs");
  root.erase("definitions");
  if (copies.empty()) return given;
  root["$defs"] = std::move(copies);
  for_each_ref(root, [&names](Json& ref) {
    const std::map<std::string, std::string>::const_iterator known =
        names.find(ref.get<std::string>());
    ref = known != names.end() ? known->second : "nowhere:" + ref.get<std::string>();
  });
  return given;
}

Json* named_target(Json& root, const std::string& ref) {
  if (!ref.starts_with(kPlace) || !root.is_object() || !root.contains("$defs")) return nullptr;
  Json& definitions = root["$defs"];
  const std::string name = ref.substr(kPlace.size());
  return definitions.is_object() && definitions.contains(name) ? &definitions[name] : nullptr;
}

std::string final_ref(Json& root, const std::string& ref) {
  std::string next = ref;
  for (int i = 0; i < kLongestChain; ++i) {
    Json* target = named_target(root, next);
    if (target == nullptr) return "";
    if (!target->is_object() || !target->contains("$ref") || !(*target)["$ref"].is_string()) {
      return next;
    }
    next = (*target)["$ref"].get<std::string>();
  }
  return "";
}

Json* final_target(Json& root, const std::string& ref) {
  const std::string last = final_ref(root, ref);
  return last.empty() ? nullptr : named_target(root, last);
}

void inline_root(Json& root) {
  if (!root.is_object() || !root.contains("$ref") || !root["$ref"].is_string()) return;
  const bool alone = std::all_of(root.items().begin(), root.items().end(), [](const auto& item) {
    return item.key() == "$ref" || is_annotation(item.key());
  });
  const Json* target = alone ? final_target(root, root["$ref"].get<std::string>()) : nullptr;
  if (target == nullptr || !target->is_object()) return;
  Json whole = *target;
  whole["$defs"] = root["$defs"];
  root = std::move(whole);
}

}  // namespace outrider::llama
