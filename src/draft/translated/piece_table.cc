#include "draft/translated/piece_table.h"

#include <algorithm>
#include <bit>
#include <functional>

namespace outrider {

PieceTable::PieceTable(const Vocabulary& vocabulary) : vocabulary_(&vocabulary) {
  const std::size_t n = static_cast<std::size_t>(vocabulary.size());
  buckets_.assign(std::bit_ceil(2 * n + 1), kNoToken);
  for (Token token = 0; token < vocabulary.size(); ++token) {
    const std::string_view piece = vocabulary.piece(token);
    if (piece.empty()) continue;
    longest_ = std::max(longest_, piece.size());
    Token& bucket = buckets_[bucket_of(piece)];
    bucket = bucket == kNoToken ? token : preferred(bucket, token);
  }
}

// The table is at most half full, so that there is always a free bucket.
std::size_t PieceTable::bucket_of(std::string_view bytes) const {
  const std::size_t mask = buckets_.size() - 1;
  std::size_t i = std::hash<std::string_view>()(bytes) & mask;
  while (buckets_[i] != kNoToken && vocabulary_->piece(buckets_[i]) != bytes) i = (i + 1) & mask;
  return i;
}

// Of two tokens with the same bytes the one that the tokenizer gives; if it gives neither, the
// first. Looks at the last token of the result, since some tokenizers put a space in front.
Token PieceTable::preferred(Token known, Token other) const {
  const Result<std::vector<Token>> tokens = vocabulary_->tokenize(
      vocabulary_->piece(other), /*add_special=*/false, /*parse_special=*/false);
  return tokens.ok() && !tokens->empty() && tokens->back() == other ? other : known;
}

Token PieceTable::find(std::string_view bytes) const {
  return bytes.empty() ? kNoToken : buckets_[bucket_of(bytes)];
}

Token PieceTable::longest(std::string_view bytes) const {
  for (std::size_t n = std::min(longest_, bytes.size()); n > 0; --n) {
    const Token token = find(bytes.substr(0, n));
    if (token != kNoToken) return token;
  }
  return kNoToken;
}

}  // namespace outrider
