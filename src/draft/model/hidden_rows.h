// HiddenRows: the target's hidden states of the last tokens of a text, for a trained head.
//
//      text:   t0 ... t(begin) ... t(end-1) t(end) ...
//      rows:          [begin,            end)
//
// Rows come in the order of the text. One that comes again (the target read a token anew) replaces
// the old one and voids all behind it; one that leaves a gap voids all before it, since a head
// reads tokens without gaps. Each row carries its token, so that a row of a rejected guess would be
// noticed. Of long texts the last `window` rows are kept.
//
// Some heads encode the target's rows before they read them (EAGLE-3). Each row is encoded once,
// many at a time: the last rows are as the target gave them until then.
//
// Tested by hidden_rows_test.cc.
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
  // Rows of `width` floats; at most `window` of them, at least 1. `raw_width`: floats of those that
  // come, which are to be encoded; 0: they are not.
  HiddenRows(std::size_t width, std::size_t window, std::size_t raw_width = 0)
      : width_(width), window_(window), raw_width_(raw_width) {}

  // `row` [raw_width, or width] is the hidden state of the text's token at `position`.
  void see(std::size_t position, Token token, std::span<const float> row);
  // The text's tokens from `length` on are others now.
  void cut(std::size_t length);

  // Positions whose rows are known: begin() <= position < end(). Equal: none.
  std::size_t begin() const { return begin_; }
  std::size_t end() const { return begin_ + rows_.size(); }

  // How many of the last rows are to be encoded, appending them to `rows`, and what became of them:
  // [n_raw(), width].
  std::size_t n_raw() const { return n_raw_; }
  void append_raw(std::vector<float>* rows) const;
  void take_encoded(std::span<const float> encoded);

  // What a head reads with the text's tokens from `first` on, `n` of them: appends the rows of the
  // tokens before each. Zeros before the text's first token.
  // REQUIRES: begin() < first, or first is 0 and begin() is; first + n <= end() + 1; n_raw() is 0.
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
  std::size_t raw_width_;
  std::size_t begin_ = 0;
  std::size_t n_raw_ = 0;  // of the last rows
  std::deque<Row> rows_;
};

}  // namespace outrider
