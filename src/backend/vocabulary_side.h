// How the vocabulary of a llama.cpp model is compared with another one
// (draft/translated/vocabulary_map.h).
#pragma once

#include <string>

#include "draft/translated/vocabulary_map.h"
#include "llama/vocabulary/vocabulary.h"

namespace outrider {

// `vocabulary` must outlive the result.
inline VocabularySide side_of(const llama::LlamaVocabulary& vocabulary) {
  const SpecialTokens special = vocabulary.special();
  return {.vocabulary = &vocabulary,
          .front = special.front,
          .end_of_text = special.end_of_text,
          .end_of_turn = special.end_of_turn,
          .name = [&vocabulary](Token token) { return std::string(vocabulary.text(token)); }};
}

}  // namespace outrider
