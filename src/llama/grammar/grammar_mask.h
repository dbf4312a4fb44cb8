// GrammarMask: which tokens a grammar allows next, by llama.cpp's own grammar sampler.
//
// The text is checked before llama.cpp sees it (llama/grammar/gbnf.h): its parser and matcher
// recurse and expand without limits, and abort or never end on some grammars. What it throws later
// is caught, and a token that it would abort on is refused before it gets there; from then on
// status() is not ok and nothing may follow: a constraint never silently ends.
//
// Triggers. A lazy grammar binds from the place on where the text first says a trigger. llama.cpp
// searches all text so far with a regular expression after each token; here the search is a plain
// one over the last bytes, and llama.cpp's sampler gets the tokens that overlap the trigger when it
// is there, which is all it looks at. It then goes through what was said from the trigger's first
// byte on. A token that completes a trigger may run past it: into what the grammar does not have,
// and llama.cpp then ends with an error. So these tokens (llama/grammar/trigger_tokens.h) are tried
// on a copy beforehand, and those that do not fit may not follow: with "END" the trigger and "END"
// [0-9] the grammar, "END7" stays and "END." goes. Nor may one that ends inside a character which
// no token could complete. A trigger that the grammar cannot begin with is refused: it could never
// be said.
//
// A chat template's grammar (model/chat.h) may also wait for patterns, and pass over what is said
// in reasoning. What a pattern finds only binds where the grammar can go on from it, tried on a
// fresh sampler: nobody can say beforehand which tokens would complete one.
//
// Cost (SmolLM2's 49,152 tokens, a schema of three properties, bench/grammar_bench.cc). Checking a
// candidate takes 0.2 to 0.3 microseconds, all of them 13 to 18 ms. So callers check the best
// candidates only where they can (40 microseconds inside a string), and mask_row() asks about the
// tokens below a token (llama/vocabulary/token_prefixes.h) only when that one is allowed. A copy,
// one for each draft, takes 6 microseconds; it compares all stack entries with all elements of the
// grammar: 0.5 ms with the 41,773 of 128 tools that have 10 properties each, 50 ms where all of
// their names may follow; with 40 properties each 5 ms and 170 ms.
//
// A lazy grammar takes 1 to 2 ms to make (the tokens that run past "{", say, tried on copies), 88
// ms with a trigger that a third of the vocabulary holds (a space); then nothing until a trigger
// has begun.
//
// Tested by grammar_mask_test.cc, grammar_trigger_test.cc and chat_grammar_test.cc, and with the
// chain by sampler_grammar_test.cc.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/status.h"
#include "base/types.h"
#include "llama/base/handles.h"
#include "llama/grammar/gbnf.h"
#include "llama/grammar/trigger_patterns.h"
#include "llama/grammar/trigger_tokens.h"
#include "model/chat.h"

namespace outrider::llama {

class LlamaVocabulary;

class GrammarMask {
 public:
  // For `grammar` (GBNF, begins with the rule "root"); binds at once, or when the text says one of
  // `triggers` (none empty). `vocabulary` must outlive it and its clones. The text is checked with
  // `limits`.
  // Errors: kInvalidArgument with the place and the reason; so for a trigger that is not UTF-8 or
  // that the grammar cannot begin with.
  static Result<std::unique_ptr<GrammarMask>> create(const std::string& grammar,
                                                     const std::vector<std::string>& triggers,
                                                     const LlamaVocabulary& vocabulary,
                                                     const GbnfLimits& limits = {});

  // The same for a chat template's grammar, with the limits of those that we make.
  static Result<std::unique_ptr<GrammarMask>> create(const ChatGrammar& grammar,
                                                     const LlamaVocabulary& vocabulary,
                                                     const GbnfLimits& limits = kMadeGbnfLimits);

  // False while a trigger is awaited: everything is allowed but what masks() is about.
  bool binds() const { return !waiting_; }

  // False when all tokens are allowed: a trigger is awaited, and none runs past it wrongly.
  bool masks() const { return !waiting_ || !forbidden_->empty(); }

  // Removes from `candidates` what the grammar does not allow, keeping the order.
  // REQUIRES: status().ok(), here and below.
  void filter(std::vector<llama_token_data>& candidates) const;

  // Sets the logits of tokens that are not allowed to minus infinity. `row` may be shorter than the
  // vocabulary.
  void mask_row(std::span<float> row) const;

  // `token` has become part of the text. When it is not allowed, status() tells.
  void accept(Token token);

  const Status& status() const { return status_; }

  GrammarMask& operator=(const GrammarMask&) = delete;
  std::unique_ptr<GrammarMask> clone() const;

 private:
  struct Recent {  // a token that may be the beginning of a trigger
    Token token;
    std::string text;
  };

  GrammarMask() = default;
  GrammarMask(const GrammarMask&) = default;  // by which clone() copies whatever members there are
  Status wait_for(const ChatGrammar& grammar);
  Status say_beforehand(const std::string& said);
  void await(Token token, const Stopwatch& watch);
  void await_patterns(Token token, std::string text);
  void bind();
  std::string recent_text() const;
  void find_forbidden(const Stopwatch& watch);
  bool runs_wrongly_past(const TriggerTokens::Piece& piece, const std::string& tail) const;

  CopyableSampler sampler_;
  const LlamaVocabulary* vocabulary_ = nullptr;
  bool by_text_ = true;  // the grammar names no tokens, only text
  bool waiting_ = false;

  // While waiting.
  std::shared_ptr<const TriggerTokens> triggers_;
  std::vector<Recent> recent_;
  std::shared_ptr<const std::vector<Token>> forbidden_;        // by id
  std::shared_ptr<const std::vector<Token>> forbidden_alone_;  // where no trigger has begun
  ReasoningGate gate_{ReasoningMarks()};
  std::shared_ptr<const TriggerPatterns> patterns_;  // null: none
  std::shared_ptr<const std::string> gbnf_;          // with patterns_
  std::vector<Recent> window_;                       // what the patterns look at
  bool window_is_all_ = true;                        // nothing was said before it

  Status status_;
};

}  // namespace outrider::llama
