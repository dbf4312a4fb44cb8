#include "llama/grammar/gbnf.h"

#include "fuzz/targets.h"

namespace outrider::fuzz {

void gbnf(Bytes input) {
  const Result<llama::GbnfSummary> summary = llama::check_gbnf(text(input));
  if (summary.ok() && summary->n_rules == 0) violated("a grammar without rules was taken");
  if (!summary.ok() && summary.status().message().empty()) violated("an error that says nothing");
}

}  // namespace outrider::fuzz
