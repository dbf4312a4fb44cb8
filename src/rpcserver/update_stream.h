// UpdateStream: the tokens of a text, cut into the updates that a poll hands out.
//
// A step gives the drafted tokens that were accepted and one of the target's own, so an update ends
// with a token that is by the target: with speculation several tokens, without one, as the seed had
// it. Where the cuts are does not depend on when the app polls, except that a poll does not wait
// for the rest of an update. No cut is inside a character. Tokens without text (control tokens, and
// what a stop string cut off) wait for text behind them: at the end it is known what they were.
//
// Example, tokens "Once"/draft " upon"/draft " a"/target " ti"/draft "me"/target: updates
// "Once upon a", " time".
//
// Tested by update_stream_test.cc.
#pragma once

#include <string>
#include <vector>

#include "serve/runtime.h"

namespace outrider::rpcserver {

// One update: its text and the tokens behind it.
struct TextUpdate {
  std::string content;
  std::vector<SaidToken> tokens;
};

class UpdateStream {
 public:
  // `per_token`: an update is one token, or the few that make up a character.
  explicit UpdateStream(bool per_token) : per_token_(per_token) {}

  // What can be handed out after `tokens` were said.
  std::vector<TextUpdate> add(std::vector<SaidToken> tokens);

  // The rest, at the end of the text. Tokens without text at its end are dropped: they are the stop
  // string's or the end token.
  std::vector<TextUpdate> finish();

 private:
  std::vector<TextUpdate> cut(bool at_end);

  bool per_token_;
  std::vector<SaidToken> waiting_;
};

}  // namespace outrider::rpcserver
