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
// and the sequence with the highest worth is taken; among equals one whose whole text the prompt
// goes on, so that none is held twice, then an empty one, else the one put longest ago. An empty
// sequence is worth 0. So a prompt that goes on from a whole text takes its sequence, and one that
// has nothing in common with any takes an empty one, if there is one.
//
//     prompt  the cat sat on      idle: 0 "the cat ran far away"   1 "a dog"      2 (empty)
//     worth                          2 - 3/4 (put first)           0 - 2/3        0
//     taken: sequence 0, keep 2
//
// Where the model's sequences can share a text (Capabilities::can_share), a prompt need not destroy
// the text that it begins like, and the text may be a running request's. Every sequence then gains
// the same, the longest beginning that any text has, and the one is taken whose own text costs
// least to lose, by the same formula:
//
//     prompt  the cat sat on      idle: 0 "the cat ran far away"   1 "a dog"      2 (empty)
//     worth                          2 - 3/4 (put first)           2 - 2/3        2
//     taken: sequence 2, which shares 2 tokens with sequence 0
//
// A running request that is still reading may soon hold more of the prompt than any text does now.
// Then the choice says whom to wait for: what two requests begin with is read once.
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
  // What a prompt can use of a text.
  enum class Use {
    kShared,  // any beginning; the text stays where it is, if it is to
    kOwn,     // any beginning, in the text's own sequence
    kWhole    // all of it, in its own sequence, or nothing
  };

  // A text that a request has. `text` lives as long as the call that it is given to.
  struct Running {
    SeqId seq = 0;
    std::span<const Token> text;
    std::size_t held = 0;  // tokens of it that the target has read
  };

  struct Choice {
    SeqId seq = 0;         // to be taken
    SeqId from = 0;        // whose text begins like the prompt; `seq`: its own
    std::size_t kept = 0;  // tokens of it that the prompt can use
    // A running one that will have read more of the prompt, and how many tokens; 0: there is none.
    SeqId awaited_seq = 0;
    std::size_t awaited = 0;
  };

  // `seq` holds `text` and nobody has it. REQUIRES: it is not idle yet.
  void put(SeqId seq, std::vector<Token> text);

  // The same for an empty one that is idle, as if it had been put before all others.
  void put_oldest(SeqId seq, std::vector<Token> text);

  // The sequence for a prompt; nothing when none is idle. `running` counts with Use::kShared only.
  // A running text is waited for if that saves at least `least_awaited` tokens.
  std::optional<Choice> choose(std::span<const Token> prompt, Use use,
                               std::span<const Running> running = {},
                               std::size_t least_awaited = 1) const;

  // The same for a prompt that has a sequence: `seq` says nothing. With Use::kShared only.
  Choice longest(std::span<const Token> prompt, std::span<const Running> running,
                 std::size_t least_awaited) const;

  // Somebody has `seq` from now on. REQUIRES: it is idle.
  void remove(SeqId seq);

  // The sequence with a text that was put longest ago; nothing when all texts are empty.
  std::optional<SeqId> oldest() const;

  // The text of `seq` is gone; it stays idle. Allocates nothing: it is called where memory has run
  // out, too. REQUIRES: it is idle.
  void clear(SeqId seq) noexcept;

  // Copies share the text, so that a copy of all is a few pointers.
  class Entry {
   public:
    Entry(SeqId id, std::vector<Token> text) : seq(id) {
      if (!text.empty()) text_ = std::make_shared<const std::vector<Token>>(std::move(text));
    }
    const std::vector<Token>& text() const {
      static const std::vector<Token> none;
      return text_ ? *text_ : none;
    }

    SeqId seq = 0;

   private:
    std::shared_ptr<const std::vector<Token>> text_;  // null: none
  };
  // The one put longest ago first.
  const std::vector<Entry>& entries() const { return entries_; }

 private:
  std::vector<Entry>::iterator find(SeqId seq);

  std::vector<Entry> entries_;
};

}  // namespace outrider
