// ByteCutter: the tokens that a model's own tokenizer makes of bytes from the middle of a text.
//
// Problem. A tokenizer takes whole texts: it refuses bytes that are not UTF-8 (a target may end in
// the middle of a character), and some put a space in front of what they are given, which is right
// at the beginning of a text and wrong anywhere else.
//
// Idea. Valid parts go through the tokenizer; what is between them, and what the tokenizer does not
// give back byte for byte, is cut into the longest tokens that match. Where a space is put in
// front, a part from the middle of a text is cut by longest match up to its first space, and the
// tokenizer gets the rest without that space.
//
//      "caf\xc3" + "\xa9 au lait"      cut separately: caf <C3>    and <A9> | " au" " lait"
//      "caf\xc3\xa9 au lait"           cut together:   caf é " au" " lait"
//
// Tested by translated_text_test.cc.
#pragma once

#include <cstddef>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "base/types.h"
#include "draft/translated/piece_table.h"
#include "model/vocabulary.h"

namespace outrider {

// A token, and where its bytes end in what was cut. Bytes that no token has belong to the token
// before them.
struct CutToken {
  Token token = kNoToken;
  std::size_t end = 0;
};

class ByteCutter {
 public:
  // `vocabulary` must outlive this. `adds_space`: its tokenizer puts a space in front of a text.
  ByteCutter(const Vocabulary& vocabulary, bool adds_space)
      : vocabulary_(&vocabulary), pieces_(vocabulary), adds_space_(adds_space) {}

  const Vocabulary& vocabulary() const { return *vocabulary_; }
  const PieceTable& pieces() const { return pieces_; }

  // The tokens of `bytes`, ends rising. `at_start`: they begin a text (or follow a control token).
  // Errors: the tokenizer's, other than for what is not UTF-8. Any thread.
  Result<std::vector<CutToken>> cut(std::string_view bytes, bool at_start) const;

 private:
  Status cut_valid(std::string_view text, std::size_t offset, bool at_start,
                   std::vector<CutToken>& out) const;
  bool tokenise(std::string_view given, std::size_t offset, std::string_view added,
                std::vector<CutToken>& out, Status& status) const;
  void match(std::string_view bytes, std::size_t offset, std::vector<CutToken>& out) const;

  const Vocabulary* vocabulary_;
  PieceTable pieces_;
  bool adds_space_;
};

}  // namespace outrider
