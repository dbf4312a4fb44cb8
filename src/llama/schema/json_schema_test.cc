#include "llama/schema/json_schema.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <functional>
#include <initializer_list>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "llama/grammar/gbnf.h"
#include "testing/chi_square.h"

namespace outrider::llama {
namespace {

std::string repeated(const std::string& text, std::size_t n) {
  std::string all;
  for (std::size_t i = 0; i < n; ++i) all += text;
  return all;
}

TEST(JsonSchema, UsualSchemasBecomeGrammarsThatPassTheCheck) {
  const std::vector<std::string> good = {
      R"({})", R"({"type":"object"})",
      R"({"type":"object","properties":{"name":{"type":"string","maxLength":20},)"
      R"("age":{"type":"integer","minimum":0,"maximum":150},"tags":{"type":"array",)"
      R"("items":{"enum":["a","b"]},"minItems":1,"maxItems":3}},"required":["name"],)"
      R"("additionalProperties":false})",
      R"({"type":["string","null"]})",
      R"({"anyOf":[{"const":1},{"type":"boolean"},{"type":"string","format":"date"}]})",
      R"({"type":"string","pattern":"^[a-z]{2,5}-(x|y)+\\.$"})",
      R"({"type":"string","pattern":"abc"})",
      R"({"type":["integer","string","null"],"pattern":"^\\d+$","minimum":2.5,"maximum":1e16})",
      R"({"type":"number","minimum":0,"exclusiveMaximum":1,"multipleOf":0.01})",
      R"({"type":"array","prefixItems":[{"type":"string"},true],"items":false})",
      R"({"type":"object","properties":{"next":{"$ref":"#"},"name":{"$ref":"#/%24defs/a~1b"}},)"
      R"("$defs":{"a/b":{"type":"string"}}})",
      R"({"$ref":"#/definitions/a","definitions":{"a":{"properties":{"x":{"type":"null"}}}}})",
      R"({"allOf":[{"$ref":"#/$defs/a"}],"description":"d","$defs":{"a":{"type":"string"}}})",
      R"({"type":"integer","anyOf":[{"minimum":5},{"maximum":-5}]})",
      // A tree holds itself below an item: no cycle of $refs only.
      R"({"$ref":"#/$defs/tree","$defs":{"tree":{"type":"object","properties":{"children":)"
      R"({"type":"array","items":{"$ref":"#/$defs/tree"}}}}}})",
      R"({"allOf":[{"$ref":"#/$defs/a"},{"properties":{"y":{}}}],)"
      R"("$defs":{"a":{"properties":{"x":{"type":"number"}}}}})"};
  for (const std::string& schema : good) {
    const Result<std::string> grammar = grammar_from_json_schema(schema);
    ASSERT_TRUE(grammar.ok()) << schema << "\n" << grammar.status().message();
    const Status checked = check_gbnf(*grammar).status();
    EXPECT_TRUE(checked.ok()) << schema << "\n" << checked.message() << "\n" << *grammar;
  }
}

// Behind the first letter of such a pattern llama.cpp would take minutes for a token.
TEST(JsonSchema, APatternOfManyOptionalLettersIsRefusedByTheCheck) {
  for (const int n : {12, 50, 450}) {
    std::string letters;
    for (int i = 0; i < n; ++i) letters += "a?";
    const Result<std::string> grammar =
        grammar_from_json_schema(R"({"type":"string","pattern":"^x)" + letters + R"($"})");
    ASSERT_TRUE(grammar.ok()) << grammar.status().message();
    const Status checked = check_gbnf(*grammar, kMadeGbnfLimits).status();
    EXPECT_EQ(checked.ok(), n == 12) << checked.message();
    EXPECT_EQ(checked.message().find("ways") != std::string::npos, n != 12) << checked.message();
  }
}

// reliability.md, 10: refused, never silently unconstrained.
TEST(JsonSchema, WhatCannotBeHonouredIsRefusedWithItsPlace) {
  std::string wide = R"({"type":"object","properties":{)";
  for (int i = 0; i < 300; ++i) wide += "\"p" + std::to_string(i) + "\":{},";
  wide += R"("z":{}}})";
  std::string types = R"({"type":"string"})";
  for (int i = 0; i < 12; ++i) {
    types = R"({"type":["object","array"],"properties":{"x":)" + types + "}}";
  }
  const std::vector<std::pair<std::string, std::string>> bad = {
      {"", "not JSON"},
      {"{", "not JSON"},
      {"3", "must be an object"},
      {R"({"type":"strnig"})", "unrecognized type"},
      {R"({"$ref":"#/$defs/a","$defs":{"a":{"$ref":"#/$defs/a"}}})", "leads back to itself"},
      {R"({"allOf":[{"$ref":"#/$defs/a"}],"$defs":{"a":{"$ref":"#/$defs/b"},)"
       R"("b":{"$ref":"#/$defs/a"}}})",
       "leads back to itself"},
      {R"({"$ref":"#/$defs/nowhere"})", "leads nowhere"},
      {R"({"$ref":"http://example.com/x.json"})", "leads nowhere"},
      {R"({"properties":{"x":{"type":"string","pattern":"^(?<=a)b$"}}})",
       "at #/properties/x: the pattern"},
      {R"({"type":"string","pattern":"^a(?!b)$"})", "the pattern"},
      {R"({"type":"string","pattern":"^(a$"})", "the pattern"},
      {R"({"type":"string","pattern":"^)" + repeated("(", 150) + "a" + repeated(")", 150) +
           R"($"})",
       "the pattern"},
      {R"({"type":"string","pattern":"^)" + repeated("a", 5000) + R"($"})", "1000 bytes"},
      {R"({"type":"string","maxLength":4294967296})", "maxLength is 4294967296"},
      {R"({"type":"string","maxLength":5000})", "maxLength is 5000"},
      {R"({"type":"array","minItems":-1})", "minItems is -1"},
      {R"({"type":"array","minItems":3,"maxItems":1})", "minItems is above maxItems"},
      {R"({"type":"integer","minimum":1e308})", "no number of at most 16 digits"},
      {R"({"type":"integer","minimum":2.2,"maximum":2.8})", "no number"},
      {R"({"type":"integer","minimum":"5"})", "minimum must be a number"},
      {R"({"type":"boolean","minimum":5})", "'minimum' cannot be kept to"},
      {R"({"type":"object","properties":{"a":{}},"anyOf":[{"required":["a"]}]})", "beside anyOf"},
      {R"({"type":"string","enum":["a"],"maxLength":3})", "beside enum"},
      {R"({"properties":{"a":false}})", "must be an object"},
      {R"({"const":"\u0001"})", "U+0001"},
      {R"({"type":"integer","multipleOf":7})", "'multipleOf' cannot be kept to"},
      {R"({"type":"array","items":{},"uniqueItems":true})", "'uniqueItems'"},
      {R"({"not":{"type":"string"}})", "'not'"},
      {R"({"type":"object","minProperties":2})", "'minProperties'"},
      {R"({"properties":{"a":{}},"required":["b"]})", "required names \"b\""},
      {R"({"properties":{"a":{}},"required":"a"})", "required must be an array"},
      {R"({"type":"object","properties":{"a":{}},"allOf":[{"additionalProperties":false}]})",
       "allOf"},
      {R"({"additionalProperties":false,"allOf":[{"properties":{"a":{}}}]})", "allOf"},
      {R"({"allOf":[{"type":"integer"},{"minimum":100}]})", "allOf"},
      {R"({"$ref":"#/$defs/a","maxLength":3,"$defs":{"a":{"type":"string"}}})", "beside $ref"},
      {R"({"type":"string","pattern":"^a*$","maxLength":3})", "beside a pattern"},
      {R"({"type":"integer","minimum":5,"maximum":1})", "no number"},
      {wide, "properties"},
      {types, "schemas"},
      {repeated(R"({"items":)", 100) + "{}" + repeated("}", 100), "nested more than 64"},
      {repeated("[", 100000), "nested more than 64"},
      {R"({"properties":{")" + repeated("#", 3000) + R"(":{}}})", "too many bytes"},
      {"{\"a\":\"\xff\"}", "UTF-8"},
      {std::string(300 * 1024, ' '), "bytes"}};
  for (const auto& [schema, message] : bad) {
    const Status status = grammar_from_json_schema(schema).status();
    EXPECT_EQ(status.code(), StatusCode::kInvalidArgument) << schema.substr(0, 200);
    EXPECT_NE(status.message().find(message), std::string::npos) << schema.substr(0, 200) << "\n"
                                                                 << status.message();
  }
}

// What cannot be kept to is passed over, and the rest is kept to.
TEST(JsonSchema, ALooseGrammarIsMadeOfAnySchema) {
  std::string wide = R"({"type":"object","properties":{)";
  for (int i = 0; i < 300; ++i) wide += "\"p" + std::to_string(i) + "\":{},";
  wide += R"("z":{}}})";
  for (const std::string& schema : std::vector<std::string>{
           R"({"enum":[]})",
           R"({"anyOf":{}})",
           R"({"$ref":"#/$defs/a","$defs":{"a":{"$ref":"#/$defs/a"}}})",
           R"({"properties":{"x":{"$ref":"http://example.com/x.json"}}})",
           R"({"type":"string","pattern":"^a(?!b)$"})",
           R"({"type":"string","pattern":3})",
           R"({"type":"string","maxLength":4294967296})",
           R"({"type":"array","minItems":-1})",
           R"({"type":"array","minItems":3,"maxItems":1})",
           R"({"type":"integer","minimum":1e308})",
           R"({"type":"integer","multipleOf":7})",
           R"({"properties":{"a":false,"b":true}})",
           R"({"type":"array","items":{},"uniqueItems":true})",
           R"({"not":{"type":"string"}})",
           R"({"properties":3})",
           R"({"items":3})",
           R"({"additionalProperties":3})",
           R"({"type":"object","patternProperties":{"^a":{}},"propertyNames":{"pattern":"a"}})",
           R"({"properties":{"a":{}},"required":["b"],"x-foo":1})",
           R"({"prefixItems":3})",
           R"({"allOf":[{"type":"integer"},{"minimum":100}]})",
           wide,
           R"({"type":"object","allOf":[{"$ref":"#"},{"properties":{}}]})"}) {
    const Result<std::string> grammar = grammar_from_json_schema(schema, Keeping::kLoose);
    ASSERT_TRUE(grammar.ok()) << schema.substr(0, 200) << "\n" << grammar.status().message();
    const Status checked = check_gbnf(*grammar).status();
    EXPECT_TRUE(checked.ok()) << schema.substr(0, 200) << "\n" << checked.message();
  }
  for (const char* schema : {R"({"type":"strnig"})", R"({"type":[]})", R"({"type":123})"}) {
    EXPECT_FALSE(grammar_from_json_schema(schema, Keeping::kLoose).ok()) << schema;
  }
  const Result<std::string> kept = grammar_from_json_schema(
      R"({"type":"object","properties":{"a":{"type":"integer","maximum":7,"x":1}},"anyOf":)"
      R"([{"required":["a"]}],"required":["a"]})",
      Keeping::kLoose);
  ASSERT_TRUE(kept.ok());
  EXPECT_NE(kept->find("[0-7]"), std::string::npos) << *kept;
  EXPECT_NE(kept->find(R"(\"a\")"), std::string::npos) << *kept;
}

// allOf is one object: what is optional stays so, and a property of two parts is there once.
TEST(JsonSchema, AllOfIsOneObject) {
  const std::string twice =
      R"({"allOf":[{"$ref":"#/$defs/a"},{"properties":{"k":{"const":"x"},"y":{"type":"null"}},)"
      R"("required":["y"]}],"$defs":{"a":{"properties":{"k":{"type":"string"}}}}})";
  EXPECT_FALSE(grammar_from_json_schema(twice).ok());
  const Result<std::string> loose = grammar_from_json_schema(twice, Keeping::kLoose);
  ASSERT_TRUE(loose.ok()) << loose.status().message();
  EXPECT_NE(loose->find("root ::= \"{\" space y-kv ("), std::string::npos) << *loose;
  EXPECT_NE(loose->find("k-kv"), std::string::npos) << *loose;
  // Conditions are passed over, and the properties stay.
  const Result<std::string> kept =
      grammar_from_json_schema(R"({"properties":{"city":{"const":"Rome"}},"required":["city"],)"
                               R"("allOf":[{"if":{"properties":{}}},{"if":{}}]})",
                               Keeping::kLoose);
  ASSERT_TRUE(kept.ok()) << kept.status().message();
  EXPECT_NE(kept->find("Rome"), std::string::npos) << *kept;
}

// Words of schemas put together at random: a grammar, whatever they are.
TEST(JsonSchema, RandomSchemasGiveALooseGrammar) {
  const std::uint64_t seed = testing::test_seed(34);
  std::mt19937 random(static_cast<std::mt19937::result_type>(seed));
  const auto one_of = [&random](std::initializer_list<const char*> texts) {
    return json::Json::parse(*(texts.begin() + random() % texts.size()));
  };
  const std::function<json::Json(int)> schema = [&](int depth) {
    json::Json node = json::Json::object();
    const int n_words = static_cast<int>(random() % 4);
    for (int i = 0; i < n_words; ++i) {
      const auto child = [&] { return depth > 0 ? schema(depth - 1) : json::Json(true); };
      switch (random() % 12) {
        case 0:
          node["type"] = one_of({R"("object")", R"("array")", R"("string")", R"("integer")",
                                 R"("number")", R"(["null","string","number"])"});
          break;
        case 1:
          node["properties"] = {{"a", child()}, {"b", child()}};
          break;
        case 2:
          node[random() % 2 == 0 ? "anyOf" : "oneOf"] = {child(), child()};
          break;
        case 3:
          node["allOf"] = json::Json::array({child(), child()});
          break;
        case 4:
          node["items"] = child();
          break;
        case 5:
          node["prefixItems"] = json::Json::array({child()});
          break;
        case 6:
          node["pattern"] = one_of({R"("a")", R"("^\\d+$")", R"("\\bx")", "[]"});
          break;
        case 7:
          node[random() % 2 == 0 ? "minimum" : "exclusiveMaximum"] =
              one_of({"0", "1.5", "-1e300", "true", R"("x")"});
          break;
        case 8:
          node["minLength"] = one_of({"2", "5000", "-1"});
          break;
        case 9:
          node["enum"] = one_of({"[1,\"a\"]", "[]", "{}"});
          break;
        case 10:
          node["$ref"] = one_of({R"("#")", R"("#/properties/a")", R"("#/%61")", "7"});
          break;
        default:
          node["additionalProperties"] = child();
          break;
      }
    }
    return node;
  };
  for (int i = 0; i < 3000; ++i) {
    const std::string text = json::encode(schema(3));
    const Result<std::string> grammar = grammar_from_json_schema(text, Keeping::kLoose);
    ASSERT_TRUE(grammar.ok()) << "seed " << seed << "\n"
                              << text << "\n"
                              << grammar.status().message();
    EXPECT_NE(grammar->find("root ::="), std::string::npos) << text;
  }
}

// It would be a rule that begins with itself, which the check of grammars refuses by the names of
// rules that nobody wrote.
TEST(JsonSchema, AUnionThatLeadsBackToItselfIsRefusedWithItsPlaceAndWhatWouldBeRight) {
  const std::vector<std::pair<std::string, std::string>> bad = {
      {R"({"$ref":"#/$defs/a","$defs":{"a":{"anyOf":[{"$ref":"#/$defs/a"},{"type":"null"}]}}})",
       "at #/$defs/a/anyOf/0: "},
      {R"({"oneOf":[{"type":"null"},{"$ref":"#"}]})", "at #/oneOf/1: "},
      {R"({"items":{"$ref":"#/$defs/a"},"$defs":{"a":{"anyOf":[{"type":"null"},)"
       R"({"anyOf":[{"$ref":"#/$defs/b"}]}]},"b":{"$ref":"#/$defs/c"},)"
       R"("c":{"allOf":[{"$ref":"#/$defs/a"}]}}})",
       "at #/$defs/c/allOf/0: "}};
  for (const auto& [schema, place] : bad) {
    const Status status = grammar_from_json_schema(schema).status();
    EXPECT_EQ(status.message().find(place + "the alternative leads back to itself"), 0U)
        << schema << "\n"
        << status.message();
    EXPECT_NE(status.message().find("below a property or an item"), std::string::npos);
    const Result<std::string> loose = grammar_from_json_schema(schema, Keeping::kLoose);
    ASSERT_TRUE(loose.ok()) << loose.status().message();
    const Status checked = check_gbnf(*loose).status();
    EXPECT_TRUE(checked.ok()) << schema << "\n" << checked.message() << "\n" << *loose;
  }
  // Below a property or an item a schema may come again.
  for (const char* schema :
       {R"({"anyOf":[{"type":"null"},{"type":"array","items":{"$ref":"#"}}]})",
        R"({"anyOf":[{"$ref":"#/$defs/a"},{"type":"null"}],"$defs":{"a":{"type":"object",)"
        R"("properties":{"x":{"$ref":"#"}}}}})"}) {
    const Result<std::string> grammar = grammar_from_json_schema(schema);
    ASSERT_TRUE(grammar.ok()) << grammar.status().message();
    EXPECT_TRUE(check_gbnf(*grammar).ok()) << *grammar;
  }
}

// A value that is valid by two alternatives is not valid by their oneOf, and a grammar lets it be
// said.
TEST(JsonSchema, OneOfIsKeptToWhereItIsAnyOfAndElseRefusedWithItsPlace) {
  const std::string pets =
      R"("$defs":{"Cat":{"type":"object","properties":{"kind":{"const":"cat"}},)"
      R"("required":["kind"]},)"
      R"("Dog":{"type":"object","properties":{"kind":{"const":"dog"},"name":{"type":"string",)"
      R"("pattern":"^[a-z]+$"}},"required":["kind","name"]}}})";
  const std::string told_apart =
      R"({"oneOf":[{"$ref":"#/$defs/Cat"},{"$ref":"#/$defs/Dog"}],"discriminator":)"
      R"({"propertyName":"kind","mapping":{"cat":"#/$defs/Cat","dog":"#/$defs/Dog"}},)" +
      pets;
  for (const std::string& schema :
       {told_apart, std::string(R"({"oneOf":[{"type":"string"},{"type":"null"},{"const":1}]})"),
        std::string(R"({"type":"string","oneOf":[{"enum":["a","b"]},{"enum":["c"]}]})"),
        std::string(R"({"oneOf":[{"type":"integer"}]})")}) {
    const Result<std::string> grammar = grammar_from_json_schema(schema);
    ASSERT_TRUE(grammar.ok()) << schema << "\n" << grammar.status().message();
    EXPECT_TRUE(check_gbnf(*grammar).ok()) << *grammar;
  }
  const std::string overlapping =
      R"({"properties":{"pet":{"oneOf":[{"type":"null"},{"type":"integer"},{"type":"number"}]}}})";
  const Status status = grammar_from_json_schema(overlapping).status();
  EXPECT_EQ(status.message().find("at #/properties/pet: oneOf cannot be kept to: one value may be "
                                  "valid by its alternatives 1 and 2; say anyOf, or "),
            0U)
      << status.message();
  EXPECT_TRUE(grammar_from_json_schema(overlapping, Keeping::kLoose).ok());
  // Two texts of patterns: their marks are different constants, and the texts may be the same.
  const std::string texts =
      R"({"oneOf":[{"$ref":"#/$defs/a"},{"$ref":"#/$defs/b"}],"$defs":)"
      R"({"a":{"type":"string","pattern":"^a+$"},"b":{"type":"string","pattern":"^a*$"}}})";
  EXPECT_FALSE(grammar_from_json_schema(texts).ok());
}

// The names that references are given inside are nobody's who reads a message.
TEST(JsonSchema, APlaceInADefinitionIsTheOneThatWasWritten) {
  const std::string schema =
      R"({"properties":{"p":{"$ref":"#/$defs/Item"}},"$defs":{"Item":{"properties":)"
      R"({"x":{"not":{}}}}}})";
  EXPECT_EQ(
      grammar_from_json_schema(schema).status().message().find("at #/$defs/Item/properties/x"), 0U)
      << grammar_from_json_schema(schema).status().message();
}

}  // namespace
}  // namespace outrider::llama
