#include "http/exchange/random_id.h"

#include <random>

namespace outrider::http {

std::string random_id(std::string_view prefix) {
  std::random_device system;
  return id_drawn_from([&system] { return system(); }, prefix);
}

std::string id_drawn_from(const std::function<std::uint32_t()>& draw, std::string_view prefix) {
  static constexpr std::string_view kLetters =
      "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
  constexpr int kGroups = 3;
  constexpr int kLettersOfGroup = 8;  // of 64 bits: all as likely, to 1 in 80,000
  std::string id(prefix);
  for (int group = 0; group < kGroups; ++group) {
    std::uint64_t bits = std::uint64_t{draw()} << 32;
    bits |= draw();
    for (int i = 0; i < kLettersOfGroup; ++i, bits /= kLetters.size()) {
      id += kLetters[bits % kLetters.size()];
    }
  }
  return id;
}

}  // namespace outrider::http
