// What an exception becomes: out of memory only where that is what it was.
#include "base/caught.h"

#include <gtest/gtest.h>

#include <new>
#include <stdexcept>

namespace outrider {
namespace {

TEST(Caught, OnlyALackOfMemoryIsCalledSo) {
  EXPECT_EQ(caught(std::bad_alloc()).code(), StatusCode::kResourceExhausted);
  EXPECT_EQ(caught(std::bad_array_new_length()).message(), "out of memory");
  const Status other = caught(std::runtime_error("the disk is gone"));
  EXPECT_EQ(other.code(), StatusCode::kInternal);
  EXPECT_EQ(other.message(), "the disk is gone");
}

TEST(Caught, AnExceptionOfALoadNamesItsFileUnlessMemoryIsLacking) {
  const Status lacking = caught_loading(std::bad_alloc(), "a.store");
  EXPECT_EQ(lacking.code(), StatusCode::kResourceExhausted);
  EXPECT_EQ(lacking.message(), "out of memory");
  const Status other = caught_loading(std::runtime_error("the disk is gone"), "a.store");
  EXPECT_EQ(other.code(), StatusCode::kInternal);
  EXPECT_NE(other.message().find("cannot load 'a.store'"), std::string::npos) << other.message();
  EXPECT_NE(other.message().find("the disk is gone"), std::string::npos) << other.message();
}

}  // namespace
}  // namespace outrider
