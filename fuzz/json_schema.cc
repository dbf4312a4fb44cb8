#include "llama/schema/json_schema.h"

#include <array>
#include <string>

#include "fuzz/targets.h"
#include "llama/grammar/gbnf.h"

namespace outrider::fuzz {
namespace {

// What the check says of a text that is no grammar: then the schema's names or patterns were not
// written as they must be, and the client would be told that his schema is wrong.
constexpr std::array<const char*, 6> kNoGrammar{"expected", "unknown escape", "not defined",
                                                "no rule",  "no characters",  "nothing to repeat"};

}  // namespace

void json_schema(Bytes input) {
  const Result<std::string> grammar = llama::grammar_from_json_schema(text(input));
  if (!grammar.ok()) return;
  if (grammar->empty()) violated("a schema that constrains nothing was taken");
  // It may be too large for the grammars' limits; the check must say so in time.
  const Status checked = llama::check_gbnf(*grammar, llama::kMadeGbnfLimits).status();
  for (const char* const words : kNoGrammar) {
    if (checked.message().find(words) != std::string::npos) {
      violated("a schema became no grammar: " + checked.message());
    }
  }
}

}  // namespace outrider::fuzz
