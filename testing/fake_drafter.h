// ScriptedDrafter: proposes what a function says, for tests of an engine.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "draft/base/drafter.h"

namespace outrider::testing {

// Extends request.tree as it likes; it may break every rule that a drafter can break (ids out of
// range, too many nodes, nothing at all).
using Script = std::function<Status(DraftRequest& request)>;

class ScriptedDrafter : public Drafter {
 public:
  explicit ScriptedDrafter(Script script) : script_(std::move(script)) {}

  std::string_view name() const override { return "scripted"; }
  Status begin(SeqId, std::size_t kept) override {
    last_kept = kept;
    return begin_status;
  }
  Status draft(std::span<DraftRequest> requests) override {
    for (DraftRequest& request : requests) OUTRIDER_RETURN_IF_ERROR(script_(request));
    return Status();
  }
  void accept(SeqId, std::span<const Token> text) override {
    last_accepted.assign(text.begin(), text.end());
  }
  void end(SeqId) override { ++ended; }
  void set_interrupt(const std::atomic<bool>*) override {}
  std::string limit_reason(SeqId) const override { return ""; }
  std::string note(SeqId) const override { return noted; }

  Status begin_status;
  std::string noted;                 // what results are to say of it
  std::vector<Token> last_accepted;  // the text of the last accept()
  std::size_t last_kept = 0;         // of the last begin()
  int ended = 0;

 private:
  Script script_;
};

// A scripted drafter with a name of its own.
class NamedDrafter : public ScriptedDrafter {
 public:
  NamedDrafter(std::string_view name, Script script)
      : ScriptedDrafter(std::move(script)), name_(name) {}
  std::string_view name() const override { return name_; }

 private:
  std::string_view name_;
};

// Adds `tokens` as one chain below the root.
inline void add_chain(DraftRequest& request, std::span<const Token> tokens) {
  NodeId at = kRoot;
  float chance = 1.0f;
  for (const Token token : tokens) {
    chance *= 0.9f;
    at = request.tree->add(at, token, chance, request.mask);
  }
}

// Knows the text in advance and proposes the right continuation, up to `count` tokens but not more
// than asked for, with every `wrong_every`-th token (0: none) replaced by a wrong one.
Script prophet(std::vector<Token> whole_text, std::int32_t count, std::int32_t wrong_every,
               std::int32_t n_vocab);

}  // namespace outrider::testing
