#include "store/tokenizer_id.h"

#include <cinttypes>
#include <cstdio>

namespace outrider {

std::string describe(const TokenizerId& id) {
  char hash[17];
  std::snprintf(hash, sizeof(hash), "%016" PRIx64, id.hash);
  return std::to_string(id.n_vocab) + " tokens, hash " + hash;
}

void TokenizerHash::add(std::string_view piece) {
  hash_.add(static_cast<std::uint32_t>(piece.size()));
  hash_.add(piece);
  ++n_;
}

}  // namespace outrider
