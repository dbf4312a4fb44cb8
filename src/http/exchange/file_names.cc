#include "http/exchange/file_names.h"

#include <cstddef>

namespace outrider::http {
namespace {

bool is_of_a_word(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
         c == '-' || c == '/' || static_cast<unsigned char>(c) >= 0x80;
}

// Where the quoted name ends in whose path `from` is; npos: nowhere. Folders have apostrophes, too
// ("/home/o'brien", "/Anns' models"): a quote with a word right behind it ends no name, and of the
// others the last one before a quote that begins something does. In doubt too much is left out.
std::size_t end_of_name(std::string_view text, std::size_t from) {
  constexpr std::string_view kBefore = " \n(,:;=[";
  std::size_t end = text.npos;
  std::size_t at = text.find('\'', from);
  for (; at != text.npos; at = text.find('\'', at + 1)) {
    if (end != text.npos && kBefore.find(text[at - 1]) != text.npos) return end;
    if (at + 1 == text.size() || !is_of_a_word(text[at + 1])) end = at;
  }
  const std::size_t last = text.rfind('\'');
  return end == text.npos && last >= from ? last : end;
}

}  // namespace

std::string without_folders(std::string_view text) {
  constexpr std::string_view kBegin = "'/";
  std::string named;
  for (;;) {
    const std::size_t begin = text.find(kBegin);
    const std::size_t end =
        begin == text.npos ? text.npos : end_of_name(text, begin + kBegin.size());
    if (end == text.npos) return named.append(text);
    const std::size_t name = text.rfind('/', end) + 1;
    named.append(text.substr(0, begin + 1)).append(text.substr(name, end + 1 - name));
    text.remove_prefix(end + 1);
  }
}

}  // namespace outrider::http
