#include "draft/translated/translated_text.h"

#include <algorithm>
#include <string_view>

namespace outrider {
namespace {

Token stand_in(const VocabularySide& side) {
  for (const Token token : {side.front, side.end_of_text, side.end_of_turn}) {
    if (token != kNoToken) return token;
  }
  return 0;
}

}  // namespace

TranslatedText::TranslatedText(const VocabularyMap& map, std::size_t window)
    : map_(&map), window_(window), stand_in_{stand_in(map.draft())} {
  clear();
}

void TranslatedText::clear() {
  text_.clear();
  ends_.clear();
  bytes_.clear();
  tokens_.clear();
  marks_.clear();
  controls_.clear();
  if (map_->draft().front != kNoToken) push_control(map_->draft().front, 0);
}

void TranslatedText::push_control(Token token, std::size_t n_target) {
  controls_.push_back(tokens_.size());
  tokens_.push_back(token);
  marks_.push_back({.end = bytes_.size(), .n_target = n_target});
}

Status TranslatedText::set(std::size_t keep, std::span<const Token> more) {
  while (keep < text_.size() && !more.empty() && text_[keep] == more.front()) {
    ++keep;
    more = more.subspan(1);
  }
  if (keep == text_.size() && more.empty()) return Status();
  cut_back(keep);
  Status status = append(more);
  if (status.ok()) status = recut();
  if (!status.ok()) clear();
  return status;
}

// Forgets what stands behind the first `n_target` tokens of the target. The draft's last tokens may
// be other ones than a fresh cut gives, until the next recut().
void TranslatedText::cut_back(std::size_t n_target) {
  text_.resize(n_target);
  ends_.resize(n_target);
  bytes_.resize(ends_.empty() ? 0 : ends_.back());
  std::size_t n = tokens_.size();
  while (!controls_.empty() && marks_[controls_.back()].n_target > n_target) {
    n = controls_.back();
    controls_.pop_back();
  }
  const std::size_t first = controls_.empty() ? 0 : controls_.back() + 1;
  while (n > first && marks_[n - 1].end > bytes_.size()) --n;
  tokens_.resize(n);
  marks_.resize(n);
}

Status TranslatedText::append(std::span<const Token> more) {
  const VocabularySide& target = map_->target();
  for (const Token token : more) {
    const bool front = text_.empty() && token == target.front;
    text_.push_back(token);
    const std::string_view piece = target.vocabulary->piece(token);
    const Token same = map_->to_draft(token);
    if (!piece.empty()) {
      bytes_ += piece;
    } else if (!front && same != kNoToken) {
      OUTRIDER_RETURN_IF_ERROR(recut());
      push_control(same, text_.size());
    } else if (!front && target.name) {
      bytes_ += target.name(token);
    }
    ends_.push_back(bytes_.size());
  }
  return Status();
}

// Cuts what follows the last control token again, as far back as new bytes may matter.
Status TranslatedText::recut() {
  const std::size_t first = controls_.empty() ? 0 : controls_.back() + 1;
  for (std::size_t window = window_;; window *= 4) {
    const bool whole = tokens_.size() - first <= window;
    const std::size_t from = whole ? first : tokens_.size() - window;
    const std::size_t begin = from == 0 ? 0 : marks_[from - 1].end;
    const Result<std::vector<CutToken>> cut =
        map_->cutter().cut(std::string_view(bytes_).substr(begin), /*at_start=*/whole);
    if (!cut.ok()) return cut.status();
    if (whole) {
      replace(from, begin, *cut);
      return Status();
    }
    if (splice(from, begin, *cut)) return Status();
  }
}

// Takes over `cut`, of the bytes from `begin` on, behind the last place in the first half of the
// tokens from index `from` on that follows some tokens in which both agree. False: there is none.
bool TranslatedText::splice(std::size_t from, std::size_t begin, std::span<const CutToken> cut) {
  const std::size_t half = from + (tokens_.size() - from) / 2;
  const std::size_t needed = std::max<std::size_t>(1, window_ / 8);
  std::size_t found_old = 0;
  std::size_t found_new = 0;
  std::size_t agreed = 0;
  for (std::size_t i = from, k = 0; i < half && k < cut.size();) {
    const std::size_t end = begin + cut[k].end;
    const bool same = marks_[i].end == end && tokens_[i] == cut[k].token;
    agreed = same ? agreed + 1 : 0;
    const bool next_old = marks_[i].end <= end;
    const bool next_new = marks_[i].end >= end;
    i += next_old;
    k += next_new;
    if (agreed < needed) continue;
    found_old = i;
    found_new = k;
  }
  if (found_old == 0) return false;
  replace(found_old, begin, cut.subspan(found_new));
  return true;
}

void TranslatedText::replace(std::size_t from, std::size_t begin, std::span<const CutToken> cut) {
  tokens_.resize(from);
  marks_.resize(from);
  for (const CutToken& token : cut) {
    tokens_.push_back(token.token);
    marks_.push_back({.end = begin + token.end, .n_target = 0});
  }
}

std::string TranslatedText::check_integrity() const {
  const Vocabulary& draft = *map_->draft().vocabulary;
  if (ends_.size() != text_.size() || marks_.size() != tokens_.size()) return "lengths differ";
  if (bytes_.size() != (ends_.empty() ? 0 : ends_.back())) return "bytes without a token";
  std::size_t begin = 0;
  std::size_t control = 0;
  for (std::size_t i = 0; i < tokens_.size(); ++i) {
    const std::string where = "draft token " + std::to_string(i) + ": ";
    const Mark& mark = marks_[i];
    if (mark.end < begin || mark.end > bytes_.size()) return where + "its bytes end elsewhere";
    const bool is_control = control < controls_.size() && controls_[control] == i;
    if (is_control) {
      ++control;
      if (mark.end != begin || mark.n_target > text_.size())
        return where + "a control token's mark";
      continue;
    }
    std::string_view piece = draft.piece(tokens_[i]);
    const std::string_view bytes = std::string_view(bytes_).substr(begin, mark.end - begin);
    const bool first = i == 0 || (control > 0 && controls_[control - 1] + 1 == i);
    if (first && piece.size() == bytes.size() + 1 && piece[0] == ' ') piece.remove_prefix(1);
    // Bytes without a token stand behind one, and at a beginning in front of it.
    if (bytes.find(piece) == std::string_view::npos) return where + "its bytes are not the text's";
    begin = mark.end;
  }
  return control == controls_.size() ? "" : "a control token is missing";
}

}  // namespace outrider
