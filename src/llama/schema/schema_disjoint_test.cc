// Schemas that no value is valid by both of, and some that look so.
#include "llama/schema/schema_disjoint.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "llama/schema/schema_refs.h"

namespace outrider::llama {
namespace {

using json::Json;

// Of the oneOf of that schema: "disjoint", or "0 and 1".
std::string overlap_of(const std::string& schema) {
  Json root = Json::parse(schema);
  ValueRules rules;
  name_refs(root, rules);
  const std::optional<Overlap> overlap = find_overlap(root["oneOf"], root);
  if (!overlap) return "disjoint";
  return std::to_string(overlap->first) + " and " + std::to_string(overlap->second);
}

std::string overlap_of_two(const std::string& one, const std::string& other) {
  const std::string there = overlap_of("{\"oneOf\":[" + one + "," + other + "]}");
  EXPECT_EQ(there, overlap_of("{\"oneOf\":[" + other + "," + one + "]}")) << one << " " << other;
  return there;
}

TEST(SchemaDisjoint, ByTypesAndConstants) {
  struct Case {
    const char* one;
    const char* other;
  };
  for (const Case& c :
       std::vector<Case>{{R"({"type":"string"})", R"({"type":["integer","null"]})"},
                         {R"({"type":"array"})", R"({"type":"object","properties":{"a":{}}})"},
                         {R"({"const":"a"})", R"({"const":"b"})"},
                         {R"({"const":"a"})", R"({"type":"integer"})"},
                         {R"({"enum":[1,2]})", R"({"enum":[3,null]})"},
                         {R"({"enum":[1,2]})", R"({"type":"string"})"},
                         // What its own type leaves out of an enumeration is not there.
                         {R"({"type":"string","enum":["a",2]})", R"({"type":"integer"})"},
                         {R"({"anyOf":[{"type":"null"},{"const":1}]})", R"({"type":"string"})"},
                         {R"({"allOf":[{"type":"string"},{"maxLength":3}]})", R"({"type":"null"})"},
                         {"false", "true"}}) {
    EXPECT_EQ(overlap_of_two(c.one, c.other), "disjoint") << c.one << " " << c.other;
  }
  for (const Case& c : std::vector<Case>{
           {R"({"type":"integer"})", R"({"type":"number"})"},
           {R"({"type":["string","null"]})", R"({"type":["integer","null"]})"},
           {R"({"const":1})", R"({"const":1.0})"},
           {R"({"enum":["a","b"]})", R"({"enum":["b","c"]})"},
           {R"({"const":"a"})", R"({"type":"string","pattern":"^b$"})"},  // not looked at
           {R"({"const":{"a":1,"b":2}})", R"({"const":{"b":2,"a":1}})"},
           {R"({"properties":{"a":{}}})", R"({"type":"string"})"},  // no type: any
           {R"({"anyOf":[{"type":"null"},{"type":"string"}]})", R"({"type":"string"})"},
           {"{}", "{}"},
           {R"({"$ref":"#/nowhere"})", R"({"type":"string"})"}}) {
    EXPECT_EQ(overlap_of_two(c.one, c.other), "0 and 1") << c.one << " " << c.other;
  }
}

// An object with that "properties" and "required".
std::string object(const std::string& properties, const std::string& required,
                   const std::string& more = "") {
  return R"({"type":"object","properties":{)" + properties + R"(},"required":[)" + required + "]" +
         more + "}";
}

TEST(SchemaDisjoint, ByAPropertyThatTellsObjectsApart) {
  const std::string cat =
      object(R"("kind":{"const":"cat"},"lives":{"type":"integer"})", R"("kind")");
  const std::string dog = object(R"("kind":{"enum":["dog","hound"]})", R"("kind")");
  EXPECT_EQ(overlap_of_two(cat, dog), "disjoint");
  EXPECT_EQ(overlap_of_two(cat, object(R"("kind":{"type":"integer"})", R"("kind")")), "disjoint");
  EXPECT_EQ(overlap_of_two(cat, object(R"("kind":{"type":"string"})", R"("kind")")), "0 and 1");
  // {} is both.
  EXPECT_EQ(overlap_of_two(cat, object(R"("kind":{"const":"dog"})", "")), "0 and 1");
  // A text is both where nothing says that they are objects.
  EXPECT_EQ(overlap_of_two(R"({"properties":{"k":{"const":1}},"required":["k"]})",
                           R"({"properties":{"k":{"const":2}},"required":["k"]})"),
            "0 and 1");
  // One property below another.
  const auto inside = [](const std::string& kind) {
    return object("\"of\":" + object("\"kind\":{\"const\":\"" + kind + "\"}", R"("kind")"),
                  R"("of")");
  };
  EXPECT_EQ(overlap_of_two(inside("a"), inside("b")), "disjoint");
  EXPECT_EQ(overlap_of_two(inside("a"), inside("a")), "0 and 1");
  // What one needs the other does not allow.
  const std::string closed = R"(,"additionalProperties":false)";
  EXPECT_EQ(
      overlap_of_two(object(R"("a":{})", R"("a")", closed), object(R"("b":{})", R"("b")", closed)),
      "disjoint");
  EXPECT_EQ(overlap_of_two(object(R"("a":{})", R"("a")"), object(R"("b":{})", R"("b")")),
            "0 and 1");
  EXPECT_EQ(overlap_of_two(R"({"const":{"kind":"dog"}})", cat), "disjoint");
}

TEST(SchemaDisjoint, ThroughReferencesAndTheFirstPairIsTold) {
  const std::string defs =
      R"(,"$defs":{"a":{"type":"object","properties":{"k":{"const":"a"},"sub":{"$ref":"#"}},)"
      R"("required":["k"]},"b":{"type":"object","properties":{"k":{"const":"b"}},)"
      R"("required":["k"]},"c":{"$ref":"#/$defs/b"}}})";
  EXPECT_EQ(overlap_of(R"({"oneOf":[{"$ref":"#/$defs/a"},{"$ref":"#/$defs/b"},)"
                       R"({"type":"null"}])" +
                       defs),
            "disjoint");
  EXPECT_EQ(overlap_of(R"({"oneOf":[{"$ref":"#/$defs/a"},{"$ref":"#/$defs/b"},)"
                       R"({"$ref":"#/$defs/c"}])" +
                       defs),
            "1 and 2");
}

// 4.5 million pairs; and 400 million of values.
TEST(SchemaDisjoint, WhatTakesTooLongCountsAsOverlapping) {
  std::string many;
  for (int i = 0; i < 3000; ++i) {
    many += (i > 0 ? ",{\"const\":" : "{\"const\":") + std::to_string(i) + "}";
  }
  EXPECT_NE(overlap_of("{\"oneOf\":[" + many + "]}"), "disjoint");
  std::string low;
  std::string high;
  for (int i = 0; i < 20000; ++i) {
    low += (i > 0 ? "," : "") + std::to_string(i);
    high += (i > 0 ? "," : "") + std::to_string(100000 + i);
  }
  EXPECT_EQ(overlap_of_two("{\"enum\":[" + low + "]}", "{\"enum\":[" + high + "]}"), "0 and 1");
  // What is usual is far from that.
  std::string some;
  for (int i = 0; i < 100; ++i) {
    some +=
        (i > 0 ? "," : "") + object("\"kind\":{\"const\":" + std::to_string(i) + "}", R"("kind")");
  }
  EXPECT_EQ(overlap_of("{\"oneOf\":[" + some + "]}"), "disjoint");
}

}  // namespace
}  // namespace outrider::llama
