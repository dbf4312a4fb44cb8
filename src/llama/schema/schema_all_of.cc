#include "llama/schema/schema_all_of.h"

#include <algorithm>
#include <string>
#include <utility>

#include "llama/schema/schema_refs.h"
#include "llama/schema/schema_words.h"

namespace outrider::llama {
namespace {

using json::Json;

constexpr int kMaxDepth = 16;  // of allOf in allOf, through references
constexpr std::size_t kMaxParts = 200;

class ObjectMerger {
 public:
  ObjectMerger(Json& root, bool all) : root_(root), all_(all) {}

  // False: the part is not one that can be merged.
  bool add(const Json& given, int depth) {
    if (depth > kMaxDepth || ++n_parts_ > kMaxParts) return false;
    const Json* part = &given;
    if (part->is_object() && part->contains("$ref")) {
      if (!(*part)["$ref"].is_string()) return false;
      part = final_target(root_, (*part)["$ref"].get<std::string>());
    }
    if (part == nullptr || !part->is_object() || (all_ && !says_only_objects(*part))) return false;
    bool any = add_own(*part);
    if (!part->contains("allOf") || !(*part)["allOf"].is_array()) return any;
    for (const Json& child : (*part)["allOf"]) {
      const bool added = add(child, depth + 1);
      if (!added && all_) return false;
      any = any || added;
    }
    return any;
  }

  bool clashes() const { return clashes_; }

  Json merged() const {
    Json object = {{"type", "object"}, {"properties", properties_}};
    if (!required_.empty()) object["required"] = required_;
    return object;
  }

 private:
  static bool says_only_objects(const Json& part) {
    if (part.contains("type") && part["type"] != "object") return false;
    return std::all_of(part.items().begin(), part.items().end(), [](const auto& item) {
      const bool open = item.key() != "additionalProperties" || item.value() == true;
      return open && (is_annotation(item.key()) || item.key() == "type" || item.key() == "allOf" ||
                      item.key() == "$ref" || is_known_of(item.key(), "object"));
    });
  }

  bool add_own(const Json& part) {
    const bool has = part.contains("properties") && part["properties"].is_object();
    if (has) {
      for (const auto& [name, schema] : part["properties"].items()) {
        const bool known = properties_.contains(name);
        clashes_ = clashes_ || (known && properties_[name] != schema);
        if (!known) properties_[name] = schema;
      }
    }
    if (part.contains("required") && part["required"].is_array()) {
      for (const Json& name : part["required"]) {
        if (std::find(required_.begin(), required_.end(), name) == required_.end()) {
          required_.push_back(name);
        }
      }
    }
    return has || part.contains("required");
  }

  Json& root_;
  const bool all_;
  Json properties_ = Json::object();
  Json required_ = Json::array();
  std::size_t n_parts_ = 0;
  bool clashes_ = false;
};

// What `one` forbids beyond its own properties, `other` may name.
bool closes(const Json& one, const Json& other) {
  return one.contains("additionalProperties") && one["additionalProperties"] != true &&
         other.contains("properties");
}

}  // namespace

void join_single_all_of(Json& node) {
  while (node.contains("allOf") && node["allOf"].is_array() && node["allOf"].size() == 1 &&
         node["allOf"][0].is_object()) {
    const Json single = node["allOf"][0];
    bool only = true;   // nothing else constrains
    bool apart = true;  // nothing is said twice
    for (const auto& [key, value] : node.items()) {
      if (key == "allOf" || is_annotation(key)) continue;
      only = false;
      apart = apart && !single.contains(key);
    }
    apart = apart && !closes(node, single) && !closes(single, node);
    if (!only && (!apart || single.contains("$ref"))) return;
    node.erase("allOf");
    for (const auto& [key, value] : single.items()) {
      if (!node.contains(key)) node[key] = value;
    }
  }
}

std::optional<Json> merge_all_of(Json& root, const Json& node, bool all) {
  ObjectMerger merger(root, all);
  if (!merger.add(node, 0) || (all && merger.clashes())) return std::nullopt;
  Json merged = Json::object();
  for (const auto& [key, value] : node.items()) {
    if (is_annotation(key)) merged[key] = value;
  }
  merged.update(merger.merged());
  return merged;
}

}  // namespace outrider::llama
