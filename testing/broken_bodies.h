// BrokenBodies: JSON bodies of completions, each with one thing wrong that no reader may overlook:
// cut off, bytes that are no UTF-8, control characters, numbers that are none, a field twice,
// something behind the end, or nested too deeply.
#pragma once

#include <cstddef>
#include <cstdint>
#include <random>
#include <string>
#include <vector>

namespace outrider::testing {

class BrokenBodies {
 public:
  explicit BrokenBodies(std::uint64_t seed) : random_(seed) {}

  // `good`: an object that holds the text "abc" and no temperature, top_p or seed.
  std::string next(const std::string& good) {
    const std::string number = pick({"temperature", "top_p", "seed"});
    switch (draw(7)) {
      case 0:
        return good.substr(0, draw(good.size()));
      case 1:
        return inside_text(
            good, pick({"\xff", "\xc0\x80", "\xed\xa0\x80", "\xf5\x80\x80\x80", "\xe2\x82"}));
      case 2:
        return inside_text(good,
                           pick({"\n", std::string(1, '\0'), "\\x", "\\u12g", "\\ud80x", "\t"}));
      case 3:
        return with(good, number,
                    pick({"NaN", "Infinity", "-Infinity", "1e999", "-1e999", "0x10", "01", "1.",
                          ".5", "+1", "1e", "--1", "tru", "nul"}));
      case 4:  // twice
        return with(good, number, "1,\"" + number + "\":1");
      case 5:
        return good + pick({"}", "]", "x", "{}", ",", "\"", "/**/"});
      default:
        return std::string(65 + draw(100), pick({"[", "{"})[0]) + good;
    }
  }

 private:
  std::size_t draw(std::size_t n) { return static_cast<std::size_t>(random_() % n); }
  std::string pick(const std::vector<std::string>& list) { return list[draw(list.size())]; }
  static std::string with(const std::string& good, const std::string& name,
                          const std::string& value) {
    return "{\"" + name + "\":" + value + "," + good.substr(1);
  }
  static std::string inside_text(std::string good, const std::string& bytes) {
    return good.insert(good.find("abc") + 1, bytes);
  }

  std::mt19937_64 random_;
};

}  // namespace outrider::testing
