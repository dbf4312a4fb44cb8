// What a schema's grammar can say, as llama.cpp's own matcher reads it, against an obvious
// validator: of each schema texts that are valid and texts that are not, and random schemas.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "json/json.h"
#include "llama/schema/json_schema.h"
#include "testing/llama_grammar.h"
#include "testing/schema_validator.h"

namespace outrider::llama {
namespace {

using json::Json;

class SchemaTextsTest : public testing::GrammarTest {
 protected:
  static bool allows(const GrammarMask& mask, Token token) {
    std::vector<llama_token_data> one = {{.id = token, .logit = 1.0F, .p = 0.0F}};
    mask.filter(one);
    return !one.empty();
  }

  // Whether the text can be said, and the answer end behind it.
  static bool matches(const GrammarMask& grammar, const std::string& text) {
    const std::unique_ptr<GrammarMask> mask = grammar.clone();
    for (const Token token : bytes(text)) {
      if (!allows(*mask, token)) return false;
      mask->accept(token);
      if (!mask->status().ok()) return false;
    }
    return allows(*mask, testing::kTinyEos);
  }
};

struct Case {
  const char* schema;
  std::vector<std::string> allowed;
  std::vector<std::string> refused;  // each no JSON, or not valid
};

const std::vector<Case>& cases() {
  static const std::vector<Case> kCases = {
      {R"({"type":"object","properties":{"name":{"type":"string","maxLength":3},)"
       R"("age":{"type":"integer","minimum":0,"maximum":150}},"required":["name"],)"
       R"("additionalProperties":false})",
       {R"({"name":"Ann"})", R"({"name":"","age":0})", R"({ "name": "Ann", "age": 150})"},
       {"", "{}", R"({"name":"Anna"})", R"({"name":"Ann","age":151})", R"({"name":"Ann","x":1})",
        R"({"name":3})", R"({"name":"Ann"}x)", R"({"name":"Ann",})", R"([{"name":"Ann"}])"}},
      {R"({"enum":["a",1,null,{"k":[true]}]})",
       {R"("a")", "1", "null", R"({"k":[true]})"},
       {"a", R"("b")", "2", "true", R"({"k":[false]})", R"("a"1)"}},
      {R"({"type":["string","null"]})", {R"("")", R"("é\"")", "null"}, {"0", "nul", "\"\n\""}},
      {R"({"type":"array","items":{"type":"integer"},"minItems":1,"maxItems":2})",
       {"[1]", "[1,2]", "[-7, 0]"},
       {"[]", "[1,2,3]", R"(["a"])", "[1.5]", "[1"}},
      {R"({"type":"array","prefixItems":[{"type":"boolean"},{"const":"x"}],"items":false})",
       {R"([true,"x"])"},
       {R"(["x",true])", R"([true,"x",1])"}},
      {R"({"$ref":"#/$defs/tree","$defs":{"tree":{"type":"object","properties":{"sub":)"
       R"({"type":"array","items":{"$ref":"#/$defs/tree"}}},"additionalProperties":false}}})",
       {"{}", R"({"sub":[]})", R"({"sub":[{"sub":[{}]},{}]})"},
       {R"({"sub":[1]})", R"({"sub":[{"sub":{}}]})", R"({"sup":[]})"}},
      {R"({"type":"string","pattern":"^[a-c]{2}$"})", {R"("ab")"}, {R"("a")", R"("abc")", "ab"}},
      {R"({"type":"string","minLength":1,"maxLength":1})", {R"("é")"}, {R"("")", R"("ab")"}},
      {R"({"type":"number","minimum":0,"exclusiveMaximum":1})",
       {"0", "0.5", "0.25"},
       {"1", "-0.1", "1.0", "2", R"("0")"}},
      {R"({"allOf":[{"properties":{"a":{"const":1}},"required":["a"]},)"
       R"({"type":"object","properties":{"b":{"type":"null"}}}]})",
       {R"({"a":1})", R"({"a":1,"b":null})"},
       {R"({"b":null})", R"({"a":2})", R"({"a":1,"b":0})"}},
      {R"({"type":"object","additionalProperties":{"type":"integer"}})",
       {"{}", R"({"k":1})", R"({"k":1,"":-2})"},
       {R"({"k":"a"})", R"({"k":1,"l":null})"}},
      {R"({"oneOf":[{"type":"object","properties":{"kind":{"const":"cat"},"lives":{"const":9}},)"
       R"("required":["kind","lives"]},{"type":"object","properties":{"kind":{"const":"dog"}},)"
       R"("required":["kind"]}],"discriminator":{"propertyName":"kind"}})",
       {R"({"kind":"cat","lives":9})", R"({"kind":"dog"})"},
       {R"({"kind":"cat"})", R"({"kind":"cow"})", "{}"}}};
  return kCases;
}

TEST_F(SchemaTextsTest, AGrammarSaysWhatItsSchemaAllowsAndNothingElse) {
  for (const Case& one : cases()) {
    SCOPED_TRACE(one.schema);
    const Json schema = Json::parse(one.schema);
    const Result<std::string> grammar = grammar_from_json_schema(one.schema);
    ASSERT_TRUE(grammar.ok()) << grammar.status().message();
    const std::unique_ptr<GrammarMask> mask = make_mask(*grammar);
    for (const std::string& text : one.allowed) {
      EXPECT_TRUE(matches(*mask, text)) << text;
      EXPECT_TRUE(testing::is_valid(Json::parse(text), schema, schema)) << text;
    }
    for (const std::string& text : one.refused) {
      EXPECT_FALSE(matches(*mask, text)) << text;
      const Json value = Json::parse(text, nullptr, /*allow_exceptions=*/false);
      EXPECT_FALSE(!value.is_discarded() && testing::is_valid(value, schema, schema)) << text;
    }
  }
}

// A schema, and values that are valid by it, with their fields in the order that grammars have:
// those that are required first.
struct Made {
  Json schema;
  std::vector<Json> values;
};

class SchemaMaker {
 public:
  explicit SchemaMaker(std::mt19937& random) : random_(random) {}

