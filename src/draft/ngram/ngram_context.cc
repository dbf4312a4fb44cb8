#include "draft/ngram/ngram_context.h"

#include <algorithm>

namespace outrider {

void NgramContext::extend(std::span<const Token> text) {
  const std::size_t known = text_.size();
  if (text.size() < known || (known > 0 && text[known - 1] != text_.back())) cut(0);
  try {
    count_from(text_.size(), text);
  } catch (...) {  // of the last token a part is counted, which no cut would take back
    forget();
    throw;
  }
}

void NgramContext::count_from(std::size_t begin, std::span<const Token> text) {
  for (std::size_t i = begin; i < text.size(); ++i) {
    std::array<Token, kMaxNgram> notes = {kNoToken, kNoToken, kNoToken, kNoToken};
    for (std::size_t n = 1; n <= std::min<std::size_t>(i, kMaxNgram); ++n) {
      notes[n - 1] = cache_.add(Ngram(text.subspan(i - n, n)), text[i]);
    }
    best_before_.push_back(notes);
    text_.push_back(text[i]);
  }
}

void NgramContext::forget() { *this = NgramContext(); }

void NgramContext::cut(std::size_t length) {
  if (length == 0) return forget();
  if (length >= text_.size()) return;
  const std::span<const Token> text(text_);
  for (std::size_t i = text_.size(); i-- > length;) {
    for (std::size_t n = std::min<std::size_t>(i, kMaxNgram); n >= 1; --n) {
      cache_.take_back(Ngram(text.subspan(i - n, n)), text[i], best_before_[i][n - 1]);
    }
  }
  text_.resize(length);
  best_before_.resize(length);
}

std::size_t NgramContext::memory_bytes() const {
  return cache_.memory_bytes() + text_.capacity() * sizeof(Token) +
         best_before_.capacity() * sizeof(best_before_[0]);
}

std::string NgramContext::check_integrity() const {
  const std::string broken = cache_.check_integrity();
  if (!broken.empty()) return broken;
  if (best_before_.size() != text_.size()) return "the notes are not as long as the text";
  NgramCache fresh;
  fresh.count(text_, 0, 1, kMaxNgram);
  if (fresh.size() != cache_.size()) return "the number of n-grams is not that of the text";
  for (std::size_t i = 0; i < fresh.size(); ++i) {
    NgramPart part;
    const NgramPart wanted = fresh.part(i);
    if (!cache_.find(fresh.ngram(i), part)) return "an n-gram of the text is missing";
    if (!std::ranges::equal(part.followers, wanted.followers)) return "a count is not the text's";
    if (!(part.best == wanted.best)) return "a best follower is not the text's newest";
  }
  return "";
}

}  // namespace outrider
