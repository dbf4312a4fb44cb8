// A set of characters (code points), and how a grammar writes one of them inside a JSON string.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace outrider::llama {

class CharacterSet {
 public:
  using Range = std::pair<std::uint32_t, std::uint32_t>;  // both included

  CharacterSet() = default;
  explicit CharacterSet(std::vector<Range> ranges);

  void add(std::uint32_t first, std::uint32_t last);
  void add(const CharacterSet& other);
  CharacterSet complement() const;

  // Empty: JSON cannot write any of them as pattern.h has it.
  std::string in_json_string() const;

 private:
  // Sorted, without overlap.
  std::vector<Range> normalised() const;

  std::vector<Range> ranges_;
};

}  // namespace outrider::llama
