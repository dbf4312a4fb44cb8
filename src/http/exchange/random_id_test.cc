#include "http/exchange/random_id.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <cstdint>
#include <functional>
#include <random>
#include <set>
#include <string>
#include <vector>

namespace outrider::http {
namespace {

std::string id_of(const std::vector<std::uint32_t>& words) {
  std::size_t taken = 0;
  const std::string id = id_drawn_from([&] { return words.at(taken++); }, "x-");
  EXPECT_EQ(taken, words.size()) << "all of them, for every id";
  return id;
}

TEST(RandomId, APrefixIsFollowedBy24LettersAndDigits) {
  for (int i = 0; i < 100; ++i) {
    const std::string id = random_id("resp_");
    ASSERT_EQ(id.size(), 29U);
    EXPECT_EQ(id.substr(0, 5), "resp_");
    EXPECT_TRUE(std::all_of(id.begin() + 5, id.end(), [](char c) {
      return std::isalnum(static_cast<unsigned char>(c)) != 0;
    })) << id;
  }
}

// Where a thread's generator was seeded with 32 bits, its ids were no more different than that.
TEST(RandomId, EachIdIsMadeOf192BitsAndEachOfThemCounts) {
  const std::vector<std::uint32_t> words = {1, 2, 3, 4, 5, 6};
  std::set<std::string> ids = {id_of(words)};
  for (std::size_t word = 0; word < words.size(); ++word) {
    for (std::uint32_t bit = 0; bit < 32; ++bit) {
      std::vector<std::uint32_t> other = words;
      other[word] ^= std::uint32_t{1} << bit;
      EXPECT_TRUE(ids.insert(id_of(other)).second) << "word " << word << ", bit " << bit;
    }
  }
}

TEST(RandomId, EveryLetterComesInEveryPlace) {
  std::mt19937 draw(1);
  std::vector<std::set<char>> seen(24);
  for (int i = 0; i < 5000; ++i) {
    const std::string id = id_drawn_from(std::ref(draw), "");
    for (std::size_t place = 0; place < seen.size(); ++place) seen[place].insert(id[place]);
  }
  for (const std::set<char>& letters : seen) EXPECT_EQ(letters.size(), 62U);
}

}  // namespace
}  // namespace outrider::http
