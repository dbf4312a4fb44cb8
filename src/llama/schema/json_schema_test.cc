#include "llama/schema/json_schema.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "llama/grammar/gbnf.h"

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
      {R"({"type":"string","pattern":"abc"})", "the pattern"},
      {R"({"type":"string","pattern":"^(a$"})", "the pattern"},
      {R"({"type":"string","pattern":"^)" + repeated("(", 150) + "a" + repeated(")", 150) +
           R"($"})",
       "the pattern"},
      {R"({"type":"string","pattern":"^)" + repeated("a", 5000) + R"($"})", "1000 bytes"},
      {R"({"type":"string","maxLength":4294967296})", "maxLength is 4294967296"},
      {R"({"type":"string","maxLength":5000})", "maxLength is 5000"},
      {R"({"type":"array","minItems":-1})", "minItems is -1"},
      {R"({"type":"array","minItems":3,"maxItems":1})", "minItems is above maxItems"},
      {R"({"type":"integer","minimum":1e308})", "whole number"},
      {R"({"type":"integer","minimum":2000000000000000})", "beyond 1e15"},
      {R"({"type":"integer","minimum":2.5})", "minimum is 2.5"},
      {R"({"type":"number","minimum":5})", "'minimum' cannot be kept to"},
      {R"({"type":"integer","multipleOf":7})", "'multipleOf' cannot be kept to"},
      {R"({"type":"array","items":{},"uniqueItems":true})", "'uniqueItems'"},
      {R"({"not":{"type":"string"}})", "'not'"},
      {R"({"type":"object","minProperties":2})", "'minProperties'"},
      {R"({"properties":{"a":{}},"required":["b"]})", "required names \"b\""},
      {R"({"allOf":[{"type":"integer"},{"minimum":100}]})", "allOf"},
      {R"({"$ref":"#/$defs/a","maxLength":3,"$defs":{"a":{"type":"string"}}})", "beside $ref"},
      {R"({"type":"string","pattern":"^a*$","maxLength":3})", "beside a pattern"},
      {R"({"type":"integer","minimum":5,"maximum":1})", "above the maximum"},
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

TEST(JsonSchema, ARuleThatBeginsWithItselfIsRefusedByTheGrammarsCheck) {
  const Result<std::string> grammar = grammar_from_json_schema(
      R"({"$ref":"#/$defs/a","$defs":{"a":{"anyOf":[{"$ref":"#/$defs/a"},{"type":"null"}]}}})");
  ASSERT_TRUE(grammar.ok()) << grammar.status().message();
  EXPECT_NE(check_gbnf(*grammar).status().message().find("left recursion"), std::string::npos)
      << *grammar;
}

}  // namespace
}  // namespace outrider::llama
