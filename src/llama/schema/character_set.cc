#include "llama/schema/character_set.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <string_view>

#include "llama/schema/gbnf_text.h"

namespace outrider::llama {
namespace {

constexpr std::uint32_t kLast = 0x10FFFF;

// What JSON strings cannot hold as it is: control characters, " and \, and halves of pairs, which
// are no characters.
constexpr CharacterSet::Range kNotAsItIs[] = {
    {0, 0x1F}, {'"', '"'}, {'\\', '\\'}, {0xD800, 0xDFFF}};

// The escapes, as literals of a grammar.
constexpr std::array<std::pair<char, std::string_view>, 7> kEscapes = {{{'"', R"("\\\"")"},
                                                                        {'\\', R"("\\\\")"},
                                                                        {'\b', R"("\\b")"},
                                                                        {'\f', R"("\\f")"},
                                                                        {'\n', R"("\\n")"},
                                                                        {'\r', R"("\\r")"},
                                                                        {'\t', R"("\\t")"}}};

// In a class of a grammar.
std::string in_class(std::uint32_t c) {
  const bool plain = (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z');
  if (plain) return {static_cast<char>(c)};
  std::array<char, 16> text{};
  static_cast<void>(std::snprintf(text.data(), text.size(), c < 0x100 ? "\\x%02X" : "\\U%08X", c));
  return text.data();
}

}  // namespace

CharacterSet::CharacterSet(std::vector<Range> ranges) : ranges_(std::move(ranges)) {}

void CharacterSet::add(std::uint32_t first, std::uint32_t last) {
  ranges_.push_back({first, last});
}

void CharacterSet::add(const CharacterSet& other) {
  ranges_.insert(ranges_.end(), other.ranges_.begin(), other.ranges_.end());
}

std::vector<CharacterSet::Range> CharacterSet::normalised() const {
  std::vector<Range> sorted = ranges_;
  std::sort(sorted.begin(), sorted.end());
  std::vector<Range> merged;
  for (const Range& range : sorted) {
    if (!merged.empty() && range.first <= merged.back().second + 1) {
      merged.back().second = std::max(merged.back().second, range.second);
    } else {
      merged.push_back(range);
    }
  }
  return merged;
}

CharacterSet CharacterSet::complement() const {
  CharacterSet rest;
  std::uint32_t next = 0;
  for (const Range& range : normalised()) {
    if (range.first > next) rest.add(next, range.first - 1);
    next = range.second + 1;
  }
  if (next <= kLast) rest.add(next, kLast);
  return rest;
}

std::string CharacterSet::in_json_string() const {
  std::vector<std::string> ways;
  // The complement of (the complement and what cannot stand as it is): an intersection.
  CharacterSet without = complement();
  without.add(CharacterSet({std::begin(kNotAsItIs), std::end(kNotAsItIs)}));
  std::string plain;
  for (const Range& range : without.complement().normalised()) {
    plain += in_class(range.first);
    if (range.second > range.first) plain += "-" + in_class(range.second);
  }
  if (!plain.empty()) ways.push_back("[" + plain + "]");
  const std::vector<Range> mine = normalised();
  for (const auto& [character, escape] : kEscapes) {
    const std::uint32_t code = static_cast<unsigned char>(character);
    const bool held = std::any_of(mine.begin(), mine.end(), [code](const Range& range) {
      return range.first <= code && code <= range.second;
    });
    if (held) ways.emplace_back(escape);
  }
  return one_of(ways);
}

}  // namespace outrider::llama
