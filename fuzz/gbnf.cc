// A grammar, and where it is taken what llama.cpp makes of it: its parser, and its matcher for a
// few tokens. So what passes the check must not end the process or hold it up. What llama.cpp
// refuses by itself is an error of the client's as well.
#include "llama/grammar/gbnf.h"

#include <algorithm>
#include <memory>
#include <vector>

#include "fuzz/tiny_file.h"
#include "llama/grammar/grammar_mask.h"

namespace outrider::fuzz {
namespace {

// An eighth of the product's: a step of the matcher takes the cube of it, and sanitizers five times
// as long again.
constexpr llama::GbnfLimits kFewWays{
    .first_ways = 128, .place_ways = 192, .step_ways = 1024, .token_ways = 31250};
constexpr int kGrammarTokens = 4;

// `names_tokens`: <[12]> and the like. Behind a character llama.cpp's filter tries them on the rest
// of a token's text, which its acceptance then refuses (docs/bugs.md).
void match(std::string_view grammar, bool names_tokens) {
  static const std::shared_ptr<llama::ModelFile> file = load_tiny_vocabulary("").value();
  const llama::LlamaVocabulary& vocabulary = file->vocabulary();
  const Result<std::unique_ptr<llama::GrammarMask>> made =
      llama::GrammarMask::create(std::string(grammar), {}, vocabulary, kFewWays);
  if (!made.ok()) return;
  llama::GrammarMask& mask = **made;
  for (int i = 0; i < kGrammarTokens && mask.status().ok(); ++i) {
    std::vector<llama_token_data> candidates;
    for (Token token = 0; token < vocabulary.size(); ++token) {
      candidates.push_back({.id = token, .logit = 0.0f, .p = 0.0f});
    }
    mask.filter(candidates);
    if (candidates.empty() || vocabulary.is_end_of_generation(candidates.front().id)) return;
    mask.accept(candidates.front().id);
    if (mask.status().code() == StatusCode::kInternal && !names_tokens) {
      violated(mask.status().message());
    }
  }
}

}  // namespace

void gbnf(Bytes input) {
  const Result<llama::GbnfSummary> summary = llama::check_gbnf(text(input));
  if (summary.ok() && summary->n_rules == 0) violated("a grammar without rules was taken");
  if (!summary.ok() && summary.status().message().empty()) violated("an error that says nothing");
  if (!summary.ok()) return;
  match(text(input), !summary->token_ids.empty() || !summary->token_names.empty());
}

}  // namespace outrider::fuzz
