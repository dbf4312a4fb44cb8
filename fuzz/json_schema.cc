#include "llama/schema/json_schema.h"

#include "fuzz/targets.h"
#include "llama/grammar/gbnf.h"

namespace outrider::fuzz {

void json_schema(Bytes input) {
  const Result<std::string> grammar = llama::grammar_from_json_schema(text(input));
  if (!grammar.ok()) return;
  if (grammar->empty()) violated("a schema that constrains nothing was taken");
  // It may be too large for the grammars' limits; the check must say so in time.
  static_cast<void>(llama::check_gbnf(*grammar, llama::kMadeGbnfLimits));
}

}  // namespace outrider::fuzz
