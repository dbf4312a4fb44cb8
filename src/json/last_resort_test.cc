#include "json/last_resort.h"

#include <cstring>
#include <type_traits>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "json/json.h"

namespace outrider::json {
namespace {

TEST(LastResort, GivesMemoryThatCanBeWrittenAndGivenBack) {
  std::vector<void*> blocks;
  for (std::size_t bytes = 1; bytes < 100'000; bytes *= 3) {
    blocks.push_back(allocate_in_destructor(bytes));
    std::memset(blocks.back(), 0xAA, bytes);
  }
  for (void* const block : blocks) deallocate_in_destructor(block);
}

TEST(LastResort, IsWhatTheLibrarysDestructorUses) {
  EXPECT_TRUE((std::is_same_v<std::allocator<Json>::value_type, Json>));
  // A deep value is taken apart without a call of itself.
  Json deep;
  for (int i = 0; i < 100'000; ++i) deep = Json::array({std::move(deep)});
  EXPECT_TRUE(deep.is_array());
}

}  // namespace
}  // namespace outrider::json
