#include "draft/ngram/ngram_cache.h"

#include <algorithm>
#include <bit>
#include <cassert>

namespace outrider {
namespace {

constexpr std::size_t kFirstIndex = 64;  // buckets of a cache that is not empty; a power of two

// A multiply and a shift per token (Fibonacci hashing), each token's product turned another way:
// a plain XOR of the products would give "a b" and "b a" the same place.
std::uint64_t hash(const Ngram& ngram) {
  std::uint64_t h = 0;
  for (const Token token : ngram.tokens) {
    h = (std::rotl(h, 23) ^ static_cast<std::uint32_t>(token)) * 0x9E3779B97F4A7C15ULL;
  }
  return h ^ (h >> 32);
}

bool token_less(const Follower& follower, Token token) { return follower.token < token; }

}  // namespace

Ngram::Ngram(std::span<const Token> given) {
  assert(!given.empty() && given.size() <= static_cast<std::size_t>(kMaxNgram));
  std::copy(given.begin(), given.end(), tokens.begin());
}

std::int32_t Ngram::size() const {
  std::int32_t n = 0;
  while (n < kMaxNgram && tokens[static_cast<std::size_t>(n)] != kNoToken) ++n;
  return n;
}

std::uint32_t NgramPart::count(Token token) const {
  const std::span<const Follower>::iterator at =
      std::lower_bound(followers.begin(), followers.end(), token, token_less);
  return at != followers.end() && at->token == token ? at->count : 0;
}

// 2 followers: class 0; 3 and 4: class 1; 5 to 8: class 2; ...
std::uint32_t NgramCache::size_class(std::uint32_t n) {
  return static_cast<std::uint32_t>(std::bit_width(n - 1)) - 1;
}

NgramPart NgramCache::part_of(const Entry& entry) const {
  NgramPart part;
  part.best = entry.best;
  part.total = entry.total;
  part.followers = entry.n_followers == 1
                       ? std::span<const Follower>(&entry.best, 1)
                       : std::span(pool_).subspan(entry.block, entry.n_followers);
  return part;
}

std::size_t NgramCache::bucket_of(const Ngram& ngram) const {
  const std::size_t mask = index_.size() - 1;
  std::size_t bucket = hash(ngram) & mask;
  while (index_[bucket] != 0 && !(entries_[index_[bucket] - 1].ngram == ngram)) {
    bucket = (bucket + 1) & mask;
  }
  return bucket;
}

// Entries go in again in their order, so the last one's bucket is always one that no other's search
// passes through: take_back() may simply free it.
void NgramCache::resize_index(std::size_t buckets) {
  index_.assign(buckets, 0);
  for (std::size_t i = 0; i < entries_.size(); ++i) {
    index_[bucket_of(entries_[i].ngram)] = static_cast<std::uint32_t>(i + 1);
  }
}

std::uint32_t NgramCache::allocate(std::uint32_t size_class) {
  if (free_.size() <= size_class) free_.resize(size_class + 1);
  std::vector<std::uint32_t>& blocks = free_[size_class];
  if (!blocks.empty()) {
    const std::uint32_t block = blocks.back();
    blocks.pop_back();
    return block;
  }
  const std::size_t block = pool_.size();
  pool_.resize(block + (std::size_t{2} << size_class));
  return static_cast<std::uint32_t>(block);
}

void NgramCache::release(std::uint32_t block, std::uint32_t size_class) {
  free_[size_class].push_back(block);
}

// Puts `token` among the followers with a count of 0 and returns its place in pool_.
std::uint32_t NgramCache::insert_follower(Entry& entry, Token token) {
  const std::uint32_t n = entry.n_followers;
  const NgramPart part = part_of(entry);
  const std::uint32_t at = static_cast<std::uint32_t>(
      std::lower_bound(part.followers.begin(), part.followers.end(), token, token_less) -
      part.followers.begin());
  if (n == 1 || size_class(n + 1) != size_class(n)) {
    const std::uint32_t larger = allocate(size_class(n + 1));
    if (n == 1) {
      pool_[larger] = entry.best;
    } else {
      std::copy_n(pool_.begin() + entry.block, n, pool_.begin() + larger);
      release(entry.block, size_class(n));
    }
    entry.block = larger;
  }
  const std::vector<Follower>::iterator first = pool_.begin() + entry.block;
  std::move_backward(first + at, first + n, first + n + 1);
  first[at] = {.token = token, .count = 0};
  ++entry.n_followers;
  ++n_followers_;
  return entry.block + at;
}

// REQUIRES: the entry has at least two
void NgramCache::remove_follower(Entry& entry, std::uint32_t at) {
  const std::uint32_t n = entry.n_followers;
  const std::vector<Follower>::iterator first = pool_.begin() + entry.block;
  std::move(first + (at - entry.block) + 1, first + n, first + (at - entry.block));
  --entry.n_followers;
  --n_followers_;
  if (n == 2) {
    entry.best = pool_[entry.block];
    release(entry.block, size_class(n));
    entry.block = 0;
  } else if (size_class(n - 1) != size_class(n)) {
    const std::uint32_t smaller = allocate(size_class(n - 1));
    std::copy_n(pool_.begin() + entry.block, n - 1, pool_.begin() + smaller);
    release(entry.block, size_class(n));
    entry.block = smaller;
  }
}

Token NgramCache::add(const Ngram& ngram, Token token, std::uint32_t times) {
  assert(token >= 0 && ngram.tokens[0] >= 0 && times >= 1 && times <= kMaxNgramCount);
  if (2 * (entries_.size() + 1) > index_.size()) {
    resize_index(std::max(kFirstIndex, 2 * index_.size()));
  }
  std::uint32_t& bucket = index_[bucket_of(ngram)];
  if (bucket == 0) {
    Entry entry;
    entry.ngram = ngram;
    entry.total = times;
    entry.best = {.token = token, .count = times};
    entry.n_followers = 1;
    entries_.push_back(entry);
    bucket = static_cast<std::uint32_t>(entries_.size());
    ++n_followers_;
    return kNoToken;
  }
  Entry& entry = entries_[bucket - 1];
  const Token best_before = entry.best.token;
  if (entry.n_followers == 1 && entry.best.token == token) {
    const std::uint32_t more = std::min(times, kMaxNgramCount - entry.best.count);
    entry.best.count += more;
    entry.total += more;
    return best_before;
  }
  std::uint32_t at = entry.block;
  bool found = false;
  if (entry.n_followers > 1) {
    const std::vector<Follower>::iterator first = pool_.begin() + entry.block;
    const std::vector<Follower>::iterator last = first + entry.n_followers;
    const std::vector<Follower>::iterator place = std::lower_bound(first, last, token, token_less);
    found = place != last && place->token == token;
    at = static_cast<std::uint32_t>(place - pool_.begin());
  }
  if (!found) at = insert_follower(entry, token);
  Follower& follower = pool_[at];
  const std::uint32_t more = std::min(times, kMaxNgramCount - follower.count);
  follower.count += more;
  entry.total += more;
  if (follower.count >= entry.best.count) entry.best = follower;
  return best_before;
}

void NgramCache::take_back(const Ngram& ngram, Token token, Token best_before) {
  const std::size_t bucket = bucket_of(ngram);
  assert(index_[bucket] != 0);
  Entry& entry = entries_[index_[bucket] - 1];
  --entry.total;
  if (entry.n_followers == 1) {
    assert(entry.best.token == token);
    if (--entry.best.count > 0) return;
    assert(index_[bucket] == entries_.size());
    index_[bucket] = 0;
    entries_.pop_back();
    --n_followers_;
    return;
  }
  const std::vector<Follower>::iterator first = pool_.begin() + entry.block;
  const std::vector<Follower>::iterator place =
      std::lower_bound(first, first + entry.n_followers, token, token_less);
  assert(place != first + entry.n_followers && place->token == token);
  if (--place->count == 0) {
    remove_follower(entry, static_cast<std::uint32_t>(place - pool_.begin()));
  }
  if (entry.n_followers > 1) {
    const NgramPart part = part_of(entry);
    entry.best = {.token = best_before, .count = part.count(best_before)};
  }
  assert(entry.best.token == best_before);
}

void NgramCache::count(std::span<const Token> text, std::size_t from, std::int32_t min_order,
                       std::int32_t max_order) {
  for (std::size_t i = from; i < text.size(); ++i) {
    for (std::int32_t order = min_order; order <= max_order; ++order) {
      const std::size_t n = static_cast<std::size_t>(order);
      if (i < n) break;
      (void)add(Ngram(text.subspan(i - n, n)), text[i]);
    }
  }
}

void NgramCache::merge(const NgramCache& other) {
  for (std::size_t i = 0; i < other.size(); ++i) {
    const NgramPart part = other.part(i);
    for (const Follower& follower : part.followers) {
      if (follower.token != part.best.token) {
        (void)add(other.ngram(i), follower.token, follower.count);
      }
    }
    // Last, so that it wins among equals.
    (void)add(other.ngram(i), part.best.token, part.best.count);
  }
}

void NgramCache::reserve(std::size_t ngrams) {
  entries_.reserve(ngrams);
  const std::size_t buckets = std::bit_ceil(std::max(kFirstIndex, 2 * ngrams));
  if (buckets > index_.size()) resize_index(buckets);
}

void NgramCache::clear() {
  entries_.clear();
  std::fill(index_.begin(), index_.end(), 0);
  pool_.clear();
  for (std::vector<std::uint32_t>& blocks : free_) blocks.clear();
  n_followers_ = 0;
}

bool NgramCache::find(const Ngram& ngram, NgramPart& part) const {
  if (index_.empty()) return false;
  const std::uint32_t place = index_[bucket_of(ngram)];
  if (place == 0) return false;
  part = part_of(entries_[place - 1]);
  return true;
}

std::array<std::size_t, kMaxNgram> NgramCache::sizes() const {
  std::array<std::size_t, kMaxNgram> sizes = {};
  for (const Entry& entry : entries_) ++sizes[static_cast<std::size_t>(entry.ngram.size() - 1)];
  return sizes;
}

std::size_t NgramCache::memory_bytes() const {
  std::size_t bytes = entries_.capacity() * sizeof(Entry) +
                      index_.capacity() * sizeof(std::uint32_t) +
                      pool_.capacity() * sizeof(Follower);
  for (const std::vector<std::uint32_t>& blocks : free_) {
    bytes += blocks.capacity() * sizeof(std::uint32_t);
  }
  return bytes;
}

std::string NgramCache::check_integrity() const {
  std::size_t filled = 0;
  for (const std::uint32_t place : index_) filled += place != 0 ? 1 : 0;
  if (filled != entries_.size()) return "the index does not hold each n-gram once";
  if (2 * entries_.size() > index_.size()) return "the index is more than half full";
  std::vector<bool> used(pool_.size(), false);
  const auto claim = [&used](std::size_t block, std::size_t n) {
    bool free = block + n <= used.size();
    for (std::size_t i = block; free && i < block + n; ++i) {
      free = !used[i];
      used[i] = true;
    }
    return free;
  };
  std::size_t n_followers = 0;
  for (std::size_t i = 0; i < entries_.size(); ++i) {
    const Entry& entry = entries_[i];
    const std::string where = "n-gram " + std::to_string(i) + ": ";
    if (index_[bucket_of(entry.ngram)] != i + 1) return where + "the index does not find it";
    const std::int32_t size = entry.ngram.size();
    if (size < 1) return where + "has no tokens";
    for (std::int32_t t = 0; t < kMaxNgram; ++t) {
      const Token token = entry.ngram.tokens[static_cast<std::size_t>(t)];
      if (t < size ? token < 0 : token != kNoToken) return where + "has a bad token";
    }
    if (entry.n_followers == 0) return where + "nothing follows it";
    if (entry.n_followers > 1 &&
        !claim(entry.block, std::size_t{2} << size_class(entry.n_followers))) {
      return where + "its followers' block is not its own";
    }
    const NgramPart part = part_of(entry);
    std::uint64_t total = 0;
    std::uint32_t largest = 0;
    for (std::size_t f = 0; f < part.followers.size(); ++f) {
      const Follower& follower = part.followers[f];
      if (follower.token < 0) return where + "a follower is no token";
      if (follower.count < 1 || follower.count > kMaxNgramCount) return where + "a bad count";
      if (f > 0 && part.followers[f - 1].token >= follower.token) {
        return where + "its followers are not sorted";
      }
      total += follower.count;
      largest = std::max(largest, follower.count);
    }
    if (total != entry.total) return where + "its total is not the sum of its counts";
    if (entry.best.count != largest || part.count(entry.best.token) != largest) {
      return where + "its best follower is not one with the largest count";
    }
    n_followers += part.followers.size();
  }
  if (n_followers != n_followers_) return "the number of followers is wrong";
  for (std::size_t c = 0; c < free_.size(); ++c) {
    for (const std::uint32_t block : free_[c]) {
      if (!claim(block, std::size_t{2} << c)) return "a free block is in use";
    }
  }
  if (std::find(used.begin(), used.end(), false) != used.end()) return "a block was lost";
  return "";
}

}  // namespace outrider
