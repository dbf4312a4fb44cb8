// SuffixIndex: where the end of a growing text occurred in it before, and how the text went on.
//
// Idea. A suffix automaton is the smallest machine that reads every part of a text. Each state
// stands for a set of parts that end at the same places; its link leads to the longest suffix of
// them that ends at more places. So the link of the state of the whole text is the longest suffix
// that occurred before, without any search, and further links give the shorter ones. A state's
// edges are the tokens that followed. Each state also counts its places and keeps the last one,
// and its edges lie in order of their last use.
//
//     text  a b c a b d a b      longest match: "a b", seen twice before (and now)
//                                edges: d (last, 1 time), c (1 time); next shorter match: none
//
// Cost. One token: constant amortised for the automaton (at most 2n states and 3n edges for n
// tokens); counts and order of use are brought up to date along at most kMaxLevels links.
// Deeper contexts than that, which only texts like "a a a a a" have, keep counts
// that are too small for their shortest suffixes: they are the least useful ones. Memory: 70 to 120
// bytes a token, as full as the arrays are (memory_bytes()).
//
// Source: Blumer et al., "The smallest automaton recognizing the subwords of a text", 1985; for
// drafting: Hu et al., SAM-Decoding, arXiv 2411.10666. Tested by suffix_index_test.cc against a
// naive search, exhaustively over small alphabets.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/types.h"

namespace outrider {

// One thread at a time.
class SuffixIndex {
 public:
  using State = std::uint32_t;
  static constexpr State kEmpty = 0;  // of the empty text
  static constexpr int kMaxLevels = 64;

  // A place in the automaton: the last `length` tokens of something, which occur in the text.
  struct Context {
    State state = kEmpty;
    std::uint32_t length = 0;  // 0 if and only if the state is kEmpty
  };

  SuffixIndex();

  // Appends a token, >= 0. REQUIRES: size() < 2^30.
  void append(Token token);
  void clear();  // gives the memory back

  std::size_t size() const { return text_.size(); }
  std::span<const Token> text() const { return text_; }
  std::size_t memory_bytes() const;

  // The longest suffix of the text that occurs in it earlier too (overlaps count).
  Context longest_match() const;
  // The longest proper suffix of `context` that occurs at more places; length 0: only the empty
  // one.
  Context shorter(Context context) const;
  // The longest suffix of `context` that `token` followed somewhere, with the token; length 0: it
  // never occurred.
  Context advance(Context context, Token token) const;

  // How often the parts of `state` occur. Exact while no more than kMaxLevels links lead to them.
  std::uint32_t count(State state) const { return states_[state].count; }
  // How many different tokens followed.
  std::uint32_t n_continuations(State state) const { return states_[state].n_edges; }

  // A token that followed a state's parts, and how often.
  struct Continuation {
    Token token = kNoToken;
    std::uint32_t count = 0;
  };
  // The continuations, the one used last first, at most `most`, appended to `out`.
  void continuations(State state, std::size_t most, std::vector<Continuation>& out) const;

  // Empty when all invariants hold, else what is broken. Linear in the text, and quadratic where
  // contexts are deep.
  std::string check_integrity() const;

 private:
  static constexpr std::uint32_t kNone = 0xFFFFFFFFu;
  static constexpr std::uint32_t kHashedFrom = 8;  // states with more edges find them by hash

  struct StateData {
    std::uint32_t length = 0;  // of the longest part
    State link = kEmpty;       // of kEmpty: itself
    std::uint32_t count = 0;   // places where the parts end
    std::uint32_t n_edges = 0;
    std::uint32_t first_edge = kNone;  // the one used last
  };
  struct Edge {
    Token token = kNoToken;
    State from = kEmpty;
    State to = kEmpty;
    std::uint32_t next = kNone;  // used before this one
    std::uint32_t previous = kNone;
  };

  std::uint32_t find_edge(State from, Token token) const;
  void add_edge(State from, Token token, State to);
  void use_edge(std::uint32_t edge);
  void hash_edge(std::uint32_t edge);
  void grow_table();
  std::size_t bucket_of(State from, Token token) const;
  State split(State from, std::uint32_t edge, Token token);

  std::vector<Token> text_;
  std::vector<StateData> states_;
  std::vector<Edge> edges_;
  std::vector<std::uint32_t> table_;  // open addressing, power of two; edge + 1, 0: free
  std::size_t n_hashed_ = 0;
  State last_ = kEmpty;  // of the whole text
};

}  // namespace outrider