  // With definitions that it refers to.
  Made make_root() {
    definitions_.clear();
    Json all = Json::object();
    for (const char* name : {"one", "two"}) {
      const Json itself = {{"$ref", std::string("#/$defs/") + name}};
      Made definition = make(1);
      if (draw(2) == 0) {  // a list: it holds itself below a property
        definition = object({{"v", true, std::move(definition)}, {"next", false, {itself, {}}}});
      }
      all[name] = definition.schema;
      definitions_.push_back({itself, std::move(definition.values)});
    }
    Made root = make(3);
    root.schema["$defs"] = std::move(all);
    return root;
  }

 private:
  struct Property {
    std::string name;
    bool required;
    Made made;
  };

  std::size_t draw(std::size_t n) { return random_() % n; }

  Made make(int depth) {
    switch (draw(depth > 0 ? 10 : 4)) {
      case 0:
        return {{{"type", "boolean"}}, {true, false}};
      case 1:
        return number();
      case 2:
        return text();
      case 3:
        return {{{"enum", {"e", 7, nullptr}}}, {"e", 7, nullptr}};
      case 4:
        return array(make(depth - 1));
      case 5:
        return union_of("anyOf", {make(depth - 1), make(depth - 1)});
      case 6:  // which strict conversion may refuse
        return union_of("oneOf", {make(depth - 1), make(depth - 1)});
      case 7:
        return union_of("oneOf", {object({{"kind", true, {{{"const", "a"}}, {"a"}}},
                                          {"v", draw(2) == 0, make(depth - 1)}}),
                                  object({{"kind", true, {{{"const", "b"}}, {"b"}}},
                                          {"w", draw(2) == 0, make(depth - 1)}})});
      case 8:
        return definitions_.empty() ? number() : definitions_[draw(definitions_.size())];
      default:
        return object({{"p", draw(2) == 0, make(depth - 1)},
                       {"q", draw(2) == 0, make(depth - 1)},
                       {"r", draw(2) == 0, make(depth - 1)}});
    }
  }

