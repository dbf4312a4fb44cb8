// Sorting the places of a suffix store, and checking that they are sorted.
#include <algorithm>

#include "draft/suffix/suffix_store.h"
#include "store/store_writer.h"

namespace outrider {
namespace {

// A place with its last two tokens before it, which settle most comparisons without a look at the
// text, whose places lie all over the memory.
struct SortKey {
  std::uint64_t last_two = 0;
  std::uint32_t place = 0;
};

// What ends at `a` before what ends at `b`, both read backwards for at most kMostMatch tokens; the
// same: the earlier place first. Texts' ends are the largest tokens.
class Before {
 public:
  explicit Before(std::span<const std::uint32_t> tokens) : tokens_(tokens) {}

  bool operator()(const SortKey& a, const SortKey& b) const {
    if (a.last_two != b.last_two) return a.last_two < b.last_two;
    const std::size_t most = std::min<std::size_t>(
        {SuffixStore::kMostMatch, std::size_t{a.place} + 1, std::size_t{b.place} + 1});
    for (std::size_t i = 2; i < most; ++i) {
      const std::uint32_t x = tokens_[a.place - i];
      const std::uint32_t y = tokens_[b.place - i];
      if (x != y) return x < y;
    }
    return a.place < b.place;
  }

  SortKey key(std::uint32_t place) const {
    return {.last_two = (std::uint64_t{tokens_[place]} << 32) | tokens_[place - 1], .place = place};
  }

 private:
  std::span<const std::uint32_t> tokens_;
};

}  // namespace

Status SuffixStoreBuilder::add(std::span<const Token> text) {
  if (text.empty()) return Status();
  for (const Token token : text) {
    if (token >= 0 && token < tokenizer_.n_vocab) continue;
    return invalid_argument("token " + std::to_string(token) + " is not in the vocabulary of " +
                            std::to_string(tokenizer_.n_vocab));
  }
  if (tokens_.size() + text.size() + 2 >= kSuffixTextEnd) {
    return resource_exhausted("a suffix store holds at most 4 billion tokens; make several");
  }
  if (tokens_.empty()) tokens_.push_back(kSuffixTextEnd);
  for (const Token token : text) tokens_.push_back(static_cast<std::uint32_t>(token));
  tokens_.push_back(kSuffixTextEnd);
  ++n_texts_;
  return Status();
}

Status SuffixStoreBuilder::write(const std::string& path, FileOps& ops) const {
  const Before before(tokens_);
  std::vector<std::uint32_t> starts(static_cast<std::size_t>(tokenizer_.n_vocab) + 1, 0);
  std::vector<SortKey> keys;
  keys.reserve(tokens_.size());
  for (std::uint32_t i = 0; i < tokens_.size(); ++i) {
    if (tokens_[i] == kSuffixTextEnd) continue;
    keys.push_back(before.key(i));
    ++starts[tokens_[i] + 1];
  }
  for (std::size_t i = 1; i < starts.size(); ++i) starts[i] += starts[i - 1];
  std::sort(keys.begin(), keys.end(), before);
  std::vector<std::uint32_t> order(keys.size());
  std::transform(keys.begin(), keys.end(), order.begin(),
                 [](const SortKey& key) { return key.place; });

  StoreContents contents;
  contents.kind = kSuffixStore;
  contents.tokenizer = tokenizer_;
  contents.params = {n_texts_, order.size(), SuffixStore::kMostMatch};
  contents.sections = {make_section("tokens", std::span<const std::uint32_t>(tokens_)),
                       make_section("starts", std::span<const std::uint32_t>(starts)),
                       make_section("order", std::span<const std::uint32_t>(order))};
  return save_store(path, contents, ops);
}

Status SuffixStoreBuilder::write(const std::string& path) const {
  FileOps ops;
  return write(path, ops);
}

Status SuffixStore::verify() const {
  OUTRIDER_RETURN_IF_ERROR(file_->verify());
  const Status damaged =
      data_loss("'" + file_->path() + "' is damaged: its order is not that of its texts");
  std::vector<bool> seen(tokens_.size(), false);
  const Before before(tokens_);
  for (std::size_t i = 0; i < order_.size(); ++i) {
    std::uint32_t place = 0;
    if (!load_order(i, place) || seen[place] || !in_vocabulary(tokens_[place])) return damaged;
    seen[place] = true;
    if (i < starts_[tokens_[place]] || i >= starts_[tokens_[place] + 1]) return damaged;
    if (i > 0 && !before(before.key(order_[i - 1]), before.key(place))) return damaged;
  }
  // How many tokens need no place the file itself says: they must be the texts' ends.
  for (std::size_t i = 0; i < tokens_.size(); ++i) {
    if (!seen[i] && tokens_[i] != kSuffixTextEnd) return damaged;
  }
  return tokens_.empty() || tokens_.back() == kSuffixTextEnd ? Status() : damaged;
}

}  // namespace outrider
