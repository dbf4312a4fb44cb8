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
  const std::uint32_t size = static_cast<std::uint32_t>(piece.size());
  for (int shift = 0; shift < 32; shift += 8) add_byte(static_cast<unsigned char>(size >> shift));
  for (const char c : piece) add_byte(static_cast<unsigned char>(c));
  ++n_;
}

}  // namespace outrider
