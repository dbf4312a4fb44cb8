#include "draft/ngram/ngram_file.h"

#include <algorithm>
#include <memory>
#include <numeric>
#include <optional>
#include <utility>

#include "draft/ngram/ngram_limit.h"
#include "store/atomic_file.h"
#include "store/store_file.h"
#include "store/store_writer.h"

namespace outrider {
namespace {

struct NgramRecord {
  Token tokens[kMaxNgram];
  std::uint32_t n_followers;
};
static_assert(sizeof(NgramRecord) == 20);
static_assert(sizeof(Follower) == 8);

constexpr const char* kAges = "ages";

enum Param { kShortest, kLongest, kNgrams, kFollowers, kCounts };

bool is_token(Token token, std::int32_t n_vocab) { return token >= 0 && token < n_vocab; }

// A loaded record as an n-gram, or one of size 0 when its tokens are none.
Ngram checked_ngram(const NgramRecord& record, std::int32_t n_vocab) {
  std::size_t n = 0;
  while (n < kMaxNgram && record.tokens[n] != kNoToken) ++n;
  const std::span<const Token> given(record.tokens, n);
  const bool good =
      n > 0 &&
      std::all_of(given.begin(), given.end(), [&](Token t) { return is_token(t, n_vocab); }) &&
      std::all_of(record.tokens + n, record.tokens + kMaxNgram,
                  [](Token t) { return t == kNoToken; });
  return good ? Ngram(given) : Ngram();
}

Status broken(const std::string& path, const std::string& what) {
  return data_loss("'" + path + "' is damaged: " + what);
}

// "" or what is wrong with one n-gram's followers.
std::string wrong_followers(std::span<const Follower> followers, std::int32_t n_vocab) {
  for (std::size_t i = 0; i < followers.size(); ++i) {
    const Follower& follower = followers[i];
    if (!is_token(follower.token, n_vocab)) return "a follower is outside the vocabulary";
    if (follower.count < 1 || follower.count > kMaxNgramCount) return "a count is out of range";
    if (i > 0 && follower.count > followers[0].count) return "its first follower is not the best";
    if (i > 0 && follower.token == followers[0].token) return "a follower is there twice";
    if (i > 1 && follower.token <= followers[i - 1].token) return "its followers are not sorted";
  }
  return "";
}

// Adds one n-gram's followers: by rising token, since each then goes behind those that are there
// (falling, all are moved for each), and the best one last, so that it wins among equals.
void add_followers(NgramCache& cache, const Ngram& ngram, std::span<const Follower> followers) {
  for (const Follower& follower : followers.subspan(1)) {
    (void)cache.add(ngram, follower.token, follower.count);
  }
  (void)cache.add(ngram, followers[0].token, followers[0].count);
}

// The records in the order in which their n-grams came in; as they lie where the file does not say.
// Nothing: what it says is no order.
std::optional<std::vector<std::uint32_t>> by_age(const StoreFile& file, std::size_t n_records) {
  std::vector<std::uint32_t> order(n_records);
  std::iota(order.begin(), order.end(), 0U);
  const Result<std::span<const std::uint32_t>> ages = file.section<std::uint32_t>(kAges);
  if (!ages.ok()) return order;
  if (ages->size() != n_records) return std::nullopt;
  std::vector<bool> taken(n_records, false);
  for (std::size_t i = 0; i < n_records; ++i) {
    const std::size_t age = (*ages)[i];
    if (age >= n_records || taken[age]) return std::nullopt;
    taken[age] = true;
    order[age] = static_cast<std::uint32_t>(i);
  }
  return order;
}

std::uint64_t sum_of_counts(const NgramCache& cache) {
  std::uint64_t sum = 0;
  for (std::size_t i = 0; i < cache.size(); ++i) sum += cache.part(i).total;
  return sum;
}

Status save_cache(const NgramCache& cache, const TokenizerId& tokenizer, const std::string& path,
                  FileOps& ops, bool with_ages) {
  std::vector<NgramRecord> records;
  std::vector<Follower> followers;
  records.reserve(cache.size());
  followers.reserve(cache.followers());
  std::int32_t shortest = kMaxNgram;
  std::int32_t longest = 0;
  const std::vector<std::uint32_t> places = sorted_ngrams(cache);
  for (const std::uint32_t place : places) {
    const NgramPart part = cache.part(place);
    NgramRecord record = {};
    const Ngram& ngram = cache.ngram(place);
    std::copy(ngram.tokens.begin(), ngram.tokens.end(), record.tokens);
    record.n_followers = static_cast<std::uint32_t>(part.followers.size());
    records.push_back(record);
    shortest = std::min(shortest, ngram.size());
    longest = std::max(longest, ngram.size());
    if (checked_ngram(record, tokenizer.n_vocab).size() == 0 ||
        !is_token(part.followers.back().token, tokenizer.n_vocab)) {
      return invalid_argument("cannot save '" + path +
                              "': the n-grams hold ids outside the vocabulary of " +
                              std::to_string(tokenizer.n_vocab) + " tokens");
    }
    followers.push_back(part.best);
    std::copy_if(part.followers.begin(), part.followers.end(), std::back_inserter(followers),
                 [&part](const Follower& f) { return f.token != part.best.token; });
  }
  StoreContents contents;
  contents.kind = kNgramStore;
  contents.tokenizer = tokenizer;
  contents.params[kShortest] = static_cast<std::uint64_t>(cache.empty() ? 0 : shortest);
  contents.params[kLongest] = static_cast<std::uint64_t>(longest);
  contents.params[kNgrams] = records.size();
  contents.params[kFollowers] = followers.size();
  contents.params[kCounts] = sum_of_counts(cache);
  contents.sections = {make_section("ngrams", std::span<const NgramRecord>(records)),
                       make_section("followers", std::span<const Follower>(followers))};
  // A place in the cache is an age: n-grams lie there in the order in which they came in.
  if (with_ages) {
    contents.sections.push_back(make_section(kAges, std::span<const std::uint32_t>(places)));
  }
  return save_store(path, contents, ops);
}

}  // namespace

std::vector<std::uint32_t> sorted_ngrams(const NgramCache& cache) {
  std::vector<std::uint32_t> places(cache.size());
  std::iota(places.begin(), places.end(), 0U);
  std::sort(places.begin(), places.end(),
            [&cache](std::uint32_t a, std::uint32_t b) { return cache.ngram(a) < cache.ngram(b); });
  return places;
}

Status save_ngrams(const NgramCache& cache, const TokenizerId& tokenizer, const std::string& path,
                   FileOps& ops) {
  return save_cache(cache, tokenizer, path, ops, /*with_ages=*/false);
}

Status save_ngrams(const NgramCache& cache, const TokenizerId& tokenizer, const std::string& path) {
  FileOps ops;
  return save_ngrams(cache, tokenizer, path, ops);
}

Result<NgramFile> load_ngrams(const std::string& path) {
  Result<std::unique_ptr<StoreFile>> opened = StoreFile::open(path, kNgramStore);
  if (!opened.ok()) return opened.status();
  const StoreFile& file = **opened;
  OUTRIDER_RETURN_IF_ERROR(file.verify());
  const Result<std::span<const NgramRecord>> records = file.section<NgramRecord>("ngrams");
  if (!records.ok()) return records.status();
  const Result<std::span<const Follower>> followers = file.section<Follower>("followers");
  if (!followers.ok()) return followers.status();
  if (records->size() != file.param(kNgrams) || followers->size() != file.param(kFollowers)) {
    return broken(path, "its sections are not as long as its header says");
  }
  NgramFile result;
  result.tokenizer = file.tokenizer();
  std::vector<std::size_t> first_follower(records->size());
  std::size_t at = 0;
  Ngram before;
  for (std::size_t i = 0; i < records->size(); ++i) {
    const NgramRecord& record = (*records)[i];
    const std::string where = "n-gram " + std::to_string(i) + ": ";
    const Ngram ngram = checked_ngram(record, result.tokenizer.n_vocab);
    if (ngram.size() == 0) return broken(path, where + "its tokens are not of the vocabulary");
    if (i > 0 && !(before < ngram)) return broken(path, where + "it is out of order");
    if (record.n_followers == 0 || record.n_followers > followers->size() - at) {
      return broken(path, where + "it has no followers, or more than there are");
    }
    first_follower[i] = at;
    const std::string wrong =
        wrong_followers(followers->subspan(at, record.n_followers), result.tokenizer.n_vocab);
    if (!wrong.empty()) return broken(path, where + wrong);
    at += record.n_followers;
    before = ngram;
  }
  if (at != followers->size()) return broken(path, "some followers belong to no n-gram");
  const std::optional<std::vector<std::uint32_t>> order = by_age(file, records->size());
  if (!order) return broken(path, "the ages of its n-grams are no order");
  result.cache.reserve(records->size());
  for (const std::uint32_t i : *order) {
    const NgramRecord& record = (*records)[i];
    add_followers(result.cache, checked_ngram(record, result.tokenizer.n_vocab),
                  followers->subspan(first_follower[i], record.n_followers));
  }
  if (sum_of_counts(result.cache) != file.param(kCounts)) {
    return broken(path, "its counts do not add up");
  }
  return result;
}

Result<NgramCache> load_ngrams(const std::string& path, const TokenizerId& tokenizer) {
  Result<NgramFile> file = load_ngrams(path);
  if (!file.ok()) return file.status();
  if (file->tokenizer == tokenizer) return std::move(file->cache);
  return invalid_argument("'" + path + "' is for another tokenizer: it has " +
                          describe(file->tokenizer) + ", this model " + describe(tokenizer));
}

Status add_to_ngrams(std::span<const Token> text, const TokenizerId& tokenizer,
                     const std::string& path, std::uint64_t most_bytes,
                     std::chrono::milliseconds patience) {
  // Of the file itself: others may have it by another name, through a link.
  OUTRIDER_ASSIGN_OR_RETURN(const std::string replaced, file_to_replace(path));
  // Where no lock can be made, nor can the file be written.
  const std::string beside = replaced + ".lock";
  const FileLock lock(beside, FileLock::for_at_most(patience, replaced));
  if (lock.gave_up()) return locked_by_another(replaced, beside);
  Result<NgramCache> cache = load_ngrams(path, tokenizer);
  if (cache.status().code() == StatusCode::kNotFound) cache = NgramCache();
  if (!cache.ok()) return cache.status();
  cache->count(text, /*from=*/0, /*min_order=*/1, kMaxNgram);
  PrivateFileOps ops;  // its n-grams are pieces of texts
  return save_cache(limited_ngrams(*std::move(cache), most_bytes), tokenizer, path, ops,
                    /*with_ages=*/true);
}

Result<NgramFile> merge_ngrams(const std::vector<std::string>& paths) {
  NgramFile result;
  for (std::size_t i = 0; i < paths.size(); ++i) {
    Result<NgramFile> file = load_ngrams(paths[i]);
    if (!file.ok()) return file.status();
    if (i == 0) {
      result = std::move(*file);
    } else if (file->tokenizer == result.tokenizer) {
      result.cache.merge(file->cache);
    } else {
      return invalid_argument("'" + paths[i] + "' is for another tokenizer than '" + paths[0] +
                              "': " + describe(file->tokenizer) + ", not " +
                              describe(result.tokenizer));
    }
  }
  return result;
}

}  // namespace outrider
