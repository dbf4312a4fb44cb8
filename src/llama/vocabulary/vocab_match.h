// Whether a draft model's tokens mean what the target's mean.
#pragma once

#include <cstdint>
#include <string>

#include "llama/vocabulary/vocabulary.h"

namespace outrider::llama {

struct VocabularyMatch {
  enum class Kind {
    kIdentical,  // type, size, special tokens, and every token's text and attributes
    kPadded,     // near enough to draft: the common ids mean the same. Ids that only one of the two
                 // has must not be handed to the other
    kDifferent   // an id may mean another token; draft/translated/vocabulary_map.h finds what is
                 // shared
  };
  Kind kind = Kind::kDifferent;
  std::string message;  // what differs, for a person; empty when identical

  bool usable() const { return kind != Kind::kDifferent; }
};

// Compares what llama.cpp read of both models. Padded means: the same type of tokenizer; sizes that
// differ by at most 100; the same BOS, EOS and end of turn, put around a text alike; and the same
// texts from id 5 on (files disagree about the spelling of the first few: <unk>, <s>, </s>).
// Looks at every token: 5 ms for 49,152.
VocabularyMatch match_vocabularies(const LlamaVocabulary& target, const LlamaVocabulary& draft);

}  // namespace outrider::llama
