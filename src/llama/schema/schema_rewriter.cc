#include "llama/schema/schema_rewriter.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <string_view>
#include <utility>
#include <vector>

#include "base/on_exit.h"
#include "llama/schema/schema_all_of.h"
#include "llama/schema/schema_alternatives.h"
#include "llama/schema/schema_refs.h"
#include "llama/schema/schema_values.h"
#include "llama/schema/schema_words.h"

namespace outrider::llama {
namespace {

using json::Json;

constexpr std::size_t kMaxNodes = 5000;  // schemas, lists of types multiplied out
constexpr std::string_view kNowhere = "nowhere:";
constexpr std::size_t kMaxPath = 2000;       // bytes of names from the root to a schema
constexpr std::size_t kMaxGivenRef = 200;    // of these in the reference that leads to it
constexpr int kMaxMerged = 100;              // schemas with allOf
constexpr int kMaxMergedAbove = 3;           // one in another, references apart
constexpr std::size_t kMaxProperties = 200;  // of one object
constexpr std::int64_t kMaxCount = 2000;     // llama.cpp's most repetitions
// Where it is passed over above that: a grammar holds each repetition, and 10,000 at most.
constexpr std::int64_t kMaxLooseCount = 200;

// Walks the schemas that the converter would visit, along its own rules. Recursion is as deep as
// the text, which json::kMaxDepth limits, plus one level of $ref at a time.
class SchemaRewriter {
 public:
  SchemaRewriter(Json& root, Keeping keeping, ValueRules& rules)
      : root_(root), keeping_(keeping), rules_(rules), values_(rules) {}

  Status rewrite_all() {
    given_refs_ = name_refs(root_, rules_);
    if (root_.is_object() && root_.contains("$defs")) given_["$defs"] = root_["$defs"];
    inline_root(root_);
    OUTRIDER_RETURN_IF_ERROR(check_endless());
    OUTRIDER_RETURN_IF_ERROR(rewrite(root_, "#", 1));
    while (!pending_.empty()) {  // targets of $ref, each once
      const std::string ref = pending_.back();
      pending_.pop_back();
      Json* target = named_target(root_, ref);
      if (target != nullptr) OUTRIDER_RETURN_IF_ERROR(rewrite(*target, place_of(ref), 1));
    }
    return Status();
  }

 private:
  static Status wrong(const std::string& path, const std::string& what) {
    return invalid_argument("at " + path + ": " + what);
  }

  bool strict() const { return keeping_ == Keeping::kStrict; }

  // As the schema itself calls it, where that is not long.
  std::string place_of(const std::string& ref) const {
    const std::map<std::string, std::string>::const_iterator given = given_refs_.find(ref);
    return given != given_refs_.end() && given->second.size() <= kMaxGivenRef ? given->second : ref;
  }

  // What describes no value is refused, or may be any value.
  Status check_endless() {
    for (const EndlessAlternative& endless : endless_alternatives(root_)) {
      if (strict()) {
        return wrong(place_of(endless.ref) + endless.place,
                     "the alternative leads back to itself and never to a value; take it out, or "
                     "refer to the schema below a property or an item");
      }
      *endless.alternative = Json::object();
    }
    return Status();
  }

  // `key` cannot be kept to: refused with `why`, or taken out.
  Status leave_out(Json& node, const char* key, const std::string& path,
                   const std::string& why) const {
    if (strict()) return wrong(path, why);
    node.erase(key);
    return Status();
  }

