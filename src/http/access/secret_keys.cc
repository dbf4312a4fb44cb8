#include "http/access/secret_keys.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <utility>

namespace outrider::http {
namespace {

constexpr bool is_visible(char c) { return c > ' ' && c < '\x7f'; }

std::string_view trimmed(std::string_view text, std::string_view blanks) {
  const std::size_t first = text.find_first_not_of(blanks);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(blanks) - first + 1);
}

}  // namespace

SecretKeys::SecretKeys(const std::vector<std::string>& keys) {
  for (const std::string& key : keys) keys_.push_back(pad(key));
}

SecretKeys::Padded SecretKeys::pad(std::string_view text) {
  Padded padded{};
  const std::size_t size = std::min(text.size(), kMaxBytes + 1);  // no key is that long
  std::copy_n(text.begin(), std::min(size, kMaxBytes), padded.begin());
  padded[kMaxBytes] = static_cast<unsigned char>(size % 256);
  padded[kMaxBytes + 1] = static_cast<unsigned char>(size / 256);
  return padded;
}

std::size_t SecretKeys::place_of(std::string_view guess) const {
  const Padded padded = pad(guess);
  std::size_t place = 0;
  for (std::size_t k = keys_.size(); k > 0; --k) {
    const Padded& key = keys_[k - 1];
    volatile unsigned char difference = 0;  // volatile: or a compiler may stop at the first one
    for (std::size_t i = 0; i < key.size(); ++i) {
      difference = static_cast<unsigned char>(difference | (key[i] ^ padded[i]));
    }
    // All bits where it is this key, else none: no branch.
    const std::size_t is_it = std::size_t{0} - static_cast<std::size_t>(difference == 0);
    place = (k & is_it) | (place & ~is_it);
  }
  return place;
}

Status check_key(const std::string& field, std::string_view key) {
  if (key.empty() || key.size() > SecretKeys::kMaxBytes) {
    return refused(field, "has " + std::to_string(key.size()) + " bytes, but must have 1 to " +
                              std::to_string(SecretKeys::kMaxBytes));
  }
  if (!std::all_of(key.begin(), key.end(), is_visible)) {
    return refused(field,
                   "holds a character that a key cannot have: only visible ASCII "
                   "characters, without spaces");
  }
  return Status();
}

std::vector<std::string> keys_of(std::string_view list) {
  std::vector<std::string> keys;
  for (;;) {
    const std::size_t comma = list.find(',');
    keys.emplace_back(trimmed(list.substr(0, comma), " \t"));
    if (comma == std::string_view::npos) return keys;
    list.remove_prefix(comma + 1);
  }
}

Result<std::vector<std::string>> read_key_file(const std::string& path) {
  errno = 0;
  std::ifstream file(path);
  if (!file) return not_found("cannot read '" + path + "': " + std::strerror(errno));
  std::vector<std::string> keys;
  std::string line;
  for (int number = 1; std::getline(file, line); ++number) {
    const std::string_view key = trimmed(line, " \t\r");
    if (key.empty() || key.front() == '#') continue;
    OUTRIDER_RETURN_IF_ERROR(
        check_key("line " + std::to_string(number) + " of '" + path + "'", key));
    keys.emplace_back(key);
  }
  if (file.bad()) return not_found("cannot read '" + path + "'");
  if (keys.empty()) return invalid_argument("'" + path + "' holds no key");
  return keys;
}

}  // namespace outrider::http
