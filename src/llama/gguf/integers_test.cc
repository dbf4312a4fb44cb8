#include "llama/gguf/integers.h"

#include <gguf.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "llama/gguf/gguf_file.h"

namespace outrider::gguf {
namespace {

using List = std::vector<std::int64_t>;
constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max();

class Integers : public ::testing::Test {
 protected:
  template <typename T>
  void set_list(const char* key, gguf_type type, const std::vector<T>& values) {
    gguf_set_arr_data(file_.get(), key, type, values.data(), values.size());
  }
  List list(const char* key) const { return integers(file_.get(), key); }
  std::optional<std::int64_t> one(const char* key) const { return integer(file_.get(), key); }

  const Handle file_{gguf_init_empty()};
};

TEST_F(Integers, EveryIntegerTypeIsRead) {
  gguf_set_val_u8(file_.get(), "u8", 255);
  gguf_set_val_i8(file_.get(), "i8", -128);
  gguf_set_val_u16(file_.get(), "u16", 65'535);
  gguf_set_val_i16(file_.get(), "i16", -32'768);
  gguf_set_val_u32(file_.get(), "u32", 4'294'967'295U);
  gguf_set_val_i32(file_.get(), "i32", -2'147'483'647);
  gguf_set_val_i64(file_.get(), "i64", -kMost);
  gguf_set_val_u64(file_.get(), "u64", std::numeric_limits<std::uint64_t>::max());
  EXPECT_EQ(one("u8"), 255);
  EXPECT_EQ(one("i8"), -128);
  EXPECT_EQ(one("u16"), 65'535);
  EXPECT_EQ(one("i16"), -32'768);
  EXPECT_EQ(one("u32"), 4'294'967'295);
  EXPECT_EQ(one("i32"), -2'147'483'647);
  EXPECT_EQ(one("i64"), -kMost);
  EXPECT_EQ(one("u64"), kMost) << "the largest that there is, not a negative one";
  EXPECT_EQ(list("u8"), List{255});
}

TEST_F(Integers, AListIsReadWholeAndIsNoSingleNumber) {
  set_list<std::uint8_t>("u8", GGUF_TYPE_UINT8, {0, 200, 255});
  set_list<std::int32_t>("i32", GGUF_TYPE_INT32, {-1, 0, 7});
  set_list<std::uint64_t>("u64", GGUF_TYPE_UINT64, {1, ~std::uint64_t{0}});
  EXPECT_EQ(list("u8"), (List{0, 200, 255}));
  EXPECT_EQ(list("i32"), (List{-1, 0, 7}));
  EXPECT_EQ(list("u64"), (List{1, kMost}));
  EXPECT_EQ(one("i32"), std::nullopt);
}

// ggml's own readers abort on each of these.
TEST_F(Integers, WhatIsNoIntegerIsNone) {
  const char* words[] = {"1", "2"};
  gguf_set_val_str(file_.get(), "text", "12");
  gguf_set_val_f32(file_.get(), "float", 1.0F);
  gguf_set_val_bool(file_.get(), "flag", true);
  gguf_set_arr_str(file_.get(), "words", words, 2);
  set_list<float>("floats", GGUF_TYPE_FLOAT32, {1.0F});
  for (const char* key : {"missing", "text", "float", "flag", "words", "floats"}) {
    EXPECT_EQ(list(key), List()) << key;
    EXPECT_EQ(one(key), std::nullopt) << key;
  }
}

TEST_F(Integers, TheNearestNumberOf32BitsKeepsItsSign) {
  EXPECT_EQ(in_32_bits(-5), -5);
  EXPECT_EQ(in_32_bits(kMost), 2'147'483'647);
  EXPECT_EQ(in_32_bits(-kMost), std::numeric_limits<std::int32_t>::min());
  EXPECT_EQ(in_32_bits(4'294'967'295), 2'147'483'647) << "not -1";
}

}  // namespace
}  // namespace outrider::gguf
