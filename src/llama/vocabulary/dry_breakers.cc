#include "llama/vocabulary/dry_breakers.h"

#include <algorithm>
#include <map>
#include <string_view>
#include <utility>

#include "llama.h"

namespace outrider::llama {
namespace {

constexpr std::size_t kMostBytes = 40;       // of a breaker; llama.cpp's, as the next
constexpr std::size_t kMostTailTokens = 20;  // of a tail

// As llama.cpp writes a text that is this token alone: a space in front may be gone, unlike in
// LlamaVocabulary::piece(), and control tokens have their names.
void read_text(const llama_vocab* vocab, Token token, std::string& text) {
  text.resize(std::max<std::size_t>(text.capacity(), 64));
  std::int32_t length = 0;
  // A negative length is the room that it takes.
  while ((length = llama_detokenize(vocab, &token, 1, text.data(),
                                    static_cast<std::int32_t>(text.size()),
                                    /*remove_special=*/false, /*unparse_special=*/true)) < 0) {
    text.resize(static_cast<std::size_t>(-length));
  }
  text.resize(static_cast<std::size_t>(length));
}

// Not LlamaVocabulary::tokenize(): a tail may begin in the middle of a character.
std::vector<Token> tokens_of(const llama_vocab* vocab, std::string_view text) {
  std::vector<Token> tokens(text.size() + 16);
  std::int32_t n = 0;
  while ((n = llama_tokenize(vocab, text.data(), static_cast<std::int32_t>(text.size()),
                             tokens.data(), static_cast<std::int32_t>(tokens.size()),
                             /*add_special=*/false, /*parse_special=*/false)) < 0) {
    tokens.resize(static_cast<std::size_t>(-n));
  }
  tokens.resize(std::min(static_cast<std::size_t>(n), kMostTailTokens));
  return tokens;
}

// The tails of one list of breakers, each sequence of tokens once.
class TailTable {
 public:
  TailTable(const llama_vocab* vocab, std::span<const std::string> texts) : vocab_(vocab) {
    for (const std::string& text : texts) {
      if (text.empty()) continue;
      texts_.push_back(std::string_view(text).substr(0, kMostBytes));
    }
    known_.resize(texts_.size());
    for (std::size_t i = 0; i < texts_.size(); ++i) known_[i].assign(texts_[i].size(), kUnknown);
    number({});
  }

  // Adds those of a token that reads `word`.
  void add_tails(std::string_view word, std::vector<std::uint32_t>& tails) {
    for (std::size_t i = 0; i < texts_.size(); ++i) {
      const std::string_view text = texts_[i];
      if (word.find(text) != std::string_view::npos) {
        tails.push_back(0);
        continue;
      }
      const std::size_t most = std::min(word.size(), text.size() - 1);
      for (std::size_t at = word.find(text[0], word.size() - most); at != std::string_view::npos;
           at = word.find(text[0], at + 1)) {
        const std::size_t n = word.size() - at;
        if (word.substr(at) == text.substr(0, n)) tails.push_back(behind(i, n));
      }
    }
  }

  std::vector<std::vector<Token>> take() { return std::move(tails_); }

 private:
  static constexpr std::uint32_t kUnknown = ~std::uint32_t{0};

  // What follows the first `n` bytes of the breaker `i`; n is less than its length.
  std::uint32_t behind(std::size_t i, std::size_t n) {
    std::uint32_t& known = known_[i][n];
    if (known == kUnknown) known = number(tokens_of(vocab_, texts_[i].substr(n)));
    return known;
  }

  std::uint32_t number(const std::vector<Token>& tail) {
    const std::uint32_t next = static_cast<std::uint32_t>(tails_.size());
    const auto [at, is_new] = numbers_.emplace(tail, next);
    if (is_new) tails_.push_back(tail);
    return at->second;
  }

  const llama_vocab* vocab_;
  std::vector<std::string_view> texts_;
  std::vector<std::vector<std::uint32_t>> known_;  // for each breaker, by the bytes in front
  std::map<std::vector<Token>, std::uint32_t> numbers_;
  std::vector<std::vector<Token>> tails_;
};

}  // namespace

DryBreakers::DryBreakers(const llama_vocab* vocab, std::span<const std::string> texts) {
  const std::int32_t n_vocab = llama_vocab_n_tokens(vocab);
  TailTable table(vocab, texts);
  offsets_.reserve(static_cast<std::size_t>(n_vocab) + 1);
  offsets_.push_back(0);
  std::string word;
  std::vector<std::uint32_t> tails;
  for (Token token = 0; token < n_vocab; ++token) {
    read_text(vocab, token, word);
    tails.clear();
    table.add_tails(word, tails);
    std::sort(tails.begin(), tails.end());
    heads_.insert(heads_.end(), tails.begin(), std::unique(tails.begin(), tails.end()));
    offsets_.push_back(static_cast<std::uint32_t>(heads_.size()));
  }
  heads_.shrink_to_fit();
  tails_ = table.take();
}

std::span<const std::uint32_t> DryBreakers::of(Token token) const {
  const std::size_t i = static_cast<std::size_t>(token);
  if (token < 0 || i + 1 >= offsets_.size()) return {};  // of a draft model with more tokens
  return std::span<const std::uint32_t>(heads_).subspan(offsets_[i], offsets_[i + 1] - offsets_[i]);
}

bool DryBreakers::ends_alone(Token token) const {
  const std::span<const std::uint32_t> tails = of(token);
  return !tails.empty() && tails.front() == 0;
}

std::size_t DryBreakers::n_behind_last(std::span<const Token> text) const {
  for (std::size_t n_behind = 0; n_behind < text.size(); ++n_behind) {
    const std::span<const Token> behind = text.last(n_behind);
    bool found = false;
    std::size_t longest = 0;
    for (const std::uint32_t index : of(text[text.size() - 1 - n_behind])) {
      const std::vector<Token>& tail = tails_[index];
      if (tail.size() > n_behind || !std::equal(tail.begin(), tail.end(), behind.begin())) continue;
      found = true;
      longest = std::max(longest, tail.size());
    }
    if (found) return n_behind - longest;
  }
  return text.size();
}

std::shared_ptr<const DryBreakers> DryBreakersCache::get(const llama_vocab* vocab,
                                                         const std::vector<std::string>& texts) {
  const std::shared_ptr<Entry> entry = entry_of(texts);
  const std::lock_guard<std::mutex> lock(entry->mutex);
  if (!entry->breakers) entry->breakers = std::make_shared<const DryBreakers>(vocab, texts);
  return entry->breakers;
}

std::shared_ptr<DryBreakersCache::Entry> DryBreakersCache::entry_of(
    const std::vector<std::string>& texts) {
  const std::lock_guard<std::mutex> lock(mutex_);
  const auto same = [&texts](const std::shared_ptr<Entry>& entry) { return entry->texts == texts; };
  const auto at = std::find_if(entries_.begin(), entries_.end(), same);
  if (at != entries_.end()) {
    std::rotate(at, at + 1, entries_.end());
    return entries_.back();
  }
  const std::shared_ptr<Entry> entry = std::make_shared<Entry>();
  entry->texts = texts;
  entries_.push_back(entry);
  if (entries_.size() > kMost) entries_.erase(entries_.begin());
  return entry;
}

}  // namespace outrider::llama
