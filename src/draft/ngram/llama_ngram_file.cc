#include "draft/ngram/llama_ngram_file.h"

#include <algorithm>
#include <cstring>
#include <span>
#include <utility>
#include <vector>

#include "draft/ngram/ngram_file.h"
#include "store/atomic_file.h"
#include "store/mapped_file.h"

namespace outrider {
namespace {

// Reads int32s one after the other; the file need not be aligned.
class Reader {
 public:
  Reader(const std::string& path, std::span<const std::byte> bytes) : path_(path), bytes_(bytes) {}

  bool at_end() const { return at_ == bytes_.size(); }
  std::size_t left() const { return bytes_.size() - at_; }

  // REQUIRES: left() >= 4
  std::int32_t next() {
    std::int32_t value = 0;
    std::memcpy(&value, bytes_.data() + at_, sizeof(value));
    at_ += sizeof(value);
    return value;
  }

  Status refuse(const std::string& what) const {
    return data_loss("'" + path_ + "' is no sound n-gram file of llama.cpp: " + what +
                     ", before byte " + std::to_string(at_));
  }

 private:
  const std::string& path_;
  std::span<const std::byte> bytes_;
  std::size_t at_ = 0;
};

constexpr std::size_t kHeadBytes = 4 * kMaxNgram + 4;

Status read_ngram(Reader& reader, std::int32_t n_vocab, Ngram& ngram) {
  bool ended = false;
  for (std::size_t i = 0; i < ngram.tokens.size(); ++i) {
    const Token token = reader.next();
    if (token == kNoToken && i > 0) {
      ended = true;
    } else if (ended) {
      return reader.refuse("an n-gram goes on behind its end");
    } else if (token < 0 || token >= n_vocab) {
      return reader.refuse("the id " + std::to_string(token) + " is outside the vocabulary of " +
                           std::to_string(n_vocab) + " tokens");
    }
    ngram.tokens[i] = token;
  }
  return Status();
}

// REQUIRES: `ngram` is not in the cache
Status read_followers(Reader& reader, std::int32_t n_vocab, const Ngram& ngram,
                      ImportedNgrams& result) {
  const std::int32_t n = reader.next();
  if (n < 1) return reader.refuse("an n-gram has " + std::to_string(n) + " followers");
  if (static_cast<std::size_t>(n) > reader.left() / 8) {
    return reader.refuse("the file ends within the " + std::to_string(n) +
                         " followers of an n-gram: it was cut off");
  }
  for (std::int32_t i = 0; i < n; ++i) {
    const Token token = reader.next();
    const std::int32_t count = reader.next();
    if (token < 0 || token >= n_vocab) {
      return reader.refuse("the id " + std::to_string(token) + " is outside the vocabulary of " +
                           std::to_string(n_vocab) + " tokens");
    }
    if (count < 1) return reader.refuse("a count is " + std::to_string(count));
    const std::uint32_t kept = std::min(static_cast<std::uint32_t>(count), kMaxNgramCount);
    result.n_saturated += kept != static_cast<std::uint32_t>(count) ? 1 : 0;
    const std::size_t before = result.cache.followers();
    (void)result.cache.add(ngram, token, kept);
    if (result.cache.followers() == before) return reader.refuse("a follower is there twice");
  }
  return Status();
}

void append(std::vector<std::byte>& bytes, std::int32_t value) {
  const std::size_t at = bytes.size();
  bytes.resize(at + sizeof(value));
  std::memcpy(bytes.data() + at, &value, sizeof(value));
}

void append_record(std::vector<std::byte>& bytes, const Ngram& ngram, const NgramPart& part) {
  for (const Token token : ngram.tokens) append(bytes, token);
  append(bytes, static_cast<std::int32_t>(part.followers.size()));
  const auto append_follower = [&bytes](const Follower& follower) {
    append(bytes, follower.token);
    append(bytes, static_cast<std::int32_t>(follower.count));
  };
  for (const Follower& follower : part.followers) {
    if (follower.token != part.best.token) append_follower(follower);
  }
  append_follower(part.best);
}

}  // namespace

Result<ImportedNgrams> import_llama_ngrams(const std::string& path, std::int32_t n_vocab) {
  const Result<MappedFile> file = MappedFile::open(path);
  if (!file.ok()) return file.status();
  Reader reader(path, file->bytes());
  if (reader.at_end()) return reader.refuse("it is empty");
  ImportedNgrams result;
  while (!reader.at_end()) {
    if (reader.left() < kHeadBytes) {
      return reader.refuse("the file ends within an n-gram: it was cut off, or is another file");
    }
    Ngram ngram;
    OUTRIDER_RETURN_IF_ERROR(read_ngram(reader, n_vocab, ngram));
    NgramPart part;
    if (result.cache.find(ngram, part)) return reader.refuse("an n-gram is there twice");
    OUTRIDER_RETURN_IF_ERROR(read_followers(reader, n_vocab, ngram, result));
  }
  return result;
}

Status export_llama_ngrams(const NgramCache& cache, const std::string& path, FileOps& ops) {
  constexpr std::size_t kBlock = 1 << 20;  // written at once
  Result<AtomicFile> file = AtomicFile::create(path, ops);
  if (!file.ok()) return file.status();
  std::vector<std::byte> bytes;
  for (const std::uint32_t place : sorted_ngrams(cache)) {
    append_record(bytes, cache.ngram(place), cache.part(place));
    if (bytes.size() < kBlock) continue;
    OUTRIDER_RETURN_IF_ERROR(file->write(bytes));
    bytes.clear();
  }
  OUTRIDER_RETURN_IF_ERROR(file->write(bytes));
  return file->commit();
}

Status export_llama_ngrams(const NgramCache& cache, const std::string& path) {
  FileOps ops;
  return export_llama_ngrams(cache, path, ops);
}

}  // namespace outrider
