// FNV-1a, 64 bits (Fowler, Noll, Vo; RFC 9923): a hash that tells data apart, but not from what
// was made on purpose to be alike.
#pragma once

#include <cstdint>
#include <string_view>

namespace outrider {

class Fnv1a {
 public:
  void add(unsigned char byte) { hash_ = (hash_ ^ byte) * 0x100000001B3U; }
  void add(std::string_view bytes) {
    for (const char c : bytes) add(static_cast<unsigned char>(c));
  }
  // Four bytes, the lowest first: a length, before what has that length.
  void add(std::uint32_t number) {
    for (int shift = 0; shift < 32; shift += 8) add(static_cast<unsigned char>(number >> shift));
  }
  std::uint64_t value() const { return hash_; }

 private:
  std::uint64_t hash_ = 0xCBF29CE484222325U;
};

}  // namespace outrider
