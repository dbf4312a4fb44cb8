// GbnfCursor: the text of a grammar and the place in it that is being read, with what is the same
// in every rule: space and comments, names, numbers, characters and their escapes. For gbnf.cc
// only, and tested through it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/status.h"

namespace outrider::llama {

class GbnfCursor {
 public:
  explicit GbnfCursor(std::string_view text) : text_(text) {}

  bool at_end() const { return at_ >= text_.size(); }
  char peek(std::size_t ahead = 0) const {  // NUL behind the end
    return at_ + ahead < text_.size() ? text_[at_ + ahead] : '\0';
  }
  void skip(std::size_t n = 1) { at_ += n; }

  std::size_t at() const { return at_; }
  void go_back(std::size_t at) { at_ = at; }  // for an error's place
  std::string_view since(std::size_t begin) const { return text_.substr(begin, at_ - begin); }

  static bool is_digit(char c);
  static bool is_word(char c);  // it may be a part of a rule's name

  // kInvalidArgument, "line 3, column 7: <what>".
  Status wrong(const std::string& what) const;

  void skip_space(bool newlines);  // and comments
  std::string read_name();         // empty: here is none
  // One character of a literal or class, escapes included. `character`: what it stands for.
  Status read_char(std::uint32_t& character);
  Status read_number(std::uint64_t most, std::uint64_t& value);

 private:
  std::string_view text_;
  std::size_t at_ = 0;
};

}  // namespace outrider::llama
