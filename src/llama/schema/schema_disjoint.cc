#include "llama/schema/schema_disjoint.h"

#include <algorithm>
#include <set>
#include <string>

#include "llama/schema/schema_refs.h"
#include "llama/schema/schema_words.h"

namespace outrider::llama {
namespace {

using json::Json;

constexpr int kDeepestPair = 8;  // properties and alternatives in each other
// Pairs of schemas, and values with a schema, of one search: some microseconds each.
constexpr std::size_t kMostCompared = 50'000;
constexpr std::size_t kConstantsOfOne = 100;  // that take as long

bool has_list(const Json& node, const char* key) {
  return node.contains(key) && node[key].is_array();
}

// False: they are certainly different. Objects keep their order, so they are not compared.
bool may_be_equal(const Json& one, const Json& other) {
  if (one.is_structured() || other.is_structured()) return one.type() == other.type();
  return one == other;
}

std::set<std::string> common_types(const Json& one, const Json& other) {
  const std::set<std::string> types = types_of(other);
  std::set<std::string> common;
  for (const std::string& type : types_of(one)) {
    const bool numbers = (type == "integer" && types.contains("number")) ||
                         (type == "number" && types.contains("integer"));
    if (numbers || types.contains(type)) common.insert(type);
  }
  return common;
}

// Null: any value of its type.
const Json* constants_of(const Json& node, Json& single) {
  if (node.contains("const")) {
    single = Json::array({node["const"]});
    return &single;
  }
  return has_list(node, "enum") ? &node["enum"] : nullptr;
}

bool requires_name(const Json& node, const std::string& name) {
  if (!has_list(node, "required")) return false;
  const Json& names = node["required"];
  return std::find(names.begin(), names.end(), Json(name)) != names.end();
}

// Null: it says nothing of that property.
const Json* property_of(const Json& node, const std::string& name) {
  if (!node.contains("properties") || !node["properties"].is_object()) return nullptr;
  const Json& properties = node["properties"];
  return properties.contains(name) ? &properties[name] : nullptr;
}

bool forbids(const Json& node, const std::string& name) {
  const Json* property = property_of(node, name);
  if (property != nullptr) return *property == false;
  return node.contains("additionalProperties") && node["additionalProperties"] == false &&
         !node.contains("patternProperties");
}

// A schema is what it says itself and all that its $ref and allOf say: whatever of this shows that
// two are disjoint is enough.
class DisjointSearch {
 public:
  explicit DisjointSearch(Json& root) : root_(root) {}

  bool disjoint(const Json& given, const Json& given_other, int depth) {
    if (depth > kDeepestPair || ++n_compared_ > kMostCompared) return false;
    const Json* one = target_of(given);
    const Json* other = target_of(given_other);
    if (one == nullptr || other == nullptr) return false;
    if (*one == false || *other == false) return true;
    if (!one->is_object() || !other->is_object()) return false;
    return common_types(*one, *other).empty() || constants_differ(*one, *other, depth) ||
           constants_differ(*other, *one, depth) || properties_differ(*one, *other, depth) ||
           parts_differ(*one, *other, depth) || parts_differ(*other, *one, depth);
  }

 private:
  const Json* target_of(const Json& node) {
    if (!node.is_object() || !node.contains("$ref")) return &node;
    const Json& ref = node["$ref"];
    return ref.is_string() ? final_target(root_, ref.get<std::string>()) : nullptr;
  }

  // Whether `value` is certainly not valid by `given`.
  bool is_invalid(const Json& value, const Json& given, int depth) {
    if (depth > kDeepestPair || ++n_compared_ > kMostCompared) return false;
    const Json* node = target_of(given);
    if (node == nullptr) return false;
    if (*node == false) return true;
    if (!node->is_object()) return false;
    if (!is_of_types(value, types_of(*node))) return true;
    Json single;
    if (const Json* constants = constants_of(*node, single)) {
      n_compared_ += constants->size() / kConstantsOfOne;
      const bool among = std::any_of(constants->begin(), constants->end(),
                                     [&](const Json& one) { return may_be_equal(value, one); });
      if (!among) return true;
    }
    if (!value.is_object()) return false;
    if (has_list(*node, "required")) {
      for (const Json& name : (*node)["required"]) {
        if (name.is_string() && !value.contains(name.get<std::string>())) return true;
      }
    }
    return std::any_of(value.items().begin(), value.items().end(), [&](const auto& item) {
      const Json* property = property_of(*node, item.key());
      return forbids(*node, item.key()) ||
             (property != nullptr && is_invalid(item.value(), *property, depth + 1));
    });
  }

  bool constants_differ(const Json& one, const Json& other, int depth) {
    Json single;
    const Json* constants = constants_of(one, single);
    if (constants == nullptr) return false;
    const std::set<std::string> types = types_of(one);
    return std::all_of(constants->begin(), constants->end(), [&](const Json& value) {
      return !is_of_types(value, types) || is_invalid(value, other, depth);
    });
  }

  // What is not said of the type of an object may be something else, for which properties say
  // nothing.
  bool properties_differ(const Json& one, const Json& other, int depth) {
    if (common_types(one, other) != std::set<std::string>{"object"}) return false;
    return names_differ(one, other, depth) || names_differ(other, one, depth);
  }

  bool names_differ(const Json& one, const Json& other, int depth) {
    if (!has_list(one, "required")) return false;
    for (const Json& required : one["required"]) {
      if (!required.is_string()) continue;
      const std::string name = required.get<std::string>();
      if (forbids(other, name)) return true;
      const Json* mine = property_of(one, name);
      const Json* its = property_of(other, name);
      const bool both = mine != nullptr && its != nullptr && requires_name(other, name);
      if (both && disjoint(*mine, *its, depth + 1)) return true;
    }
    return false;
  }

  bool parts_differ(const Json& one, const Json& other, int depth) {
    for (const char* key : {"oneOf", "anyOf"}) {
      if (!has_list(one, key) || one[key].empty()) continue;
      const bool all = std::all_of(one[key].begin(), one[key].end(), [&](const Json& part) {
        return disjoint(part, other, depth + 1);
      });
      if (all) return true;
    }
    if (!has_list(one, "allOf")) return false;
    return std::any_of(one["allOf"].begin(), one["allOf"].end(),
                       [&](const Json& part) { return disjoint(part, other, depth + 1); });
  }

  Json& root_;
  std::size_t n_compared_ = 0;
};

}  // namespace

std::optional<Overlap> find_overlap(const Json& alternatives, Json& root) {
  DisjointSearch search(root);
  for (std::size_t i = 1; i < alternatives.size(); ++i) {
    for (std::size_t k = 0; k < i; ++k) {
      if (!search.disjoint(alternatives[k], alternatives[i], 0)) {
        return Overlap{.first = k, .second = i};
      }
    }
  }
  return std::nullopt;
}

}  // namespace outrider::llama
