// VocabularyMap: which tokens two vocabularies share.
//
// Idea. Two models that cut text differently still have most common words in both vocabularies. A
// token is shared when both have one of the same bytes; where a vocabulary has several of these
// bytes, the one that its tokenizer gives. Control tokens have no bytes: they are shared when both
// files spell them alike, and the tokens that end a text or a turn by their role. So the map is one
// to one.
//
//      target   " the" 260   "ing" 267   " lighthouse" -     <|im_end|> 2 (ends a text)
//      draft    " the" 506   "ing" 522   " lighthouse" 9120  <eos> 1      (ends a text)
//
// The share that counts is not that of ids, which are mostly rare words (SmolLM2 has 49,152 tokens
// and gemma-3 262,144, so that at most 19 % of the latter's can be shared), but of what a text
// needs: of the target's tokens of a sample text. A token that is not shared ends the draft, so
// with a share of s even a draft that is always right gets s + s^2 + s^3 tokens of a chain of three
// accepted. At 1/2 that is 0.875, less than one token a step for three passes of the draft: below,
// the pair is refused.
//
// Source: "Accelerating LLM Inference with Lossless Speculative Decoding Algorithms for
// Heterogeneous Vocabularies" (2502.05202), token-level intersection. Tested by
// vocabulary_map_test.cc and tests/real_vocabularies_test.cc.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "base/types.h"
#include "draft/translated/byte_cutter.h"
#include "model/vocabulary.h"

namespace outrider {

// One model's vocabulary, and what the interface does not tell of it.
struct VocabularySide {
  const Vocabulary* vocabulary = nullptr;  // not null; outlives what is made of it
  Token front = kNoToken;                  // what the tokenizer puts in front of a text (BOS)
  Token end_of_text = kNoToken;
  Token end_of_turn = kNoToken;
  // How the file spells a token without bytes, "<|im_end|>"; empty function: not known.
  std::function<std::string(Token)> name;
};

// English prose, code and data: 1 KB that any general model must be able to write.
std::string_view vocabulary_sample();

class VocabularyMap {
 public:
  struct Options {
    std::string_view sample = vocabulary_sample();
    double least_share = 0.5;  // of the sample's tokens, 0 to 1
  };
  struct Share {
    std::int32_t shared = 0;       // tokens that both have
    std::int32_t target_size = 0;  // tokens of the target
    std::int32_t sample_shared = 0;
    std::int32_t sample_size = 0;  // the sample in the target's tokens

    double of_sample() const;  // 0 to 1
    // "24119 of the target's 49152 tokens (49 %), 96 % of a sample text"
    std::string text() const;
  };
  struct Pair {
    Token target;
    Token draft;
  };

  // Errors: kUnsupported when too little is shared, with the share, or when the draft's tokenizer
  // changes the text it is given (lower case, other spaces); the tokenizers' own.
  static Result<VocabularyMap> create(const VocabularySide& target, const VocabularySide& draft,
                                      const Options& options);

  const Share& share() const { return share_; }
  std::int32_t target_size() const { return share_.target_size; }

  // The draft's token, or kNoToken when `target` is not shared. REQUIRES: a valid id.
  Token to_draft(Token target) const { return to_draft_[static_cast<std::size_t>(target)]; }

  // All shared tokens, by the target's ids.
  std::span<const Pair> pairs() const { return pairs_; }

  const VocabularySide& target() const { return target_; }
  const VocabularySide& draft() const { return draft_; }
  const ByteCutter& cutter() const { return cutter_; }  // of the draft

 private:
  VocabularyMap(const VocabularySide& target, const VocabularySide& draft, bool adds_space);
  void pair_text();
  void pair_names();
  void pair_roles();
  void link(Token target, Token draft);
  Status count(const Options& options);

  VocabularySide target_;
  VocabularySide draft_;
  ByteCutter cutter_;
  std::vector<Token> to_draft_;  // [target's size]
  std::vector<bool> taken_;      // [draft's size] by a target's token; only while building
  std::vector<Pair> pairs_;
  Share share_;
};

}  // namespace outrider
