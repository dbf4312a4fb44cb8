// What a lazy grammar waits for besides texts: regular expressions, and the end of reasoning. Both
// come from llama-common's knowledge of a chat template's format.
//
// Patterns. llama.cpp searches all text so far after each token. Here the last kWindow bytes are
// searched, and only what ends in the newest token counts, so a search costs the same everywhere.
// "^" is the text's beginning, as long as it is in the window.
//
// Tested by trigger_patterns_test.cc.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <regex>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "model/chat.h"

namespace outrider::llama {

// Immutable; any thread.
class TriggerPatterns {
 public:
  static constexpr std::size_t kWindow = 512;  // bytes; std::regex recurses over what it searches

  // Errors: kInvalidArgument for what is no ECMAScript expression.
  static Result<std::shared_ptr<const TriggerPatterns>> create(
      const std::vector<std::string>& patterns);

  // Where the grammar begins in `text`, for each finding that reaches into the bytes from `fresh`
  // on, the first first. `from_start`: `text` is all that was said, not only its end.
  std::vector<std::size_t> begins_in(const std::string& text, std::size_t fresh,
                                     bool from_start) const;

 private:
  struct Pattern {
    std::regex regex;
    bool anchored = false;  // begins with ^
  };
  std::vector<Pattern> patterns_;
};

// Whether a text is in its reasoning, by the marks around it.
class ReasoningGate {
 public:
  explicit ReasoningGate(ReasoningMarks marks);

  // `text` has been said. Returns whether a mark was in it.
  bool say(std::string_view text);
  bool inside() const { return inside_; }

 private:
  ReasoningMarks marks_;
  bool inside_ = false;
  std::size_t longest_ = 1;  // of the marks
  std::string tail_;         // what may be the beginning of a mark
};

}  // namespace outrider::llama
