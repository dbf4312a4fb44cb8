#include "base/mapped_pages.h"

#include <gtest/gtest.h>

#if defined(__linux__)
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdlib>
#include <string>
#include <vector>

namespace outrider {
namespace {

constexpr std::size_t kPages = 8;

class MappedPages : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string path = ::testing::TempDir() + "outrider-mapped-XXXXXX";
    const int file = mkstemp(path.data());
    ASSERT_GE(file, 0);
    unlink(path.c_str());
    page_ = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
    const std::vector<char> bytes(kPages * page_, 7);
    ASSERT_EQ(write(file, bytes.data(), bytes.size()), static_cast<ssize_t>(bytes.size()));
    shared_ = map(file, MAP_SHARED);
    own_ = map(file, MAP_PRIVATE);
    close(file);
  }
  void TearDown() override {
    munmap(shared_, kPages * page_);
    munmap(own_, kPages * page_);
  }
  char* map(int file, int flags) {
    void* at = mmap(nullptr, kPages * page_, PROT_READ, flags, file, 0);
    EXPECT_NE(at, MAP_FAILED);
    return static_cast<char*>(at);
  }

  std::size_t page_ = 0;
  char* shared_ = nullptr;
  char* own_ = nullptr;
};

TEST_F(MappedPages, OnlyAFileThatIsMappedForAllIsFound) {
  const MappedFile file = mapped_file_at(shared_ + 3 * page_ + 5);
  EXPECT_EQ(file.begin, reinterpret_cast<std::uintptr_t>(shared_));
  EXPECT_EQ(file.end, file.begin + kPages * page_);
  EXPECT_TRUE(file.holds(shared_, kPages * page_));
  EXPECT_FALSE(file.holds(shared_, kPages * page_ + 1));
  EXPECT_FALSE(file.holds(shared_ + kPages * page_, 0));
  // What is written there would be lost.
  EXPECT_EQ(mapped_file_at(own_).end, 0U);
  const std::vector<char> heap(1 << 20, 'x');
  EXPECT_EQ(mapped_file_at(heap.data()).end, 0U);
  const int on_stack = 1;
  EXPECT_EQ(mapped_file_at(&on_stack).end, 0U);
  EXPECT_EQ(mapped_file_at(nullptr).end, 0U);
}

TEST_F(MappedPages, WhatIsGivenBackIsReadFromTheFileAgain) {
  const MappedFile file = mapped_file_at(shared_);
  give_back_pages(file, shared_ + 1, kPages * page_ - 1);
  for (std::size_t i = 0; i < kPages * page_; ++i) ASSERT_EQ(shared_[i], 7);
}

// The whole of it is refused, not only the part that lies elsewhere.
TEST_F(MappedPages, WhatTheFileDoesNotHoldStays) {
  std::vector<char> heap(4 * page_, 'x');
  give_back_pages(mapped_file_at(shared_), heap.data(), heap.size());
  give_back_pages(mapped_file_at(heap.data()), heap.data(), heap.size());
  for (const char byte : heap) ASSERT_EQ(byte, 'x');
}

}  // namespace
}  // namespace outrider
#endif
