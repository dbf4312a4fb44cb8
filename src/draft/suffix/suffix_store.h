// SuffixStore: where the end of a text occurs in many other texts, in a file.
//
// Idea. All places of the texts, sorted by what lies before them, read backwards. The places before
// which a context stands lie next to each other there, and those that share the most with it lie
// next to where it would be sorted in: one binary search finds the longest match and, on both
// sides, the next longest ones. What follows the places is how those texts went on.
//
//     texts   x a b c   y a b d   a b e     context  z a b
//     sorted by "...b": [x a b|c] [a b|e] [y a b|d], all match 2 tokens: c, e and d followed once
//
// Matches longer than kMostMatch tokens count as that long; so sorting is n log n comparisons of
// at most kMostMatch tokens whatever the texts are.
//
// Cost. 8 bytes a token in the file. A search in 10 million tokens touches about 2 x 24 places;
// with what follows for 15 drafted nodes about 10 microseconds when they are in memory. The file is
// mapped, and only what is touched is read and checked (store/store_file.h).
//
// Source: Manber and Myers, "Suffix arrays", 1990; for drafting: He et al., REST, arXiv 2311.08252.
// Tested by suffix_store_test.cc against a naive search.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/status.h"
#include "base/types.h"
#include "draft/base/lookup_drafter.h"
#include "store/file_ops.h"
#include "store/store_file.h"

namespace outrider {

inline constexpr const char* kSuffixStore = "suffix";  // the kind of its store

// Gathers texts and writes them as a store. One thread at a time.
class SuffixStoreBuilder {
 public:
  explicit SuffixStoreBuilder(const TokenizerId& tokenizer) : tokenizer_(tokenizer) {}

  // Adds a text; empty ones are passed over. Errors, with nothing added: kInvalidArgument (an id
  // outside the vocabulary), kResourceExhausted (more than 2^32 - 2 tokens in all).
  Status add(std::span<const Token> text);

  std::uint64_t n_texts() const { return n_texts_; }
  std::uint64_t n_tokens() const { return tokens_.empty() ? 0 : tokens_.size() - 1 - n_texts_; }

  // Sorts and replaces `path` atomically; see save_store(). About a second for a million tokens,
  // and 24 bytes of memory a token.
  Status write(const std::string& path, FileOps& ops) const;
  Status write(const std::string& path) const;

 private:
  TokenizerId tokenizer_;
  std::vector<std::uint32_t> tokens_;  // texts with kSuffixTextEnd before, between and after them
  std::uint64_t n_texts_ = 0;
};

// Immutable; any thread.
class SuffixStore : public LookupFile {
 public:
  static constexpr std::uint32_t kMostMatch = 48;

  // Errors: those of StoreFile::open, kDataLoss for sections that do not fit each other.
  static Result<std::unique_ptr<SuffixStore>> open(const std::string& path);
  // For texts of this tokenizer. Also those of StoreFile::check_tokenizer.
  static Result<std::unique_ptr<SuffixStore>> open(const std::string& path,
                                                   const TokenizerId& tokenizer);

  const StoreFile& file() const { return *file_; }
  std::uint64_t file_bytes() const override { return file_->file_bytes(); }
  std::uint64_t memory_bytes() const override { return 0; }
  Status damage() const override { return file_->damage(); }
  std::uint64_t n_tokens() const { return order_.size(); }
  std::uint64_t n_texts() const { return file_->param(0); }

  // A place: tokens()[next] is what followed `length` tokens of a context.
  struct Place {
    std::uint32_t next = 0;
    std::uint32_t length = 0;
  };
  // The places that match the end of `context` longest, longest first, at most `most` of them, all
  // with at least one token and something behind them. Where many match equally, which of them is
  // arbitrary but fixed. Empty also when the file turns out to be damaged: see StoreFile::damage().
  void find(std::span<const Token> context, std::size_t most, std::vector<Place>& out) const;

  // The token at a place, or kNoToken at a text's end and where the file is damaged.
  Token token_at(std::uint64_t place) const;

  // Adds all texts to `builder`. Errors: kDataLoss; those of the builder.
  Status copy_to(SuffixStoreBuilder& builder) const;

  // Reads everything: checksums, that `order` holds each place once, in order, and that
  // nothing but texts' ends is without one. Slow.
  Status verify() const;

 private:
  explicit SuffixStore(std::unique_ptr<StoreFile> file) : file_(std::move(file)) {}
  Status read_sections();
  bool in_vocabulary(std::uint32_t token) const {
    return token < static_cast<std::uint32_t>(file_->tokenizer().n_vocab);
  }
  bool load_order(std::uint64_t i, std::uint32_t& place) const;
  int compare(std::uint32_t place, std::span<const Token> context, std::uint32_t& length) const;

  std::unique_ptr<StoreFile> file_;
  std::span<const std::uint32_t> tokens_;
  std::span<const std::uint32_t> order_;   // places of the last matched token, sorted
  std::span<const std::uint32_t> starts_;  // [n_vocab + 1]: where a last token's places begin
};

// Ends a text in a store's tokens; no token.
inline constexpr std::uint32_t kSuffixTextEnd = 0xFFFFFFFFu;

// The texts of all of `paths`, at least one. Errors: SuffixStore::open()'s and copy_to()'s;
// kInvalidArgument for stores of different tokenizers.
Result<SuffixStoreBuilder> merge_suffix_stores(const std::vector<std::string>& paths);

}  // namespace outrider
