// TextMemory: finished texts that a drafter keeps, each for later requests of its namespace. What a
// runtime has to know of it: how it looks texts up is the drafter's own (draft/suffix/
// suffix_memory.h), as is what it writes to a file.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>

#include "base/status.h"
#include "base/types.h"
#include "store/tokenizer_id.h"

namespace outrider {

// One thread at a time: that of the drafter.
class TextMemory {
 public:
  // What it may be made for, in tokens.
  static constexpr std::size_t kLeastTokens = 1024;
  static constexpr std::size_t kMostTokens = std::size_t{1} << 21;  // 285 MB

  virtual ~TextMemory() = default;

  // Remembers the text, or its end where it is longer than a namespace may be. Returns how many of
  // its tokens: 0 where it is too short to guess from. May throw std::bad_alloc; then a part of the
  // text may be there.
  virtual std::size_t add(std::string_view name_space, std::span<const Token> text) = 0;
  virtual void clear() = 0;

  // Adds what an earlier run kept in the file; of more than there is room for, the oldest texts go.
  // Errors, with nothing changed: kNotFound where there is none; that of a damaged file, which is
  // renamed, so that nobody's texts go because of one bad read; that of one of another tokenizer.
  // May throw std::bad_alloc.
  virtual Status recall(const std::string& path, const TokenizerId& tokenizer) = 0;
  // Adds to the file what was added since recall(), without losing what others wrote. Errors: why
  // it is not kept. May throw std::bad_alloc.
  virtual Status keep(const std::string& path, const TokenizerId& tokenizer) const = 0;

  struct Stats {
    std::size_t max_tokens = 0;
    std::size_t namespaces = 0;
    std::size_t tokens = 0;  // a mark a text included
    std::size_t memory_bytes = 0;
  };
  virtual Stats stats() const = 0;
};

}  // namespace outrider
