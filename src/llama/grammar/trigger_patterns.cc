#include "llama/grammar/trigger_patterns.h"

#include <algorithm>
#include <utility>

namespace outrider::llama {
namespace {

// As llama.cpp has it: the first group that holds something, else the whole.
std::size_t begin_of(const std::smatch& match) {
  for (std::size_t i = 1; i < match.size(); ++i) {
    if (match.length(i) > 0) return static_cast<std::size_t>(match.position(i));
  }
  return static_cast<std::size_t>(match.position(0));
}

}  // namespace

Result<std::shared_ptr<const TriggerPatterns>> TriggerPatterns::create(
    const std::vector<std::string>& patterns) {
  const std::shared_ptr<TriggerPatterns> made = std::make_shared<TriggerPatterns>();
  for (const std::string& pattern : patterns) {
    try {
      made->patterns_.push_back({.regex = std::regex(pattern), .anchored = pattern[0] == '^'});
    } catch (const std::regex_error& error) {
      return invalid_argument("the pattern '" + pattern + "' cannot be read: " + error.what());
    }
  }
  return std::shared_ptr<const TriggerPatterns>(made);
}

std::vector<std::size_t> TriggerPatterns::begins_in(const std::string& text, std::size_t fresh,
                                                    bool from_start) const {
  std::vector<std::size_t> begins;
  for (const Pattern& pattern : patterns_) {
    if (pattern.anchored && !from_start) continue;
    std::string::const_iterator at = text.begin();
    std::smatch match;
    std::regex_constants::match_flag_type flags = std::regex_constants::match_default;
    while (std::regex_search(at, text.end(), match, pattern.regex, flags)) {
      const std::size_t offset = static_cast<std::size_t>(at - text.begin());
      const std::size_t end =
          offset + static_cast<std::size_t>(match.position(0) + match.length(0));
      if (end > fresh) begins.push_back(offset + begin_of(match));
      if (pattern.anchored || match.length(0) == 0) break;
      at = match[0].second;
      flags = std::regex_constants::match_prev_avail;
    }
  }
  std::sort(begins.begin(), begins.end());
  begins.erase(std::unique(begins.begin(), begins.end()), begins.end());
  return begins;
}

ReasoningGate::ReasoningGate(ReasoningMarks marks)
    : marks_(std::move(marks)), inside_(marks_.open && !marks_.begin.empty()) {
  longest_ = std::max(longest_, marks_.begin.size());
  for (const std::string& end : marks_.end) longest_ = std::max(longest_, end.size());
}

bool ReasoningGate::say(std::string_view text) {
  if (marks_.begin.empty()) return false;
  tail_ += text;
  bool marked = false;
  while (true) {
    std::size_t behind = std::string::npos;  // the first mark's end
    const auto look_for = [&](const std::string& mark) {
      const std::size_t at = mark.empty() ? std::string::npos : tail_.find(mark);
      if (at != std::string::npos) behind = std::min(behind, at + mark.size());
    };
    if (inside_) {
      for (const std::string& end : marks_.end) look_for(end);
    } else {
      look_for(marks_.begin);
    }
    if (behind == std::string::npos) break;
    tail_.erase(0, behind);
    inside_ = !inside_;
    marked = true;
  }
  if (tail_.size() >= longest_) tail_.erase(0, tail_.size() - longest_ + 1);
  return marked;
}

}  // namespace outrider::llama
