#include "llama/schema/schema_alternatives.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "llama/schema/schema_disjoint.h"
#include "llama/schema/schema_refs.h"
#include "llama/schema/schema_words.h"

namespace outrider::llama {
namespace {

using json::Json;

// Depth first over the definitions, along alternatives: what leads to one that is being looked at
// closes a circle. Recursion is as deep as there are definitions, times the depth of each.
class EndlessSearch {
 public:
  explicit EndlessSearch(Json& root) : root_(root) {}

  std::vector<EndlessAlternative> search() {
    if (!root_.is_object() || !root_.contains("$defs")) return {};
    std::vector<std::string> refs;
    for (const auto& item : root_["$defs"].items()) refs.push_back(definition_ref(item.key()));
    for (const std::string& ref : refs) look_at(ref);
    return std::move(found_);
  }

 private:
  enum class State { kBegun, kDone };

  void look_at(const std::string& ref) {
    Json* const definition = named_target(root_, ref);
    if (definition == nullptr || !states_.emplace(ref, State::kBegun).second) return;
    follow(*definition, ref, "");
    states_[ref] = State::kDone;
  }

  // `node`: the definition `ref`, or an alternative at `place` in it.
  void follow(Json& node, const std::string& ref, const std::string& place) {
    if (!node.is_object()) return;
    if (node.contains("$ref")) {
      if (place.empty() || !node["$ref"].is_string()) return;  // a chain, for final_ref()
      const std::string target = final_ref(root_, node["$ref"].get<std::string>());
      const auto known = states_.find(target);
      if (known != states_.end() && known->second == State::kBegun) {
        found_.push_back({.ref = ref, .place = place, .alternative = &node});
      } else if (!target.empty()) {
        look_at(target);
      }
      return;
    }
    for (const char* key : {"oneOf", "anyOf", "allOf"}) {
      if (!node.contains(key) || !node[key].is_array()) continue;
      if (std::string_view(key) == "allOf" && node[key].size() > 1) continue;  // objects
      for (std::size_t i = 0; i < node[key].size(); ++i) {
        follow(node[key][i], ref, place + "/" + key + "/" + std::to_string(i));
      }
    }
  }

  Json& root_;
  std::map<std::string, State> states_;  // by reference; not there: not begun
  std::vector<EndlessAlternative> found_;
};

// A type beside alternatives is that of each of them.
Status push_type_down(Json& node, const char* key, Json& root, bool strict) {
  if (!node.contains("type")) return Status();
  const std::set<std::string> types = types_of(node);
  for (Json& child : node[key]) {
    if (child == true) child = Json::object();
    if (!child.is_object()) continue;
    const bool other = child.contains("$ref") || child.contains("oneOf") || child.contains("anyOf");
    if (!child.contains("type") && !other) {
      child["type"] = node["type"];
      continue;
    }
    const Json* said = &child;
    if (child.contains("$ref") && child["$ref"].is_string()) {
      said = final_target(root, child["$ref"].get<std::string>());
    }
    const std::set<std::string> given =
        said != nullptr && said->is_object() ? types_of(*said) : std::set<std::string>{"any"};
    const bool fits = std::all_of(given.begin(), given.end(), [&types](const std::string& type) {
      return types.contains(type) || (type == "integer" && types.contains("number"));
    });
    if (strict && !fits) {
      return invalid_argument(std::string("type cannot be kept to beside ") + key +
                              "; leave it out");
    }
  }
  node.erase("type");
  return Status();
}

}  // namespace

std::vector<EndlessAlternative> endless_alternatives(Json& root) {
  return EndlessSearch(root).search();
}

Status write_alternatives(Json& node, Json& root, Json& given, bool strict) {
  for (const char* key : {"oneOf", "anyOf"}) {
    if (!node.contains(key)) continue;
    // It would pass over the properties, so that arguments need not be an object any more.
    if (node.contains("properties")) {
      node.erase(key);
      continue;
    }
    OUTRIDER_RETURN_IF_ERROR(push_type_down(node, key, root, strict));
  }
  if (!strict || !node.contains("oneOf")) return Status();
  const std::optional<Overlap> overlap = find_overlap(node["oneOf"], given);
  if (!overlap) return Status();
  return invalid_argument("oneOf cannot be kept to: one value may be valid by its alternatives " +
                          std::to_string(overlap->first) + " and " +
                          std::to_string(overlap->second) +
                          "; say anyOf, or let them have different types, or a property that both "
                          "require, with different constants");
}

}  // namespace outrider::llama
