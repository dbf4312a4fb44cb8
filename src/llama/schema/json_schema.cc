#include "llama/schema/json_schema.h"

#include <cmath>
#include <exception>
#include <map>
#include <set>
#include <vector>

#include "base/utf8.h"
#include "json-schema-to-grammar.h"
#include "json/json.h"

namespace outrider::llama {
namespace {

using json::Json;

constexpr std::size_t kMaxBytes = 256 * 1024;
constexpr std::size_t kMaxNodes = 5000;      // schemas, lists of types multiplied out
constexpr std::size_t kMaxPath = 2000;       // bytes of names from the root to a schema
constexpr std::size_t kMaxProperties = 200;  // of one object
constexpr std::size_t kMaxPatterns = 100;
constexpr std::size_t kMaxPattern = 1000;  // bytes
constexpr std::int64_t kMaxCount = 2000;   // llama.cpp's most repetitions
constexpr double kMaxInteger = 1e15;       // its grammar of integers has 16 digits

Status wrong(const std::string& path, const std::string& what) {
  return invalid_argument("at " + path + ": " + what);
}

Status check_text(std::string_view text) {
  if (text.size() > kMaxBytes) {
    return invalid_argument("the schema has " + std::to_string(text.size()) + " bytes, more than " +
                            std::to_string(kMaxBytes));
  }
  if (const std::optional<std::size_t> bad = first_invalid_utf8(text)) {
    return invalid_argument("the schema is not valid UTF-8, at byte " + std::to_string(*bad));
  }
  const std::size_t deep = json::too_deep(text);
  if (deep != std::string_view::npos) {
    return invalid_argument("the schema is nested more than " + std::to_string(json::kMaxDepth) +
                            " deep, at byte " + std::to_string(deep));
  }
  return Status();
}

// Throws what the converter throws.
std::string convert(const std::string& schema) {
  return json_schema_to_grammar(common_json::parse(schema), /*force_gbnf=*/true);
}

// Walks the schemas that the converter would visit, along its own rules. Recursion is as deep as
// the text, which check_text has limited, plus one level of $ref at a time.
class SchemaChecker {
 public:
  explicit SchemaChecker(const Json& root) : root_(root) {}

  Status check() {
    OUTRIDER_RETURN_IF_ERROR(check_node(root_, "#", 1));
    while (!pending_.empty()) {  // targets of $ref, each once
      const std::string ref = pending_.back();
      pending_.pop_back();
      const Json* target = resolve(ref);
      if (target != nullptr) OUTRIDER_RETURN_IF_ERROR(check_node(*target, ref, 1));
    }
    return Status();
  }

