// SuffixMemory: finished texts, each in its namespace, in which the suffix drafter looks for what
// comes next.
//
// Idea. An answer is often repeated: the next version of a file, the same question
// put differently. The operator lets texts be remembered; each is for requests of its own namespace
// only. A namespace's texts lie one behind the other, with a mark behind each, in up to kParts
// automatons (draft/suffix/suffix_index.h) of equal size. The newest one grows. An automaton cannot
// forget its beginning, so the oldest texts are dropped with the whole oldest one.
//
// Example. A namespace of at most 8 tokens, parts of 4:  a b c |, d e | f, g h |  is read as
//     part 1: a b c |    part 2: d e | f    part 3: g h |
// (| is the mark, which is never guessed). The next text, of 2 tokens, would make 12: part 1 is
// dropped, and with it the text a b c.
//
// Bounds. All together at most `max_tokens`, marks included, and a namespace a quarter of that;
// when there are more, the namespace that was used least recently loses its oldest parts first. At
// most kMaxNamespaces. 136 bytes a token (stats().memory_bytes).
//
// Cost. add() copies the text. It is read by later look-ups, at most kReadAtOnce tokens in each, so
// that no step waits for a long text: see kReadAtOnce. A look-up takes one transition of an
// automaton for each part and each token of the request's text: to draft 15 nodes at 32,768 tokens
// takes 11.5 microseconds with a full namespace of a quarter of a million tokens, and 5.2 without
// (bench/suffix_bench.cc).
//
// Tested by suffix_memory_test.cc: bounds and counts after random operations, and that no namespace
// ever sees another's text.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "base/types.h"
#include "draft/base/text_memory.h"
#include "draft/suffix/suffix_index.h"

namespace outrider {

// One thread at a time. In the runtime the decode thread owns it, and the requests that look into
// it are drafted for one after the other: nothing is locked.
class SuffixMemory : public TextMemory {
 public:
  static constexpr std::size_t kMaxNamespaces = 1024;
  static constexpr std::size_t kParts = 8;
  static constexpr std::size_t kShortest = 3;  // tokens of a text: two to find it by, one to say
  // Tokens that one look-up reads of what was added. Measured on 2 cores of a server, processor
  // time: 0.3 ms in the median and 1.3 ms at most, where an automaton's arrays grow (with a million
  // tokens to remember); a text of 4,096 is added in 0.009 ms and read by two look-ups. All of it
  // at once takes a fresh automaton 0.22 ms, and a full one of the largest size up to 5 ms.
  static constexpr std::size_t kReadAtOnce = 2048;
  static constexpr Token kTextEnd = std::numeric_limits<Token>::max();  // the mark

  // REQUIRES: kLeastTokens <= max_tokens <= kMostTokens
  explicit SuffixMemory(std::size_t max_tokens);
  SuffixMemory(const SuffixMemory&) = delete;
  SuffixMemory& operator=(const SuffixMemory&) = delete;

  // 0 when there are fewer tokens than kShortest.
  std::size_t add(std::string_view name, std::span<const Token> text) override;
  // Remembers several texts, a mark behind each; without any the namespace counts as used, where it
  // is known. May throw std::bad_alloc; then a part of them may be there.
  void add_all(std::string_view name, std::span<const Token> texts);

  // Where the end of a request's text occurs in an automaton.
  struct Place {
    const SuffixIndex* index = nullptr;
    SuffixIndex::Context context;
  };
  // What is known of one request's text; made anew for the next one.
  struct Cursor {
    std::uint64_t space = 0;    // number of the namespace; 0: none
    std::uint64_t version = 0;  // of the namespace, when `places` were found
    std::size_t read = 0;       // tokens of the text
    std::vector<Place>
        places;  // one a part, the newest first; valid until the next call of anything
  };
  // Brings the cursor up to the end of `text`, which goes on from the one before. Unknown names
  // have no places.
  void look_up(std::string_view name, std::span<const Token> text, Cursor& cursor);

  void clear() override;

  // See suffix_memory_file.h: recall_memory(), of which all is known from then on; add_to_file().
  Status recall(const std::string& path, const TokenizerId& tokenizer) override;
  Status keep(const std::string& path, const TokenizerId& tokenizer) const override;

  // Each namespace with its texts, a mark behind each; the one used last comes last. Of the first
  // text only its end may be there.
  using VisitSpace = std::function<void(std::string_view name, std::span<const Token> texts)>;
  void for_each_space(const VisitSpace& visit) const;

  // What is there now is known elsewhere, too.
  void mark_known();
  // As for_each_space(): the namespaces that were used since mark_known(), each with the texts that
  // were added since, which may be none. Without mark_known(): all.
  void for_each_new(const VisitSpace& visit) const;

  Stats stats() const override;

  // Empty when counts and automatons are sound, else what is broken. Takes long.
  std::string check_integrity() const;

 private:
  // Tokens of a text that are looked at anew when its places are lost or far behind.
  static constexpr std::size_t kRetrace = 64;

  struct Part {
    std::vector<Token> tokens;  // at most part_tokens_
    SuffixIndex index;          // of the first of them
    std::size_t bytes = 0;      // as it is in bytes_
  };
  struct Space {
    std::uint64_t number = 0;
    std::uint64_t version = 0;
    std::uint64_t last_used = 0;
    std::size_t tokens = 0;
    std::size_t known = 0;                    // of the first of them: see mark_known()
    std::deque<std::unique_ptr<Part>> parts;  // the oldest first
  };
  using Spaces = std::map<std::string, Space, std::less<>>;

  Space& space_of(std::string_view name);
  std::vector<Spaces::const_iterator> by_use() const;  // the one used last comes last
  static std::vector<Token> all_of(const Space& space);
  void append(Space& space, std::span<const Token> tokens);
  void drop_oldest(Space& space);
  Spaces::iterator least_recently_used(const Space* except);
  void make_room(const Space& growing);
  void read_some(Space& space);
  void count_bytes(Part& part);

  const std::size_t max_tokens_;
  const std::size_t space_tokens_;  // of a namespace, at most
  const std::size_t part_tokens_;
  Spaces spaces_;
  std::size_t tokens_ = 0;
  std::size_t bytes_ = 0;       // of the parts
  std::uint64_t clock_ = 0;     // numbers, versions and uses, each number once
  std::uint64_t known_at_ = 0;  // by clock_
};

}  // namespace outrider