  Made number() {
    const std::int64_t least = static_cast<std::int64_t>(draw(40)) - 20;
    const std::int64_t most = least + static_cast<std::int64_t>(draw(30));
    if (draw(2) == 0) return {{{"type", "integer"}}, {least, 0, most}};
    const bool whole = draw(2) == 0;
    Json schema = {{"type", whole ? "integer" : "number"}, {"minimum", least}, {"maximum", most}};
    if (whole) return {std::move(schema), {least, most}};
    return {std::move(schema), {least, static_cast<double>(least + most) / 2}};
  }

  Made text() {
    static const Made kPatterns[] = {
        {{{"type", "string"}, {"pattern", "^[a-c]{1,3}$"}}, {"a", "abc"}},
        {{{"type", "string"}, {"pattern", "^\\d+$"}}, {"0", "42"}},
        {{{"type", "string"}, {"pattern", "x"}}, {"x", "axb"}}};
    if (draw(2) == 0) return kPatterns[draw(std::size(kPatterns))];
    const std::size_t least = draw(3);
    const std::size_t most = least + draw(3);
    return {{{"type", "string"}, {"minLength", least}, {"maxLength", most}},
            {std::string(least, 'a'), std::string(most, 'b')}};
  }

  Made array(const Made& item) {
    const std::size_t least = draw(2);
    const std::size_t most = least + draw(3);
    Made made{{{"type", "array"}, {"items", item.schema}, {"minItems", least}, {"maxItems", most}},
              {}};
    for (const std::size_t n : {least, most}) {
      if (n > 0 && item.values.empty()) continue;
      Json value = Json::array();
      for (std::size_t i = 0; i < n; ++i) value.push_back(item.values[draw(item.values.size())]);
      made.values.push_back(std::move(value));
    }
    return made;
  }

  Made object(const std::vector<Property>& properties) {
    Made made{{{"type", "object"}, {"properties", Json::object()}}, {}};
    for (const Property& property : properties) {
      made.schema["properties"][property.name] = property.made.schema;
      if (property.required) made.schema["required"].push_back(property.name);
    }
    if (draw(2) == 0) made.schema["additionalProperties"] = false;
    for (const bool all : {false, true}) {
      Json value = Json::object();
      bool whole = true;
      for (const bool required : {true, false}) {
        for (const Property& property : properties) {
          if (property.required != required || (!required && !all)) continue;
          const std::vector<Json>& values = property.made.values;
          whole = whole && (!values.empty() || !required);
          if (!values.empty()) value[property.name] = values[draw(values.size())];
        }
      }
      if (whole) made.values.push_back(std::move(value));
    }
    return made;
  }

  static Made union_of(const char* word, const std::vector<Made>& all) {
    Made made{{{word, Json::array()}}, {}};
    for (const Made& one : all) {
      made.schema[word].push_back(one.schema);
      const std::size_t n = std::min(one.values.size(), kMostOfOne);
      made.values.insert(made.values.end(), one.values.begin(),
                         one.values.begin() + static_cast<std::ptrdiff_t>(n));
    }
    return made;
  }

  static constexpr std::size_t kMostOfOne = 3;  // values of an alternative

