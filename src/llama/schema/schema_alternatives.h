// oneOf and anyOf, which llama-common's converter reads as the same: as anyOf. It passes over what
// stands beside them, and of an alternative that leads back to its own schema by references only it
// makes a rule that begins with itself.
//
// Tested by json_schema_test.cc.
#pragma once

#include <string>
#include <vector>

#include "base/status.h"
#include "json/json.h"

namespace outrider::llama {

// An alternative of the definition `ref`, at `place` in it ("/anyOf/0"), that leads back to it by
// references and alternatives only: no value is ever described by it.
struct EndlessAlternative {
  std::string ref;
  std::string place;
  json::Json* alternative;  // in the root
};

// Of `root`, whose references name_refs() has written. Where none of these is there any more, there
// are no others.
std::vector<EndlessAlternative> endless_alternatives(json::Json& root);

// `node`'s oneOf and anyOf as the converter keeps to them: a type beside them becomes that of each
// alternative, and a oneOf must be one where anyOf says the same. `given` has the definitions
// before they were rewritten. Where `strict` is not set, whatever cannot be kept to is passed over.
// Errors: kInvalidArgument with the reason and what would be right.
Status write_alternatives(json::Json& node, json::Json& root, json::Json& given, bool strict);

}  // namespace outrider::llama
