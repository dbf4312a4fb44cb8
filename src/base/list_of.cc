#include "base/list_of.h"

namespace outrider {

std::string list_of(const std::vector<std::string>& words, std::string_view last) {
  std::string text;
  for (std::size_t i = 0; i < words.size(); ++i) {
    if (i > 0) text += i + 1 == words.size() ? last : ", ";
    text += words[i];
  }
  return text;
}

std::string list_of_names(std::span<const std::string_view> names, std::string_view last) {
  return list_of(std::vector<std::string>(names.begin(), names.end()), last);
}

std::string joined(const std::vector<std::string>& words, std::string_view between) {
  std::string text;
  for (std::size_t i = 0; i < words.size(); ++i) {
    if (i > 0) text += between;
    text += words[i];
  }
  return text;
}

}  // namespace outrider
