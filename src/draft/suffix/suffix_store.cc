#include "draft/suffix/suffix_store.h"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>

namespace outrider {

Result<std::unique_ptr<SuffixStore>> SuffixStore::open(const std::string& path) {
  Result<std::unique_ptr<StoreFile>> file = StoreFile::open(path, kSuffixStore);
  if (!file.ok()) return file.status();
  std::unique_ptr<SuffixStore> store(new SuffixStore(*std::move(file)));
  OUTRIDER_RETURN_IF_ERROR(store->read_sections());
  return store;
}

Result<std::unique_ptr<SuffixStore>> SuffixStore::open(const std::string& path,
                                                       const TokenizerId& tokenizer) {
  Result<std::unique_ptr<SuffixStore>> store = open(path);
  if (!store.ok()) return store.status();
  OUTRIDER_RETURN_IF_ERROR((*store)->file().check_tokenizer(tokenizer));
  return store;
}

Status SuffixStore::read_sections() {
  Result<std::span<const std::uint32_t>> tokens = file_->section<std::uint32_t>("tokens");
  if (!tokens.ok()) return tokens.status();
  Result<std::span<const std::uint32_t>> order = file_->section<std::uint32_t>("order");
  if (!order.ok()) return order.status();
  Result<std::span<const std::uint32_t>> starts = file_->section<std::uint32_t>("starts");
  if (!starts.ok()) return starts.status();
  tokens_ = *tokens;
  order_ = *order;
  starts_ = *starts;
  const std::size_t n_vocab = static_cast<std::size_t>(file_->tokenizer().n_vocab);
  const std::uint64_t ends = n_texts() == 0 ? 0 : n_texts() + 1;
  if (tokens_.size() > kSuffixTextEnd || tokens_.size() != order_.size() + ends ||
      starts_.size() != n_vocab + 1) {
    return data_loss("'" + file_->path() + "' is damaged: its sections do not fit each other");
  }
  return Status();
}

Token SuffixStore::token_at(std::uint64_t place) const {
  if (place >= tokens_.size()) return kNoToken;
  if (!file_->touch(tokens_.subspan(static_cast<std::size_t>(place), 1))) return kNoToken;
  const std::uint32_t token = tokens_[static_cast<std::size_t>(place)];
  return in_vocabulary(token) ? static_cast<Token>(token) : kNoToken;
}

// False where the file is damaged: places lie behind the first text's beginning, and something
// (at least an end) lies behind them.
bool SuffixStore::load_order(std::uint64_t i, std::uint32_t& place) const {
  if (!file_->touch(order_.subspan(static_cast<std::size_t>(i), 1))) return false;
  place = order_[static_cast<std::size_t>(i)];
  return place > 0 && place + std::size_t{1} < tokens_.size();
}

// Compares what ends at `place` with the context, backwards: negative, 0 or positive as the place
// is sorted before, with or behind it. `length`: tokens that both share.
int SuffixStore::compare(std::uint32_t place, std::span<const Token> context,
                         std::uint32_t& length) const {
  const std::size_t most = std::min<std::size_t>({kMostMatch, context.size(), place + 1u});
  const std::size_t first = place + 1 - most;
  const bool readable = file_->touch(tokens_.subspan(first, most));
  for (length = 0; readable && length < most; ++length) {
    const std::uint32_t ours = tokens_[place - length];
    const std::uint32_t theirs = static_cast<std::uint32_t>(context[context.size() - 1 - length]);
    if (ours != theirs) return ours < theirs ? -1 : 1;
  }
  if (!readable) length = 0;
  return 0;
}

void SuffixStore::find(std::span<const Token> context, std::size_t most,
                       std::vector<Place>& out) const {
  out.clear();
  if (context.empty() || order_.empty()) return;
  const Token last = context.back();
  if (last < 0 || last >= file_->tokenizer().n_vocab) return;
  const std::size_t bucket = static_cast<std::size_t>(last);
  if (!file_->touch(starts_.subspan(bucket, 2))) return;
  const std::uint64_t begin = starts_[bucket];
  const std::uint64_t end = starts_[bucket + 1];
  if (begin > end || end > order_.size()) return;

  std::uint64_t low = begin;
  std::uint64_t high = end;
  while (low < high) {
    const std::uint64_t middle = low + (high - low) / 2;
    std::uint32_t place = 0;
    std::uint32_t length = 0;
    if (!load_order(middle, place)) return;
    if (compare(place, context, length) < 0) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  // Outwards from there, the side that shares more first.
  std::uint64_t left = low;   // next: left - 1
  std::uint64_t right = low;  // next: right
  Place before;
  Place behind;
  const auto load = [&](std::uint64_t i, Place& to) {
    std::uint32_t place = 0;
    to.length = 0;
    if (i < begin || i >= end || !load_order(i, place)) return;
    (void)compare(place, context, to.length);
    to.next = place + 1;
  };
  load(left - 1, before);
  load(right, behind);
  // Places at a text's end are passed over; many of them must not make a search long.
  for (std::size_t tried = 0; out.size() < most && tried < 4 * most; ++tried) {
    const bool take_before = before.length > behind.length;
    const Place& best = take_before ? before : behind;
    if (best.length == 0) return;
    if (token_at(best.next) != kNoToken) out.push_back(best);
    if (take_before) {
      load(--left - 1, before);
    } else {
      load(++right, behind);
    }
  }
}

Status SuffixStore::copy_to(SuffixStoreBuilder& builder) const {
  OUTRIDER_RETURN_IF_ERROR(file_->verify());
  std::vector<Token> text;
  for (const std::uint32_t token : tokens_) {
    if (token != kSuffixTextEnd) {
      if (!in_vocabulary(token)) {
        return data_loss("'" + file_->path() + "' is damaged: its token " + std::to_string(token) +
                         " is not in its vocabulary of " +
                         std::to_string(file_->tokenizer().n_vocab));
      }
      text.push_back(static_cast<Token>(token));
      continue;
    }
    OUTRIDER_RETURN_IF_ERROR(builder.add(text));
    text.clear();
  }
  return Status();
}

Result<SuffixStoreBuilder> merge_suffix_stores(const std::vector<std::string>& paths) {
  std::optional<SuffixStoreBuilder> builder;
  TokenizerId tokenizer;
  for (const std::string& path : paths) {
    const Result<std::unique_ptr<SuffixStore>> store = SuffixStore::open(path);
    if (!store.ok()) return store.status();
    const TokenizerId& own = (*store)->file().tokenizer();
    if (!builder) {
      tokenizer = own;
      builder.emplace(tokenizer);
    }
    if (own != tokenizer) {
      return invalid_argument("'" + path + "' (" + describe(own) +
                              ") was built for another tokenizer than '" + paths.front() + "' (" +
                              describe(tokenizer) + ")");
    }
    OUTRIDER_RETURN_IF_ERROR((*store)->copy_to(*builder));
  }
  return *std::move(builder);
}

}  // namespace outrider