  // `copies`: how often the lists of types above multiply this schema.
  Status rewrite(Json& node, const std::string& path, std::size_t copies) {
    n_nodes_ += copies;
    if (n_nodes_ > kMaxNodes) {
      return wrong(path, "the schema holds more than " + std::to_string(kMaxNodes) +
                             " schemas, each once for each type of a list of types");
    }
    if (path.size() > kMaxPath) return wrong("the end", "names come to too many bytes: " + path);
    if (node.is_boolean() && (node == true || !strict())) node = Json::object();
    if (!node.is_object()) {
      if (strict()) return wrong(path, "a schema must be an object");
      node = Json::object();
    }
    join_single_all_of(node);
    if (node.contains("$ref")) OUTRIDER_RETURN_IF_ERROR(check_ref(node, path));
    if (node.contains("$ref")) {
      const std::string ref = node["$ref"].get<std::string>();
      if (seen_.insert(ref).second) pending_.push_back(ref);
      return Status();
    }
    const bool joins = node.contains("allOf");
    OUTRIDER_RETURN_IF_ERROR(join_all(node, path));
    joined_above_ += joins ? 1 : 0;
    const OnExit back([this, joins] { joined_above_ -= joins ? 1 : 0; });
    OUTRIDER_RETURN_IF_ERROR(check_types(node, path));
    OUTRIDER_RETURN_IF_ERROR(check_words(node, path));
    OUTRIDER_RETURN_IF_ERROR(check_shapes(node, path));
    OUTRIDER_RETURN_IF_ERROR(check_constants(node, path));
    split_types(node);
    if (node.contains("type") && node["type"].is_array()) copies *= node["type"].size();
    OUTRIDER_RETURN_IF_ERROR(check_counts(node, path, "minLength", "maxLength"));
    OUTRIDER_RETURN_IF_ERROR(check_counts(node, path, "minItems", "maxItems"));
    OUTRIDER_RETURN_IF_ERROR(check_tuple(node, path));
    OUTRIDER_RETURN_IF_ERROR(write_value(node, path));
    const Status alternatives = write_alternatives(node, root_, given_, strict());
    if (!alternatives.ok()) return wrong(path, alternatives.message());
    return rewrite_children(node, path, copies);
  }

  Status check_ref(Json& node, const std::string& path) const {
    const Json& value = node["$ref"];
    if (!value.is_string()) return leave_out(node, "$ref", path, "$ref must be a text");
    const std::string ref = value.get<std::string>();
    if (named_target(root_, ref) == nullptr) {
      const std::string given = ref.substr(ref.starts_with(kNowhere) ? kNowhere.size() : 0);
      return leave_out(node, "$ref", path, "$ref '" + given + "' leads nowhere in this schema");
    }
    if (final_target(root_, ref) == nullptr) {
      return leave_out(node, "$ref", path, "$ref leads back to itself and never to a schema");
    }
    for (const auto& [key, beside] : node.items()) {
      if (!strict() || key == "$ref" || is_annotation(key)) continue;
      return wrong(path, "'" + key + "' cannot be kept to beside $ref; leave it out");
    }
    return Status();
  }

  // Several ones are one object, or cannot be kept to.
  Status join_all(Json& node, const std::string& path) {
    if (!node.contains("allOf")) return Status();
    // A part that holds the whole would be merged into itself for ever.
    const bool too_many = joined_above_ >= kMaxMergedAbove || ++n_merged_ > kMaxMerged;
    if (node["allOf"].is_array() && !too_many) {
      if (std::optional<Json> merged = merge_all_of(given_, node, strict())) {
        if (&node == &root_ && node.contains("$defs")) (*merged)["$defs"] = node["$defs"];
        node = std::move(*merged);
        return Status();
      }
    }
    return leave_out(node, "allOf", path,
                     "allOf can only join open objects that say the same of a property");
  }

  Status check_types(Json& node, const std::string& path) const {
    if (node.contains("type") && node["type"].is_null()) node.erase("type");
    if (!node.contains("type")) {
      // Without one the converter takes any value. An array is meant.
      const bool counts = node.contains("minItems") || node.contains("maxItems");
      if (counts && alone_word(node) == nullptr && !node.contains("properties")) {
        node["type"] = "array";
      }
      return Status();
    }
    Json& type = node["type"];
    if (!strict() && type.is_string() && node.contains("nullable") && node["nullable"] == true) {
      type = Json::array({type, "null"});  // OpenAPI's word for it
      if (node.contains("enum") && node["enum"].is_array()) node["enum"].push_back(nullptr);
    }
    if (type.is_array() && type.size() == 1) type = Json(type[0]);
    const std::vector<Json> names =
        type.is_array() ? std::vector<Json>(type.begin(), type.end()) : std::vector<Json>{type};
    if (names.empty()) return wrong(path, "type must not be empty");
    for (const Json& name : names) {
      if (name.is_string() && is_type(name.get<std::string>())) continue;
      return wrong(path, "unrecognized type " + json::encode(name));
    }
    return Status();
  }

