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

constexpr std::size_t kMaxCopies = 16;  // each at most as large as the schema

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

bool is_plain(const std::string& ref) {
  return ref.starts_with("#/") && ref.find_first_of("~%") == std::string::npos;
}

// Depth is bounded by json::kMaxDepth, when the text is parsed.
void for_each_ref(Json& node, const std::function<void(Json& ref)>& visit) {
  if (node.is_object() && node.contains("$ref") && node["$ref"].is_string()) visit(node["$ref"]);
  if (!node.is_structured()) return;
  for (Json& child : node) for_each_ref(child, visit);
}

}  // namespace

Json* resolve(Json& root, const std::string& ref) {
  if (ref == "#") return &root;
  if (!ref.starts_with("#/")) return nullptr;
  Json* at = &root;
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

bool leads_back(Json& root, const std::string& ref) {
  std::set<std::string> chain;
  std::string next = ref;
  while (chain.insert(next).second) {
    const Json* target = resolve(root, next);
    if (target == nullptr || !target->is_object() || !target->contains("$ref") ||
        !(*target)["$ref"].is_string()) {
      return false;
    }
    next = (*target)["$ref"].get<std::string>();
  }
  return true;
}

void write_plain_refs(Json& root) {
  std::map<std::string, Json> copies;  // of what is referred to otherwise
  for_each_ref(root, [&](const Json& ref) {
    const std::string text = ref.get<std::string>();
    const Json* target = is_plain(text) ? nullptr : resolve(root, text);
    if (target != nullptr && copies.size() < kMaxCopies) copies.emplace(text, *target);
  });
  if (copies.empty()) return;
  if (!root.contains("$defs") || !root["$defs"].is_object()) root["$defs"] = Json::object();
  std::map<std::string, std::string> names;
  for (auto& [ref, copy] : copies) {
    std::string name = "ref-" + std::to_string(names.size());
    while (root["$defs"].contains(name)) name += "-";
    if (copy.is_object()) {  // the definitions stay at the root
      copy.erase("$defs");
      copy.erase("definitions");
    }
    root["$defs"][name] = std::move(copy);
    names[ref] = "#/$defs/" + name;
  }
  for_each_ref(root, [&names](Json& ref) {
    const std::map<std::string, std::string>::const_iterator known =
        names.find(ref.get<std::string>());
    if (known != names.end()) ref = known->second;
  });
}

void inline_root(Json& root) {
  while (root.is_object() && root.contains("$ref") && root["$ref"].is_string()) {
    const std::string ref = root["$ref"].get<std::string>();
    const Json* target = leads_back(root, ref) ? nullptr : resolve(root, ref);
    if (target == nullptr || !target->is_object()) return;
    const bool alone = std::all_of(root.items().begin(), root.items().end(), [](const auto& item) {
      return item.key() == "$ref" || is_annotation(item.key());
    });
    if (!alone) return;
    Json whole = *target;
    for (const char* key : {"$defs", "definitions"}) {
      if (root.contains(key) && !whole.contains(key)) whole[key] = root[key];
    }
    root = std::move(whole);
  }
}

void move_refs(Json& schema, const std::string& place) {
  for_each_ref(schema, [&place](Json& ref) {
    const std::string text = ref.get<std::string>();
    if (text.starts_with("#/")) ref = place + text.substr(1);
  });
}

}  // namespace outrider::llama
