#include "store/store_file.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <numeric>
#include <random>

#include "store/crc32c.h"
#include "store/store_writer.h"
#include "testing/chi_square.h"
#include "testing/tiny_dir.h"

namespace outrider {
namespace {

const TokenizerId kTokenizer = {.hash = 0x0123456789ABCDEFu, .n_vocab = 1000};

// What a file holds, to compare with what is read.
struct Arrays {
  std::vector<std::uint32_t> words;
  std::vector<std::uint64_t> longs;
  std::string text;
};

Arrays make_arrays(std::size_t n_words, std::size_t n_longs) {
  Arrays arrays{.words = std::vector<std::uint32_t>(n_words),
                .longs = std::vector<std::uint64_t>(n_longs),
                .text = "a few bytes"};
  std::mt19937 random(1);
  std::generate(arrays.words.begin(), arrays.words.end(), [&] { return random(); });
  std::generate(arrays.longs.begin(), arrays.longs.end(), [&] { return random(); });
  return arrays;
}

Status save(const std::string& path, const Arrays& arrays) {
  StoreContents contents;
  contents.kind = "test";
  contents.tokenizer = kTokenizer;
  contents.params = {1, 2, 3, 4, 5, ~std::uint64_t{0}};
  contents.sections = {make_section("words", std::span<const std::uint32_t>(arrays.words)),
                       make_section("longs", std::span<const std::uint64_t>(arrays.longs)),
                       make_section("text", std::span<const char>(arrays.text))};
  return save_store(path, contents);
}

// Reads everything as a drafter would. Ok only when all of it is as saved; kInternal when the file
// was taken though something differs: what must never happen.
Status read_all(const std::string& path, const Arrays& wanted) {
  Result<std::unique_ptr<StoreFile>> file = StoreFile::open(path, "test");
  if (!file.ok()) return file.status();
  OUTRIDER_RETURN_IF_ERROR((*file)->check_tokenizer(kTokenizer));
  Result<std::span<const std::uint32_t>> words = (*file)->section<std::uint32_t>("words");
  if (!words.ok()) return words.status();
  Result<std::span<const std::uint64_t>> longs = (*file)->section<std::uint64_t>("longs");
  if (!longs.ok()) return longs.status();
  Result<std::span<const char>> text = (*file)->section<char>("text");
  if (!text.ok()) return text.status();
  bool whole = true;
  for (std::size_t i = 0; i < words->size() && whole; ++i) {  // element by element
    whole = (*file)->touch(words->subspan(i, 1));
    if (whole && (*words)[i] != wanted.words[i]) return internal_error("a wrong word");
  }
  whole = whole && (*file)->touch(*longs) && (*file)->touch(*text);
  const Status verified = (*file)->verify();  // padding too
  if (!whole && verified.ok()) return internal_error("damage that verify() does not see");
  if (!verified.ok()) return verified;
  const bool same = std::ranges::equal(*words, wanted.words) &&
                    std::ranges::equal(*longs, wanted.longs) &&
                    std::ranges::equal(*text, wanted.text) && (*file)->param(0) == 1 &&
                    (*file)->param(5) == ~std::uint64_t{0};
  return same ? Status() : internal_error("something else than was saved");
}

// Changes one byte of a file in place.
void poke(const std::string& path, std::size_t offset, char byte) {
  std::fstream file(path, std::ios::binary | std::ios::in | std::ios::out);
  file.seekp(static_cast<std::streamoff>(offset));
  file.put(byte);
}

class StoreFileTest : public ::testing::Test {
 protected:
  std::string path(const std::string& name = "x.store") const { return dir_.file(name); }

