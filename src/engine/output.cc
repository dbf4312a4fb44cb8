#include "engine/output.h"

#include <algorithm>
#include <cassert>

#include "base/utf8.h"

namespace outrider {

std::string_view finish_reason_name(FinishReason reason) {
  switch (reason) {
    case FinishReason::kStop:
      return "stop";
    case FinishReason::kLength:
      return "length";
    case FinishReason::kCancelled:
      return "cancelled";
    case FinishReason::kError:
      return "error";
  }
  return "error";
}

Output::Output(OutputLimits limits) : limits_(std::move(limits)) {
  if (limits_.context_tokens <= 0) finish_ = FinishReason::kLength;
}

bool Output::accept(Token id, std::string_view piece, bool is_end_of_generation, std::int32_t by) {
  assert(!finished());
  tokens_.push_back(id);
  const std::size_t old_size = tail_.size();
  in_hand_.push_back({id, std::string(piece), by});
  tail_ += in_hand_.back().text;

  const std::int64_t n = static_cast<std::int64_t>(tokens_.size());
  if (is_end_of_generation || match_stop(old_size)) {
    finish_ = FinishReason::kStop;
  } else if (n == limits_.max_tokens || n >= limits_.context_tokens) {
    finish_ = FinishReason::kLength;
  }
  return !finished();
}

void Output::finish(FinishReason reason) {
  if (!finished()) finish_ = reason;
}

// Looks for a stop string that ends in the bytes from old_size on, and cuts the text before it.
bool Output::match_stop(std::size_t old_size) {
  for (std::size_t end = old_size + 1; end <= tail_.size(); ++end) {
    const std::string* longest = nullptr;
    for (const std::string& stop : limits_.stop) {
      if (stop.size() > end || (longest != nullptr && stop.size() <= longest->size())) continue;
      if (tail_.compare(end - stop.size(), stop.size(), stop) == 0) longest = &stop;
    }
    if (longest == nullptr) continue;
    matched_stop_ = *longest;
    std::size_t left = end - longest->size();
    tail_.resize(left);
    for (Piece& piece : in_hand_) {
      piece.cut = !piece.text.empty() && left == 0;
      piece.text.resize(std::min(piece.text.size(), left));
      left -= piece.text.size();
    }
    return true;
  }
  return false;
}

// How many bytes of the tail cannot become part of a stop string or an unfinished character.
std::size_t Output::releasable_bytes() const {
  std::size_t free = complete_utf8_prefix(tail_);
  for (const std::string& stop : limits_.stop) {
    const std::size_t longest = std::min(stop.size() - 1, tail_.size());
    for (std::size_t n = longest; n > 0; --n) {
      if (tail_.compare(tail_.size() - n, n, stop, 0, n) != 0) continue;
      free = std::min(free, tail_.size() - n);
      break;
    }
  }
  return free;
}

std::vector<Piece> Output::take() {
  const std::size_t free = finished() ? tail_.size() : releasable_bytes();
  // Whole tokens only, up to the last one within `free` that ends at a character's end.
  std::size_t n_tokens = 0;
  std::size_t given = 0;
  std::size_t end = 0;
  for (std::size_t i = 0; i < in_hand_.size(); ++i) {
    end += in_hand_[i].text.size();
    if (end > free) break;
    const bool whole = finished() || complete_utf8_prefix({tail_.data(), end}) == end;
    if (!whole) continue;
    n_tokens = i + 1;
    given = end;
  }
  std::vector<Piece> pieces;
  for (; n_tokens > 0; --n_tokens) {
    pieces.push_back(std::move(in_hand_.front()));
    in_hand_.pop_front();
  }
  text_.append(tail_, 0, given);
  tail_.erase(0, given);
  return pieces;
}

}  // namespace outrider
