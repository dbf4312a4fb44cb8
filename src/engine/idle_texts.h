// IdleTexts: the target's sequences that no request has, and the text that each still holds.
//
// Idea. A prompt often begins like an earlier text: a chat goes on, an instruction is shared. What
// the target has read of it need not be read again, so an ended request leaves its state where it
// is until the sequence is needed. A new prompt gets the sequence that saves it the most reading,
// unless that would destroy a long text for a short gain.
//
// Rule. The usable beginning of a text is what it shares with the prompt, less the prompt's last
// token (whose logits are wanted). Taking a sequence gains these tokens and loses the others, which
// a later prompt might have used: the less likely the longer ago the text was. Of n texts, the one
// that was put i-th from the last (i from 0) is worth
//
//     usable - (length - usable) / (2 + i)
//
// and the sequence with the highest worth is taken; among equals an empty one, else the one put
// longest ago. An empty sequence is worth 0. A prompt that goes on a whole text, or has nothing in
// common with any, is decided as one would by hand.
//
//     prompt  the cat sat on      idle: 0 "the cat ran far away"   1 "a dog"      2 (empty)
//     worth                          2 - 3/4 (put first)           0 - 2/3        0
//     taken: sequence 0, keep 2
//
// Models that cannot forget a part (Rollback) can only go on from a text as it is: there the usable
// beginning is the whole text or nothing.
//
// Cost: one comparison of the prompt with each text. A value; not thread safe. Tested by
// idle_texts_test.cc.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/types.h"

namespace outrider {

class IdleTexts {
 public:
  struct Choice {
    SeqId seq = 0;
    std::size_t kept = 0;  // tokens of its text that the prompt can use
  };

  // `seq` holds `text` and nobody has it. REQUIRES: it is not idle yet.
  void put(SeqId seq, std::vector<Token> text);

  // The sequence for a prompt; nothing when none is idle. `whole_only`: texts cannot be shortened.
  std::optional<Choice> choose(std::span<const Token> prompt, bool whole_only) const;

  // Somebody has `seq` from now on. REQUIRES: it is idle.
  void remove(SeqId seq);

  // The sequence with a text that was put longest ago; nothing when all texts are empty.
  std::optional<SeqId> oldest() const;

  // The text of `seq` is gone; it stays idle. REQUIRES: it is idle.
  void clear(SeqId seq);

  // Copies share the text, so that a copy of all is a few pointers.
  class Entry {
   public:
    Entry(SeqId id, std::vector<Token> text)
        : seq(id), text_(std::make_shared<const std::vector<Token>>(std::move(text))) {}
    const std::vector<Token>& text() const { return *text_; }

    SeqId seq = 0;

   private:
    std::shared_ptr<const std::vector<Token>> text_;
  };
  // The one put longest ago first.
  const std::vector<Entry>& entries() const { return entries_; }

 private:
  std::vector<Entry>::iterator find(SeqId seq);

  std::vector<Entry> entries_;
};

}  // namespace outrider