  testing::TempDir dir_;
};

TEST_F(StoreFileTest, WhatIsSavedIsRead) {
  for (const std::size_t n : {0u, 1u, 15u, 16u, 1023u, 1024u, 1025u, 5000u}) {
    const Arrays arrays = make_arrays(n, n / 3);
    ASSERT_TRUE(save(path(), arrays).ok());
    const Status read = read_all(path(), arrays);
    ASSERT_TRUE(read.ok()) << n << ": " << read.message();
  }
}

TEST_F(StoreFileTest, EveryTruncationOfA64KibFileIsRefused) {
  const Arrays arrays = make_arrays(8000, 4200);
  ASSERT_TRUE(save(path(), arrays).ok());
  const std::string whole = testing::read_bytes(path());
  ASSERT_GE(whole.size(), 64u * 1024);
  testing::write_bytes(path("cut"), whole);
  for (std::size_t size = whole.size(); size-- > 0;) {
    std::filesystem::resize_file(path("cut"), size);
    const Result<std::unique_ptr<StoreFile>> file = StoreFile::open(path("cut"), "test");
    ASSERT_FALSE(file.ok()) << size;
    ASSERT_NE(file.status().message().find("cut"), std::string::npos);  // names the file
    ASSERT_EQ(file.status().code(),
              size < sizeof(kStoreMagic) ? StatusCode::kInvalidArgument : StatusCode::kDataLoss);
  }
  testing::write_bytes(path("cut"), whole + '\0');
  EXPECT_EQ(StoreFile::open(path("cut"), "test").status().code(), StatusCode::kDataLoss);
}

TEST_F(StoreFileTest, EveryFlippedByteOfA4KibFileIsReported) {
  const Arrays arrays = make_arrays(700, 110);
  ASSERT_TRUE(save(path(), arrays).ok());
  const std::string whole = testing::read_bytes(path());
  ASSERT_NEAR(static_cast<double>(whole.size()), 4096.0, 256.0);
  ASSERT_TRUE(read_all(path(), arrays).ok());
  for (std::size_t i = 0; i < whole.size(); ++i) {
    for (const int flip : {0x01, 0xFF}) {
      poke(path(), i, static_cast<char>(whole[i] ^ flip));
      const Status read = read_all(path(), arrays);
      ASSERT_FALSE(read.ok()) << "byte " << i << " ^ " << flip;
      ASSERT_NE(read.code(), StatusCode::kInternal) << "byte " << i << ": " << read.message();
    }
    poke(path(), i, whole[i]);
  }
  EXPECT_TRUE(read_all(path(), arrays).ok());  // every byte is back: the test did what it says
}

// Forged files: damage with the checksums put right, as a fuzzer with a checksum fixer finds them.
TEST_F(StoreFileTest, ForgedHeadersAndTablesNeverLeadOutside) {
  const Arrays arrays = make_arrays(700, 110);
  ASSERT_TRUE(save(path(), arrays).ok());
  const std::string whole = testing::read_bytes(path());
  const std::uint64_t seed = testing::test_seed(20261121);
  std::mt19937_64 random(seed);
  int opened = 0;
  for (int round = 0; round < 3000; ++round) {
    std::string bytes = whole;
    FileHeader header;
    std::memcpy(&header, bytes.data(), sizeof(header));
    const std::size_t index = header.index_offset;
    const std::size_t table = bytes.size() - sizeof(FileFooter) - index;
    const bool in_header = random() % 2 == 0;
    const std::size_t at = in_header ? 16 + random() % (sizeof(FileHeader) - 20)
                                     : index + random() % (header.n_sections * 40);
    const std::uint64_t value = random() % 3 == 0 ? ~std::uint64_t{0} : random();
    std::memcpy(bytes.data() + at, &value, std::min<std::size_t>(1 + random() % 8, 124 - at % 124));
    const std::span<const std::byte> all = std::as_bytes(std::span(bytes.data(), bytes.size()));
    std::memcpy(&header, bytes.data(), sizeof(header));
    header.crc = crc32c(all.first(offsetof(FileHeader, crc)));
    std::memcpy(bytes.data(), &header, sizeof(header));
    FileFooter footer;
    std::memcpy(&footer, bytes.data() + bytes.size() - sizeof(footer), sizeof(footer));
    footer.header_crc = header.crc;
    footer.index_crc = crc32c(all.subspan(index, table));
    std::memcpy(bytes.data() + bytes.size() - sizeof(footer), &footer, sizeof(footer));
    testing::write_bytes(path("forged"), bytes);
    Result<std::unique_ptr<StoreFile>> file = StoreFile::open(path("forged"), "test");
    if (!file.ok()) continue;
    ++opened;
    (void)(*file)->verify();
    Result<std::span<const std::uint32_t>> words = (*file)->section<std::uint32_t>("words");
    if (words.ok() && (*file)->touch(*words)) {
      (void)std::accumulate(words->begin(), words->end(), 0u);
    }
  }
  EXPECT_GT(opened, 0) << "seed " << seed;
}

TEST_F(StoreFileTest, AnotherTokenizerKindVersionOrByteOrderIsRefusedByName) {
  ASSERT_TRUE(save(path(), make_arrays(10, 10)).ok());
  Result<std::unique_ptr<StoreFile>> file = StoreFile::open(path(), "test");
  ASSERT_TRUE(file.ok());
  EXPECT_TRUE((*file)->check_tokenizer(kTokenizer).ok());
  for (const TokenizerId& other : {TokenizerId{.hash = kTokenizer.hash + 1, .n_vocab = 1000},
                                   TokenizerId{.hash = kTokenizer.hash, .n_vocab = 1001}}) {
    const Status refused = (*file)->check_tokenizer(other);
    EXPECT_EQ(refused.code(), StatusCode::kInvalidArgument);
    EXPECT_NE(refused.message().find("0123456789abcdef"), std::string::npos);
  }
  EXPECT_EQ(StoreFile::open(path(), "ngram").status().code(), StatusCode::kInvalidArgument);
  EXPECT_EQ((*file)->section<std::uint32_t>("nothing").status().code(), StatusCode::kDataLoss);
  EXPECT_EQ((*file)->section<std::uint16_t>("words").status().code(), StatusCode::kDataLoss);
  EXPECT_EQ(StoreFile::open(path("none"), "test").status().code(), StatusCode::kNotFound);
  EXPECT_EQ(StoreFile::open(dir_.file(""), "test").status().code(), StatusCode::kInvalidArgument);

  const std::string whole = testing::read_bytes(path());
  const auto with_header = [&](const auto& change) {
    std::string bytes = whole;
    FileHeader header;
    std::memcpy(&header, bytes.data(), sizeof(header));
    change(header);
    std::memcpy(bytes.data(), &header, sizeof(header));
    header.crc = crc32c(std::as_bytes(std::span(bytes.data(), offsetof(FileHeader, crc))));
    std::memcpy(bytes.data(), &header, sizeof(header));
    testing::write_bytes(path("other"), bytes);
    return StoreFile::open(path("other"), "test").status().code();
  };
  EXPECT_EQ(with_header([](FileHeader& h) { h.version = 2; }), StatusCode::kUnsupported);
  EXPECT_EQ(with_header([](FileHeader& h) { h.byte_order = 0x04030201; }),
            StatusCode::kUnsupported);
}

TEST_F(StoreFileTest, WhatTheFormatCannotHoldIsRefusedBeforeAnythingIsWritten) {
  const std::vector<std::uint32_t> words(3);
  const auto attempt = [&](const std::string& kind, const std::vector<std::string>& names) {
    StoreContents contents;
    contents.kind = kind;
    for (const std::string& name : names) {
      contents.sections.push_back(make_section(name, std::span<const std::uint32_t>(words)));
    }
    return save_store(path("new"), contents).code();
  };
  EXPECT_EQ(attempt("", {}), StatusCode::kInvalidArgument);
  EXPECT_EQ(attempt("sixteen bytes ..", {}), StatusCode::kInvalidArgument);
  EXPECT_EQ(attempt("test", {"a", "b", "a"}), StatusCode::kInvalidArgument);
  EXPECT_EQ(attempt("test", std::vector<std::string>(65, "a")), StatusCode::kInvalidArgument);
  EXPECT_EQ(StoreFile::open(path("new"), "test").status().code(), StatusCode::kNotFound);
  EXPECT_EQ(attempt("test", {"a", "b"}), StatusCode::kOk);
}

}  // namespace
}  // namespace outrider
