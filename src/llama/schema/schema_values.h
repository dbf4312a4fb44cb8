// Schemas of strings with a pattern and of numbers with bounds, whose rules are our own
// (value_rules.h).
#pragma once

#include "base/status.h"
#include "json/json.h"
#include "llama/schema/value_rules.h"

namespace outrider::llama {

// Whether a schema holds a pattern, bounds of a number, or multipleOf.
bool has_value_words(const json::Json& node);
void take_value_words_out(json::Json& node);

// A list of types with such a word becomes one alternative for each type, since each word is about
// some of them.
void split_types(json::Json& node);

class SchemaValues {
 public:
  // `rules` must outlive it.
  explicit SchemaValues(ValueRules& rules) : rules_(rules) {}

  // `node`, which has_value_words() and not several types, becomes a mark of `rules`. Where a text
  // cannot be held to all of its words: with `loose` to the most important one. Errors:
  // kInvalidArgument with the reason; `node` is unchanged then.
  Status write(json::Json& node, bool loose);

 private:
  Status write_string(json::Json& node, bool loose);
  Status write_number(json::Json& node, bool loose);

  ValueRules& rules_;
  int n_patterns_ = 0;
};

}  // namespace outrider::llama
