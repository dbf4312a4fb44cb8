// TokenizerId: which tokenizer a file's token ids belong to.
//
// A token id means nothing without its vocabulary, and two vocabularies of the same size give
// drafts that are never right, at full cost, without any error. So every store carries the size of
// its vocabulary and a hash of all pieces in order.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/fnv.h"

namespace outrider {

struct TokenizerId {
  std::uint64_t hash = 0;
  std::int32_t n_vocab = 0;

  bool operator==(const TokenizerId&) const = default;
};

// "49152 tokens, hash 0123456789abcdef", for messages.
std::string describe(const TokenizerId& id);

// FNV-1a over each piece's length and bytes, in order: moved, merged and split pieces change it.
class TokenizerHash {
 public:
  void add(std::string_view piece);
  TokenizerId id() const { return {.hash = hash_.value(), .n_vocab = n_}; }

 private:
  Fnv1a hash_;
  std::int32_t n_ = 0;
};

// Of anything that has size() and piece(id) as model/vocabulary.h has them (this layer does not
// know that class).
template <typename Pieces>
TokenizerId tokenizer_id(const Pieces& vocabulary) {
  TokenizerHash hash;
  for (std::int32_t id = 0; id < vocabulary.size(); ++id) hash.add(vocabulary.piece(id));
  return hash.id();
}

}  // namespace outrider
