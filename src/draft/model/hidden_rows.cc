#include "draft/model/hidden_rows.h"

#include <algorithm>
#include <cassert>

namespace outrider {

void HiddenRows::see(std::size_t position, Token token, std::span<const float> row) {
  assert(row.size() == (raw_width_ > 0 ? raw_width_ : width_));
  cut(position);
  if (end() != position || rows_.empty()) {
    rows_.clear();
    begin_ = position;
    n_raw_ = 0;
  }
  rows_.push_back({.token = token, .state = {row.begin(), row.end()}});
  if (raw_width_ > 0) ++n_raw_;
  if (rows_.size() <= window_) return;
  rows_.pop_front();
  ++begin_;
  n_raw_ = std::min(n_raw_, rows_.size());
}

void HiddenRows::cut(std::size_t length) {
  const std::size_t before = rows_.size();
  if (length < end()) rows_.resize(length > begin_ ? length - begin_ : 0, Row());
  n_raw_ -= std::min(n_raw_, before - rows_.size());
  if (rows_.empty()) begin_ = std::min(begin_, length);
}

void HiddenRows::append_raw(std::vector<float>* rows) const {
  for (std::size_t i = rows_.size() - n_raw_; i < rows_.size(); ++i) {
    rows->insert(rows->end(), rows_[i].state.begin(), rows_[i].state.end());
  }
}

void HiddenRows::take_encoded(std::span<const float> encoded) {
  assert(encoded.size() == n_raw_ * width_);
  for (std::size_t i = rows_.size() - n_raw_; i < rows_.size(); ++i) {
    rows_[i].state.assign(encoded.begin(), encoded.begin() + static_cast<std::ptrdiff_t>(width_));
    encoded = encoded.subspan(width_);
  }
  n_raw_ = 0;
}

void HiddenRows::append_before(std::size_t first, std::size_t n, std::vector<float>* out) const {
  assert(n_raw_ == 0 && first + n <= end() + 1 && (first == 0 ? begin_ == 0 : begin_ < first));
  for (std::size_t position = first; position < first + n; ++position) {
    if (position == 0) {
      out->insert(out->end(), width_, 0.0f);
      continue;
    }
    const std::vector<float>& state = rows_[position - 1 - begin_].state;
    out->insert(out->end(), state.begin(), state.end());
  }
}

std::string HiddenRows::check_integrity(std::span<const Token> text) const {
  if (rows_.size() > window_) return "there are more rows than the window holds";
  for (std::size_t i = 0; i < rows_.size() && begin_ + i < text.size(); ++i) {
    const bool raw = i + n_raw_ >= rows_.size();
    if (rows_[i].state.size() != (raw ? raw_width_ : width_)) return "a row has another width";
    if (rows_[i].token == text[begin_ + i]) continue;
    return "the row at " + std::to_string(begin_ + i) + " is of token " +
           std::to_string(rows_[i].token) + ", and the text has " +
           std::to_string(text[begin_ + i]);
  }
  return "";
}

}  // namespace outrider
