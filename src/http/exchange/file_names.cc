#include "http/exchange/file_names.h"

#include <cstddef>

namespace outrider::http {

std::string without_folders(std::string_view text) {
  constexpr std::string_view kBegin = "'/";
  std::string named;
  for (;;) {
    const std::size_t begin = text.find(kBegin);
    const std::size_t end = begin == text.npos ? text.npos : text.find('\'', begin + kBegin.size());
    if (end == text.npos) return named.append(text);
    const std::size_t name = text.rfind('/', end) + 1;
    named.append(text.substr(0, begin + 1)).append(text.substr(name, end + 1 - name));
    text.remove_prefix(end + 1);
  }
}

}  // namespace outrider::http
