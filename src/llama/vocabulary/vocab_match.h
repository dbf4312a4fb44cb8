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
// differ by at most 128; BOS and EOS put around a text alike, and the same one where they are; and
// the same texts from id 5 on (files disagree about the spelling of the first few: <unk>, <s>,
// </s>). What ends a text or a turn may differ, as it does between a base model and one that was
// taught to chat: the target alone ends a text.
// Looks at every token: 5 ms for 49,152.
VocabularyMatch match_vocabularies(const LlamaVocabulary& target, const LlamaVocabulary& draft);

}  // namespace outrider::llama
