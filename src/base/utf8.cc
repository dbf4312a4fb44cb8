#include "base/utf8.h"

#include <algorithm>
#include <cstdint>

namespace outrider {
namespace {

std::uint8_t byte_at(std::string_view text, std::size_t i) {
  return static_cast<std::uint8_t>(text[i]);
}

// What may follow a first byte (RFC 3629, section 4): how many bytes in all, and the range of the
// second one; later ones are 80 to BF. Length 0: not a first byte.
struct Form {
  std::size_t length = 0;
  std::uint8_t second_min = 0x80;
  std::uint8_t second_max = 0xBF;
};

Form form_of(std::uint8_t first) {
  if (first < 0x80) return {.length = 1};
  if (first < 0xC2) return {};
  if (first < 0xE0) return {.length = 2};
  if (first == 0xE0) return {.length = 3, .second_min = 0xA0};
  if (first == 0xED) return {.length = 3, .second_max = 0x9F};
  if (first < 0xF0) return {.length = 3};
  if (first == 0xF0) return {.length = 4, .second_min = 0x90};
  if (first < 0xF4) return {.length = 4};
  if (first == 0xF4) return {.length = 4, .second_max = 0x8F};
  return {};
}

// Length of the character at `i`, and in *valid how many of its bytes are there and right.
std::size_t match(std::string_view text, std::size_t i, std::size_t* valid) {
  const Form form = form_of(byte_at(text, i));
  *valid = form.length == 0 ? 0 : 1;
  for (std::size_t k = 1; k < form.length && i + k < text.size(); ++k) {
    const std::uint8_t min = k == 1 ? form.second_min : std::uint8_t{0x80};
    const std::uint8_t max = k == 1 ? form.second_max : std::uint8_t{0xBF};
    const std::uint8_t byte = byte_at(text, i + k);
    if (byte < min || byte > max) break;
    ++*valid;
  }
  return form.length;
}

}  // namespace

std::optional<std::size_t> first_invalid_utf8(std::string_view text) {
  for (std::size_t i = 0; i < text.size();) {
    if (byte_at(text, i) < 0x80) {
      ++i;
      continue;
    }
    std::size_t valid = 0;
    const std::size_t length = match(text, i, &valid);
    if (length == 0 || valid < length) return i;
    i += length;
  }
  return std::nullopt;
}

Status check_utf8(std::string_view text, std::string_view what) {
  const std::optional<std::size_t> offset = first_invalid_utf8(text);
  if (!offset) return Status();
  constexpr std::string_view kDigits = "0123456789ABCDEF";
  const std::uint8_t byte = byte_at(text, *offset);
  return invalid_argument(std::string(what) + " is not valid UTF-8: byte 0x" + kDigits[byte >> 4] +
                          kDigits[byte & 15] + " at offset " + std::to_string(*offset) +
                          " is not part of a character");
}

std::string with_replacements(std::string_view text) {
  std::string valid;
  while (const std::optional<std::size_t> bad = first_invalid_utf8(text)) {
    valid.append(text.substr(0, *bad)).append("\uFFFD");
    text.remove_prefix(*bad + 1);
  }
  return valid.append(text);
}

std::size_t complete_utf8_prefix(std::string_view text) {
  // The last first byte decides; it is at most four bytes back.
  const std::size_t reach = std::min<std::size_t>(text.size(), 4);
  for (std::size_t back = 1; back <= reach; ++back) {
    const std::size_t i = text.size() - back;
    if ((byte_at(text, i) & 0xC0) == 0x80) continue;
    std::size_t valid = 0;
    const std::size_t length = match(text, i, &valid);
    return valid == back && valid < length ? i : text.size();
  }
  return text.size();
}

}  // namespace outrider