  // The converter passes over what it does not know, and over what stands beside an alternative or
  // an enumeration.
  Status check_words(const Json& node, const std::string& path) const {
    if (!strict()) return Status();
    const std::set<std::string> types = types_of(node);
    const char* alone = alone_word(node);
    for (const auto& [key, value] : node.items()) {
      const bool off = (key == "uniqueItems" && value == false) || key.empty();
      if (is_annotation(key) || off) continue;
      const bool known =
          std::any_of(types.begin(), types.end(),
                      [&name = key](const std::string& type) { return is_known_of(name, type); });
      if (!known && !is_general(key)) {
        return wrong(path, "'" + key + "' cannot be kept to here; leave it out");
      }
      if (alone != nullptr && key != alone && key != "type") {
        return wrong(path, "'" + key + "' cannot be kept to beside " + alone + "; leave it out");
      }
    }
    return Status();
  }

  // That the values of keywords are what they must be.
  Status check_shapes(Json& node, const std::string& path) const {
    const auto is_list = [](const Json& value) { return value.is_array() && !value.empty(); };
    for (const char* key : {"enum", "oneOf", "anyOf"}) {
      if (!node.contains(key) || is_list(node[key])) continue;
      const std::string why = std::string(key) + " must be an array that is not empty";
      OUTRIDER_RETURN_IF_ERROR(leave_out(node, key, path, why));
    }
    if (node.contains("items")) {
      const Json& items = node["items"];
      // Behind a tuple, whose length the converter keeps, nothing more may come.
      const bool says_nothing = items == true || (items.is_array() && items.empty()) ||
                                (items == false && node.contains("prefixItems"));
      if (says_nothing) {
        node.erase("items");
      } else if (node.contains("prefixItems")) {
        OUTRIDER_RETURN_IF_ERROR(
            leave_out(node, "items", path, "items cannot be kept to beside prefixItems"));
      }
    }
    // An annotation, which the converter keeps to for some formats; and then to no length.
    const bool lengths = node.contains("minLength") || node.contains("maxLength");
    if (node.contains("format") && (lengths || !node["format"].is_string())) node.erase("format");
    if (node.contains("prefixItems") && !node["prefixItems"].is_array()) {
      OUTRIDER_RETURN_IF_ERROR(
          leave_out(node, "prefixItems", path, "prefixItems must be an array"));
    }
    if (node.contains("additionalProperties") && !node["additionalProperties"].is_boolean() &&
        !node["additionalProperties"].is_object()) {
      OUTRIDER_RETURN_IF_ERROR(leave_out(node, "additionalProperties", path,
                                         "additionalProperties must be a boolean or a schema"));
    }
    OUTRIDER_RETURN_IF_ERROR(check_properties(node, path));
    // Its grammar of other names than those lets names end wrongly, so that there are no others.
    const bool named = node.contains("properties") && !node["properties"].empty();
    if (named) node.erase("additionalProperties");
    return Status();
  }

  // enum and const, which the converter takes whatever the type.
  Status check_constants(Json& node, const std::string& path) const {
    const std::set<std::string> types = types_of(node);
    const auto fits = [&types](const Json& value) {
      return is_of_types(value, types) && !ValueRules::is_mark(value);
    };
    if (node.contains("const") && !fits(node["const"])) {
      OUTRIDER_RETURN_IF_ERROR(
          leave_out(node, "const", path, "const is not of its type, or begins with U+0001"));
    }
    if (!node.contains("enum")) return Status();
    Json kept = Json::array();
    for (const Json& value : node["enum"]) {
      if (fits(value)) kept.push_back(value);
    }
    if (kept.empty()) return leave_out(node, "enum", path, "enum has no value of its type");
    node["enum"] = std::move(kept);
    return Status();
  }

  // The converter keeps to a tuple's length, whatever is said of it.
  Status check_tuple(const Json& node, const std::string& path) const {
    const char* key = node.contains("items") ? "items" : "prefixItems";
    if (!strict() || !node.contains(key) || !node[key].is_array()) return Status();
    const std::size_t size = node[key].size();
    const bool fits = node.value("minItems", size) <= size && node.value("maxItems", size) >= size;
    if (fits) return Status();
    return wrong(path, "a tuple of " + std::to_string(size) + " has that many items");
  }