 private:
  // Null when it leads nowhere: the converter says so.
  const Json* resolve(const std::string& ref) const {
    if (ref.rfind("#/", 0) != 0) return nullptr;
    const Json* at = &root_;
    for (std::size_t begin = 2; begin <= ref.size();) {
      const std::size_t end = std::min(ref.find('/', begin), ref.size());
      const std::string key = ref.substr(begin, end - begin);
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

  Status check_ref(const Json& value, const std::string& path) {
    if (!value.is_string()) return wrong(path, "$ref must be a text");
    std::string ref = value.get<std::string>();
    if (ref.size() > kMaxPath) return wrong(path, "$ref is too long");
    if (seen_.insert(ref).second) pending_.push_back(ref);
    std::set<std::string> chain;
    while (true) {
      if (!chain.insert(ref).second) {
        return wrong(path, "$ref '" + ref + "' leads back to itself and never to a schema");
      }
      const Json* target = resolve(ref);
      if (target == nullptr) return wrong(path, "$ref '" + ref + "' leads nowhere in this schema");
      if (!target->is_object() || !target->contains("$ref") || !(*target)["$ref"].is_string()) {
        return Status();
      }
      ref = (*target)["$ref"].get<std::string>();
    }
  }

  Status check_counts(const Json& node, const std::string& path, const char* least,
                      const char* most) const {
    std::int64_t values[2] = {0, kMaxCount};
    const char* keys[2] = {least, most};
    for (int i = 0; i < 2; ++i) {
      if (!node.contains(keys[i])) continue;
      const Json& value = node[keys[i]];
      const bool whole = value.is_number_unsigned() && value.get<std::uint64_t>() <= kMaxCount;
      if (!whole) {
        return wrong(path, std::string(keys[i]) + " is " + value.dump() +
                               ", but must be a whole number from 0 to " +
                               std::to_string(kMaxCount));
      }
      values[i] = value.get<std::int64_t>();
    }
    if (values[0] <= values[1]) return Status();
    return wrong(path, std::string(least) + " is above " + most);
  }

  Status check_bounds(const Json& node, const std::string& path) const {
    const auto bound = [&node](const char* key, const char* exclusive, double fallback) {
      if (node.contains(key) && node[key].is_number()) return node[key].get<double>();
      if (node.contains(exclusive) && node[exclusive].is_number()) {
        return node[exclusive].get<double>();
      }
      return fallback;
    };
    const double least = bound("minimum", "exclusiveMinimum", -kMaxInteger);
    const double most = bound("maximum", "exclusiveMaximum", kMaxInteger);
    if (!(std::fabs(least) <= kMaxInteger && std::fabs(most) <= kMaxInteger)) {
      return wrong(path, "a bound of an integer is beyond 1e15");
    }
    if (least > most) return wrong(path, "the minimum is above the maximum");
    return Status();
  }

  Status check_pattern(const Json& value, const std::string& path) {
    if (!value.is_string()) return wrong(path, "pattern must be a text");
    const std::string pattern = value.get<std::string>();
    if (pattern.size() > kMaxPattern) {
      return wrong(path, "the pattern has more than " + std::to_string(kMaxPattern) + " bytes");
    }
    if (++n_patterns_ > kMaxPatterns) {
      return wrong(path, "there are more than " + std::to_string(kMaxPatterns) + " patterns");
    }
    if (pattern.empty()) return Status();
    try {
      const std::string grammar = convert(Json({{"type", "string"}, {"pattern", pattern}}).dump());
      if (("\n" + grammar).find("\nroot ::= string\n") == std::string::npos) return Status();
    } catch (const std::exception& error) {
      return wrong(path, std::string("the pattern cannot be read: ") + error.what());
    }
    return wrong(path,
                 "the pattern '" + pattern +
                     "' cannot be turned into a grammar: it must begin with ^, end with $ and "
                     "do without look-around, anchors inside and classes such as \\d");
  }

  // The converter passes over what it does not know. What constrains and would be passed over is
  // refused; annotations constrain nothing.
  Status check_keywords(const Json& node, const std::string& path) const {
    static const std::set<std::string> kAnnotations = {
        "title", "description", "default",    "examples", "$schema",   "$id",    "$comment",
        "$defs", "definitions", "deprecated", "readOnly", "writeOnly", "format", "$anchor"};
    static const std::map<std::string, std::set<std::string>> kOfType = {
        {"object", {"properties", "required", "additionalProperties"}},
        {"array", {"items", "prefixItems", "minItems", "maxItems"}},
        {"string", {"pattern", "minLength", "maxLength"}},
        {"integer", {"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"}},
        {"number", {}},
        {"boolean", {}},
        {"null", {}}};
    std::set<std::string> types;
    const auto add_type = [&types](const Json& type) {
      if (type.is_string()) types.insert(type.get<std::string>());
    };
    if (node.contains("type")) {
      const Json& type = node["type"];
      add_type(type);
      if (type.is_array()) std::for_each(type.begin(), type.end(), add_type);
    } else {
      for (const auto& [type, keys] : kOfType) types.insert(type);
    }
    for (const auto& [key, value] : node.items()) {
      const bool general = key == "type" || key == "const" || key == "enum" || key == "oneOf" ||
                           key == "anyOf" || key == "allOf" || key == "$ref";
      const bool off = (key == "uniqueItems" && value == false) || key.empty();
      const bool of_type = std::any_of(types.begin(), types.end(), [&](const std::string& type) {
        const auto known = kOfType.find(type);
        return known != kOfType.end() && known->second.count(key) > 0;
      });
      const bool alone = !node.contains("$ref") || key == "$ref";
      if (kAnnotations.count(key) > 0 || off || ((general || of_type) && alone)) continue;
      return wrong(path, "'" + key + "' cannot be kept to" + (alone ? " here" : " beside $ref") +
                             "; leave it out");
    }
    return check_combinations(node, path);
  }

  Status check_combinations(const Json& node, const std::string& path) const {
    const bool has_length = node.contains("minLength") || node.contains("maxLength");
    if (node.contains("pattern") && has_length) {
      return wrong(path, "a length cannot be kept to beside a pattern; say it in the pattern");
    }
    for (const char* key : {"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"}) {
      if (node.contains(key) && !node[key].is_number_integer()) {
        return wrong(path,
                     std::string(key) + " is " + node[key].dump() + ", but must be a whole number");
      }
    }
    if (node.contains("required") && node["required"].is_array()) {
      for (const Json& name : node["required"]) {
        const bool known = name.is_string() && node.contains("properties") &&
                           node["properties"].contains(name.get<std::string>());
        if (!known) return wrong(path, "required names " + name.dump() + ", which is no property");
      }
    }
    if (node.contains("allOf") && node["allOf"].is_array()) {
      for (const Json& part : node["allOf"]) {
        const bool object =
            part.is_object() && (part.contains("$ref") || part.contains("properties"));
        if (!object) return wrong(path, "allOf can only join objects with properties");
      }
    }
    return Status();
  }

  Status check_object(const Json& node, const std::string& path, std::size_t copies) {
    if (node.contains("properties") && node["properties"].is_object()) {
      if (node["properties"].size() > kMaxProperties) {
        return wrong(path,
                     "an object with more than " + std::to_string(kMaxProperties) + " properties");
      }
      for (const auto& [name, child] : node["properties"].items()) {
        OUTRIDER_RETURN_IF_ERROR(check_node(child, path + "/properties/" + name, copies));
      }
    }
    if (node.contains("additionalProperties") && node["additionalProperties"].is_object()) {
      return check_node(node["additionalProperties"], path + "/additionalProperties", copies);
    }
    return Status();
  }

  Status check_children(const Json& node, const std::string& path, std::size_t copies) {
    for (const char* key : {"oneOf", "anyOf", "allOf", "items", "prefixItems"}) {
      if (!node.contains(key)) continue;
      const Json& children = node[key];
      const std::string where = path + "/" + key;
      if (children.is_object()) OUTRIDER_RETURN_IF_ERROR(check_node(children, where, copies));
      if (!children.is_array()) continue;
      for (std::size_t i = 0; i < children.size(); ++i) {
        OUTRIDER_RETURN_IF_ERROR(check_node(children[i], where + "/" + std::to_string(i), copies));
      }
    }
    return Status();
  }

  // `copies`: how often the lists of types above multiply this schema.
  Status check_node(const Json& node, const std::string& path, std::size_t copies) {
    n_nodes_ += copies;
    if (n_nodes_ > kMaxNodes) {
      return wrong(path, "the schema holds more than " + std::to_string(kMaxNodes) +
                             " schemas, each once for each type of a list of types");
    }
    if (path.size() > kMaxPath) return wrong("the end", "names come to too many bytes: " + path);
    if (!node.is_object()) return wrong(path, "a schema must be an object");
    OUTRIDER_RETURN_IF_ERROR(check_keywords(node, path));
    if (node.contains("$ref")) return check_ref(node["$ref"], path);
    if (node.contains("type") && node["type"].is_array()) copies *= node["type"].size();
    OUTRIDER_RETURN_IF_ERROR(check_counts(node, path, "minLength", "maxLength"));
    OUTRIDER_RETURN_IF_ERROR(check_counts(node, path, "minItems", "maxItems"));
    OUTRIDER_RETURN_IF_ERROR(check_bounds(node, path));
    if (node.contains("pattern")) OUTRIDER_RETURN_IF_ERROR(check_pattern(node["pattern"], path));
    OUTRIDER_RETURN_IF_ERROR(check_object(node, path, copies));
    return check_children(node, path, copies);
  }

  const Json& root_;
  std::set<std::string> seen_;
  std::vector<std::string> pending_;
  std::size_t n_nodes_ = 0;
  std::size_t n_patterns_ = 0;
};

}  // namespace

Status check_json_schema(std::string_view schema) {
  OUTRIDER_RETURN_IF_ERROR(check_text(schema));
  try {
    const Json root = Json::parse(schema);
    return SchemaChecker(root).check();
  } catch (const Json::exception& error) {
    return invalid_argument(std::string("the schema is not JSON: ") + error.what());
  }
}

Result<std::string> grammar_from_json_schema(std::string_view schema) {
  OUTRIDER_RETURN_IF_ERROR(check_json_schema(schema));
  try {
    return convert(std::string(schema));
  } catch (const std::exception& error) {
    return invalid_argument(std::string("the schema cannot be turned into a grammar: ") +
                            error.what());
  }
}

}  // namespace outrider::llama