  std::mt19937& random_;
  std::vector<Made> definitions_;  // as what refers to them
};

// `value` with one place of it changed.
Json changed(Json value, std::mt19937& random) {
  static const Json kOthers[] = {nullptr, true, 7, -1, 2.5, "zzzz", Json::array(), Json::object()};
  if (value.is_structured() && !value.empty() && random() % 4 != 0) {
    const auto at = std::next(value.begin(), static_cast<std::ptrdiff_t>(random() % value.size()));
    if (random() % 4 == 0) {
      value.erase(at);
    } else {
      *at = changed(*at, random);
    }
    return value;
  }
  if (value.is_object() && random() % 2 == 0) {
    value["more"] = 1;
  } else if (value.is_array() && random() % 2 == 0) {
    value.push_back(nullptr);
  } else {
    value = kOthers[random() % std::size(kOthers)];
  }
  return value;
}

class RandomSchemaTextsTest : public SchemaTextsTest {
 protected:
  // A text that the grammar says, of one byte's characters without escapes; nothing: none has come
  // to its end. Behind 60 bytes what closes is preferred.
  static std::optional<std::string> said(const GrammarMask& grammar, std::mt19937& random) {
    const std::unique_ptr<GrammarMask> mask = grammar.clone();
    std::string text;
    while (text.size() < 300 && mask->status().ok()) {
      std::vector<llama_token_data> next = {{.id = testing::kTinyEos, .logit = 1.0F, .p = 0.0F}};
      for (char c = ' '; c <= '~'; ++c) {
        if (c != '\\') next.push_back({.id = bytes({c})[0], .logit = 1.0F, .p = 0.0F});
      }
      mask->filter(next);
      if (next.empty()) return std::nullopt;
      Token token = next[random() % next.size()].id;
      const bool hurries = text.size() > 60 || random() % 3 == 0;
      if (hurries) token = closing(next).value_or(token);
      if (token == testing::kTinyEos) return text;
      text += static_cast<char>(token - testing::kTinyFirstByte);
      mask->accept(token);
    }
    return std::nullopt;
  }

  static std::optional<Token> closing(const std::vector<llama_token_data>& next) {
    const std::array<Token, 4> wanted = {testing::kTinyEos, bytes("}")[0], bytes("]")[0],
                                         bytes("\"")[0]};
    for (const Token token : wanted) {
      for (const llama_token_data& one : next) {
        if (one.id == token) return token;
      }
    }
    return std::nullopt;
  }
};

// Every text of a strict grammar is valid, and valid values can be said.
TEST_F(RandomSchemaTextsTest, WhatAGrammarSaysIsValidAndWhatIsValidCanBeSaid) {
  std::mt19937 random(static_cast<unsigned>(testing::test_seed(71)));
  SchemaMaker maker(random);
  int n_grammars = 0;
  int n_said = 0;
  int n_refused = 0;
  for (int round = 0; round < 100; ++round) {
    const Made made = maker.make_root();
    const std::string schema = json::encode(made.schema);
    SCOPED_TRACE(schema);
    const Result<std::string> grammar = grammar_from_json_schema(schema);
    if (!grammar.ok()) {
      EXPECT_NE(grammar.status().message().find("oneOf cannot be kept to"), std::string::npos)
          << grammar.status().message();
      continue;
    }
    ++n_grammars;
    const std::unique_ptr<GrammarMask> mask = make_mask(*grammar);
    const auto is_valid = [&](const Json& value) {
      return testing::is_valid(value, made.schema, made.schema);
    };
    for (const Json& value : made.values) {
      const std::string text = json::encode(value);
      EXPECT_TRUE(is_valid(value)) << text;
      EXPECT_TRUE(matches(*mask, text)) << text << "\n" << *grammar;
      for (int i = 0; i < 4; ++i) {
        const Json other = changed(value, random);
        const bool valid = is_valid(other);
        EXPECT_TRUE(valid || !matches(*mask, json::encode(other))) << json::encode(other);
        n_refused += valid ? 0 : 1;
      }
    }
    for (int i = 0; i < 3; ++i) {
      const std::optional<std::string> text = said(*mask, random);
      if (!text) continue;
      EXPECT_TRUE(is_valid(Json::parse(*text))) << *text << "\n" << *grammar;
      ++n_said;
    }
  }
  EXPECT_GT(n_grammars, 50);
  EXPECT_GT(n_said, 50);
  EXPECT_GT(n_refused, 50);
}

}  // namespace
}  // namespace outrider::llama