  Status check_properties(Json& node, const std::string& path) const {
    if (node.contains("properties")) {
      const Json& properties = node["properties"];
      if (!properties.is_object()) {
        return leave_out(node, "properties", path, "properties must be an object");
      }
      if (properties.size() > kMaxProperties) {
        return leave_out(
            node, "properties", path,
            "an object with more than " + std::to_string(kMaxProperties) + " properties");
      }
    }
    if (!node.contains("required")) return Status();
    if (!node["required"].is_array()) {
      return leave_out(node, "required", path, "required must be an array of texts");
    }
    if (!strict()) return Status();
    for (const Json& name : node["required"]) {
      const bool known = name.is_string() && node.contains("properties") &&
                         node["properties"].contains(name.get<std::string>());
      if (!known)
        return wrong(path, "required names " + json::encode(name) + ", which is no property");
    }
    return Status();
  }

  Status check_counts(Json& node, const std::string& path, const char* least,
                      const char* most) const {
    const std::int64_t limit = strict() ? kMaxCount : kMaxLooseCount;
    std::int64_t values[2] = {0, limit};
    const char* keys[2] = {least, most};
    for (int i = 0; i < 2; ++i) {
      if (!node.contains(keys[i])) continue;
      const Json& value = node[keys[i]];
      const bool whole = value.is_number_unsigned() &&
                         value.get<std::uint64_t>() <= static_cast<std::uint64_t>(limit);
      if (whole) {
        values[i] = value.get<std::int64_t>();
        continue;
      }
      OUTRIDER_RETURN_IF_ERROR(leave_out(node, keys[i], path,
                                         std::string(keys[i]) + " is " + json::encode(value) +
                                             ", but must be a whole number from 0 to " +
                                             std::to_string(kMaxCount)));
    }
    if (values[0] <= values[1]) return Status();
    OUTRIDER_RETURN_IF_ERROR(
        leave_out(node, least, path, std::string(least) + " is above " + most));
    node.erase(most);
    return Status();
  }

  Status write_value(Json& node, const std::string& path) {
    if (!has_value_words(node)) return Status();
    const Status written = values_.write(node, keeping_ == Keeping::kLoose);
    if (written.ok()) return written;
    if (strict()) return wrong(path, written.message());
    take_value_words_out(node);
    return Status();
  }

  Status rewrite_children(Json& node, const std::string& path, std::size_t copies) {
    if (node.contains("properties")) {
      for (const auto& [name, child] : node["properties"].items()) {
        OUTRIDER_RETURN_IF_ERROR(rewrite(child, path + "/properties/" + name, copies));
      }
    }
    if (node.contains("additionalProperties") && node["additionalProperties"].is_object()) {
      OUTRIDER_RETURN_IF_ERROR(
          rewrite(node["additionalProperties"], path + "/additionalProperties", copies));
    }
    for (const char* key : {"oneOf", "anyOf", "items", "prefixItems"}) {
      if (!node.contains(key)) continue;
      Json& children = node[key];
      const std::string where = path + "/" + key;
      if (!children.is_array()) {
        OUTRIDER_RETURN_IF_ERROR(rewrite(children, where, copies));
        continue;
      }
      for (std::size_t i = 0; i < children.size(); ++i) {
        OUTRIDER_RETURN_IF_ERROR(rewrite(children[i], where + "/" + std::to_string(i), copies));
      }
    }
    return Status();
  }

  Json& root_;
  Json given_ = Json::object();  // the definitions before they are rewritten
  std::map<std::string, std::string> given_refs_;
  const Keeping keeping_;
  ValueRules& rules_;
  SchemaValues values_;
  std::set<std::string> seen_;
  std::vector<std::string> pending_;
  std::size_t n_nodes_ = 0;
  int n_merged_ = 0;
  int joined_above_ = 0;  // of what is being rewritten: schemas around it that were merged
};

}  // namespace

Status rewrite_schema(Json& root, Keeping keeping, ValueRules& rules) {
  return SchemaRewriter(root, keeping, rules).rewrite_all();
}

}  // namespace outrider::llama
