#include "http/access/secret_keys.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdio>
#include <fstream>
#include <string>

namespace outrider::http {
namespace {

// Of this process alone: tests run beside each other.
std::string file_with(const std::string& text) {
  const std::string path =
      ::testing::TempDir() + "secret_keys_" + std::to_string(getpid()) + ".keys";
  std::ofstream(path) << text;
  return path;
}

TEST(SecretKeys, AKeyIsTheOneOrItIsNot) {
  const SecretKeys keys({"alpha", std::string(SecretKeys::kMaxBytes, 'z')});
  EXPECT_TRUE(keys.contains("alpha"));
  EXPECT_TRUE(keys.contains(std::string(SecretKeys::kMaxBytes, 'z')));
  for (const std::string& guess :
       {std::string(), std::string("alph"), std::string("alpha "), std::string("Alpha"),
        std::string("alpha\0", 6), std::string(SecretKeys::kMaxBytes - 1, 'z'),
        std::string(SecretKeys::kMaxBytes + 1, 'z'), std::string(100'000, 'z')}) {
    EXPECT_FALSE(keys.contains(guess)) << guess.size();
  }
}

TEST(SecretKeys, AKeysPlaceIsToldFromOneOn) {
  const SecretKeys keys({"alpha", "beta", "gamma", "beta"});
  EXPECT_EQ(keys.place_of("alpha"), 1U);
  EXPECT_EQ(keys.place_of("beta"), 2U) << "the first of two";
  EXPECT_EQ(keys.place_of("gamma"), 3U);
  EXPECT_EQ(keys.place_of("delta"), 0U);
}

// Where one bit differs, at any place, in the text or in its length.
TEST(SecretKeys, EveryBitCounts) {
  const std::string key = "a-key-of-24-characters--";
  const SecretKeys keys({key});
  for (std::size_t bit = 0; bit < 8 * key.size(); ++bit) {
    std::string guess = key;
    guess[bit / 8] = static_cast<char>(guess[bit / 8] ^ (1 << (bit % 8)));
    EXPECT_FALSE(keys.contains(guess)) << bit;
  }
}

TEST(SecretKeys, NoKeysAreNone) {
  EXPECT_TRUE(SecretKeys({}).empty());
  EXPECT_FALSE(SecretKeys({}).contains(""));
}

TEST(SecretKeys, AKeyThatNoHeaderCanCarryIsRefusedWithoutShowingIt) {
  EXPECT_TRUE(check_key("api_key", "sk-1").ok());
  for (const std::string& key : {std::string(), std::string(257, 'x'), std::string("secret key"),
                                 std::string("secret\n"), std::string("gehe\xc3\xadm")}) {
    const Status status = check_key("api_key", key);
    EXPECT_EQ(status.code(), StatusCode::kInvalidArgument);
    EXPECT_EQ(status.field(), "api_key");
    EXPECT_EQ(status.message().find("secret"), std::string::npos);
  }
}

TEST(SecretKeys, AFileHasOneALine) {
  const Result<std::vector<std::string>> keys =
      read_key_file(file_with("# of the team\nfirst\r\n\n  second  \n"));
  ASSERT_TRUE(keys.ok()) << keys.status().message();
  EXPECT_EQ(*keys, (std::vector<std::string>{"first", "second"}));
}

TEST(SecretKeys, AFileWithoutAKeyOrWithAWrongLineIsAnError) {
  EXPECT_EQ(read_key_file(file_with("# nothing\n")).status().code(), StatusCode::kInvalidArgument);
  const Status status = read_key_file(file_with("fine\nse cret\n")).status();
  EXPECT_NE(status.message().find("line 2"), std::string::npos);
  EXPECT_EQ(status.message().find("se cret"), std::string::npos);
  EXPECT_EQ(read_key_file("/nowhere/keys").status().code(), StatusCode::kNotFound);
}

}  // namespace
}  // namespace outrider::http
