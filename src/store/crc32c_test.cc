#include "store/crc32c.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "store/tokenizer_id.h"

namespace outrider {
namespace {

std::uint32_t crc_of(std::string_view text, std::uint32_t before = 0) {
  return crc32c(std::as_bytes(std::span(text.data(), text.size())), before);
}

// One bit at a time, as the definition has it.
std::uint32_t slow_crc(std::string_view text) {
  std::uint32_t crc = ~0u;
  for (const char c : text) {
    crc ^= static_cast<unsigned char>(c);
    for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1) ^ ((crc & 1) != 0 ? 0x82F63B78u : 0);
  }
  return ~crc;
}

TEST(Crc32c, PublishedValuesHold) {
  EXPECT_EQ(crc_of(""), 0u);
  EXPECT_EQ(crc_of("123456789"), 0xE3069283u);
  EXPECT_EQ(crc_of(std::string(32, '\0')), 0x8A9136AAu);    // RFC 3720, B.4
  EXPECT_EQ(crc_of(std::string(32, '\xFF')), 0x62A8AB43u);  // RFC 3720, B.4
}

TEST(Crc32c, EveryLengthAndCutEqualsTheDefinition) {
  std::string text;
  for (int i = 0; i < 70; ++i) text += static_cast<char>(i * 37 + 11);
  for (std::size_t length = 0; length <= text.size(); ++length) {
    const std::string_view part = std::string_view(text).substr(0, length);
    ASSERT_EQ(crc_of(part), slow_crc(part)) << length;
    for (std::size_t cut = 0; cut <= length; ++cut) {
      ASSERT_EQ(crc_of(part.substr(cut), crc_of(part.substr(0, cut))), slow_crc(part));
    }
  }
}

struct Pieces {
  std::vector<std::string> all;
  std::int32_t size() const { return static_cast<std::int32_t>(all.size()); }
  std::string_view piece(std::int32_t id) const { return all[static_cast<std::size_t>(id)]; }
};

TEST(TokenizerId, OrderBordersAndNumberOfThePiecesMatter) {
  const TokenizerId id = tokenizer_id(Pieces{{"a", "bc", ""}});
  EXPECT_EQ(id.n_vocab, 3);
  EXPECT_EQ(tokenizer_id(Pieces{{"a", "bc", ""}}), id);
  for (const Pieces& other :
       {Pieces{{"bc", "a", ""}}, Pieces{{"ab", "c", ""}}, Pieces{{"a", "", "bc"}},
        Pieces{{"a", "bc"}}, Pieces{{"a", "bc", "", ""}}, Pieces{{"a", "bd", ""}}}) {
    EXPECT_NE(tokenizer_id(other).hash, id.hash);
  }
}

}  // namespace
}  // namespace outrider
