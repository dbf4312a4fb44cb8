// Output: the text of one completion as it grows, and the rules that end it.
//
// Tokens are accepted one at a time, however many a step gives, so each rule is exact at every
// token of a step. After each token, in this order:
//   1. an end-of-generation token ends the text (it adds no bytes);
//   2. a stop string ends the text before its first byte: the one that is complete first, reading
//      byte by byte, and of those the longest. So the result does not depend on how the text is cut
//      into tokens;
//   3. the token limit, then the context's edge, end it with kLength.
// A token stays in hand while its bytes may be the start of a stop string or an unfinished
// multibyte character, and so do the tokens behind it. What is in hand at the end is given out
// once, except what a stop string cut off.
//
// Example, stop "END": tokens "a", " E", "N", "x" release "a"; nothing; nothing; " ENx".
//
// Tested by output_test.cc at every offset and every cut of a text into tokens.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/types.h"
#include "engine/request.h"

namespace outrider {

struct OutputLimits {
  std::vector<std::string> stop;    // none empty
  std::int64_t max_tokens = -1;     // -1: none; 0: no token may come, and finish() ends it
  std::int64_t context_tokens = 0;  // tokens that fit behind the prompt
};

class Output {
 public:
  explicit Output(OutputLimits limits);

  // The text's next token. `piece` is empty for control tokens. Returns false when the text ends
  // here. REQUIRES: !finished().
  bool accept(Token id, std::string_view piece, bool is_end_of_generation, std::int32_t by);

  // Ends it from outside (a cancel, a failure). No effect when it is finished.
  void finish(FinishReason reason);

  // What can be shown since the last call.
  std::vector<Piece> take();

  bool finished() const { return finish_.has_value(); }
  FinishReason finish_reason() const { return *finish_; }  // REQUIRES: finished()
  const std::string& stop() const { return matched_stop_; }
  const std::vector<Token>& tokens() const { return tokens_; }
  // All text given out by take() so far; the whole text once finished and taken.
  const std::string& text() const { return text_; }

 private:
  bool match_stop(std::size_t old_size);
  std::size_t releasable_bytes() const;

  OutputLimits limits_;
  std::vector<Token> tokens_;
  std::deque<Piece> in_hand_;  // accepted, not yet taken
  std::string tail_;           // their bytes, joined
  std::string text_;
  std::string matched_stop_;
  std::optional<FinishReason> finish_;
};

}  // namespace outrider
