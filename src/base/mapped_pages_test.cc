#include "base/mapped_pages.h"

#include <gtest/gtest.h>

#if defined(__linux__)
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cinttypes>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <string>
#include <vector>

namespace outrider {
namespace {

constexpr std::size_t kPages = 8;

class MappedPagesTest : public ::testing::Test {
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

  // How many pages of the mapping that begins at `at` count as this process's memory.
  std::size_t held(const char* at) const {
    std::ifstream maps("/proc/self/smaps");
    const auto begin = reinterpret_cast<std::uintptr_t>(at);
    bool is_it = false;
    for (std::string line; std::getline(maps, line);) {
      std::uintptr_t first = 0;
      if (std::sscanf(line.c_str(), "%" SCNxPTR "-", &first) == 1 && line.find('-') < 17) {
        is_it = first == begin;
      } else if (is_it && line.starts_with("Rss:")) {
        return 1024 * std::stoull(line.substr(4)) / page_;
      }
    }
    ADD_FAILURE() << "no mapping begins at " << static_cast<const void*>(at);
    return 0;
  }
  void touch(const char* at, std::size_t n_pages) const {
    for (std::size_t i = 0; i < n_pages; ++i) ASSERT_EQ(at[i * page_], 7);
  }

  std::size_t page_ = 0;
  char* shared_ = nullptr;
  char* own_ = nullptr;
};

TEST_F(MappedPagesTest, OnlyAFileThatIsMappedForAllIsSaidToBeOne) {
  const MappedPages file = mapped_pages_at(shared_ + 3 * page_ + 5);
  EXPECT_EQ(file.begin, reinterpret_cast<std::uintptr_t>(shared_));
  EXPECT_EQ(file.end, file.begin + kPages * page_);
  EXPECT_TRUE(file.of_file);
  EXPECT_TRUE(file.holds(shared_, kPages * page_));
  EXPECT_FALSE(file.holds(shared_, kPages * page_ + 1));
  EXPECT_FALSE(file.holds(shared_ + kPages * page_, 0));
  const std::vector<char> heap(1 << 20, 'x');
  const int on_stack = 1;
  // What is written there would be lost.
  for (const void* other : {static_cast<const void*>(own_), static_cast<const void*>(heap.data()),
                            static_cast<const void*>(&on_stack)}) {
    const MappedPages pages = mapped_pages_at(other);
    EXPECT_FALSE(pages.of_file);
    EXPECT_TRUE(pages.holds(other, 1)) << "so that it need not be looked up again";
  }
  EXPECT_EQ(mapped_pages_at(nullptr).end, 0U);
}

TEST_F(MappedPagesTest, WhatIsGivenBackIsHeldNoMoreAndReadFromTheFileAgain) {
  touch(shared_, kPages);
  ASSERT_EQ(held(shared_), kPages);
  // The first page only in part, so that it stays.
  give_back_pages(mapped_pages_at(shared_), shared_ + 1, kPages * page_ - 1);
  EXPECT_EQ(held(shared_), 1U);
  for (std::size_t i = 0; i < kPages * page_; ++i) ASSERT_EQ(shared_[i], 7);
}

// The whole of it is refused, not only the part that lies elsewhere.
TEST_F(MappedPagesTest, WhatIsNotTheFilesStays) {
  touch(shared_, kPages);
  give_back_pages(mapped_pages_at(shared_), shared_, kPages * page_ + 1);
  EXPECT_EQ(held(shared_), kPages);
  touch(own_, kPages);
  give_back_pages(mapped_pages_at(own_), own_, kPages * page_);
  EXPECT_EQ(held(own_), kPages);
  std::vector<char> heap(4 * page_, 'x');
  give_back_pages(mapped_pages_at(shared_), heap.data(), heap.size());
  give_back_pages(mapped_pages_at(heap.data()), heap.data(), heap.size());
  for (const char byte : heap) ASSERT_EQ(byte, 'x');
}

}  // namespace
}  // namespace outrider
#endif
