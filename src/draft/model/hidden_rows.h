// HiddenRows: the target's hidden states of the last tokens of a text, for a trained head.
//
//      text:   t0 ... t(begin) ... t(end-1) t(end) ...
//      rows:          [begin,            end)
//
// Rows come in the order of the text. One that comes again (the target read a token anew) replaces
// the old one and voids all behind it; one that leaves a gap voids all before it, since a head
// reads tokens without gaps. Each row carries its token, so that a row of a rejected guess would be
// noticed. Of long texts the last `window` rows are kept. Tested by hidden_rows_test.cc.
#pragma once

#include <cstddef>
#include <deque>
#include <span>
#include <string>
#include <vector>

#include "base/types.h"

namespace outrider {

class HiddenRows {
 public:
  // Rows of `width` floats; at most `window` of them, at least 1.
  HiddenRows(std::size_t width, std::size_t window) : width_(width), window_(window) {}

  // `row` [width] is the hidden state of the text's token at `position`.
  void see(std::size_t position, Token token, std::span<const float> row);
  // The text's tokens from `length` on are others now.
  void cut(std::size_t length);

  // Positions whose rows are known: begin() <= position < end(). Equal: none.
  std::size_t begin() const { return begin_; }
  std::size_t end() const { return begin_ + rows_.size(); }

  // What a head reads with the text's tokens from `first` on, `n` of them: appends the rows of the
  // tokens before each. Zeros before the text's first token.
  // REQUIRES: begin() < first, or first is 0 and begin() is; first + n <= end() + 1.
  void append_before(std::size_t first, std::size_t n, std::vector<float>* out) const;

  // Empty when all rows are of tokens of `text`, which may be longer or shorter, else what differs.
  std::string check_integrity(std::span<const Token> text) const;

 private:
  struct Row {
    Token token;
    std::vector<float> state;
  };

  std::size_t width_;
  std::size_t window_;
  std::size_t begin_ = 0;
  std::deque<Row> rows_;
};

}  // namespace outrider
