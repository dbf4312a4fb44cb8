// The first byte chooses: a file as it is, whose checksums hardly ever fit, or a file that is made
// of the input's sections, with checksums that do: what a forger would write of n-grams or
// suffixes, or of remembered texts.
#include <cstring>
#include <span>
#include <string>
#include <vector>

#include "draft/ngram/llama_ngram_file.h"
#include "draft/ngram/ngram_file.h"
#include "draft/suffix/suffix_memory.h"
#include "draft/suffix/suffix_memory_file.h"
#include "draft/suffix/suffix_store.h"
#include "fuzz/targets.h"
#include "store/store_writer.h"
#include "testing/tiny_dir.h"

namespace outrider::fuzz {
namespace {

const testing::TempDir& folder() {
  static const testing::TempDir dir;
  return dir;
}

void use_ngrams(const std::string& path) {
  const Result<NgramFile> file = load_ngrams(path);
  if (!file.ok()) return;
  const std::string broken = file->cache.check_integrity();
  if (!broken.empty()) violated(broken);
  if (!save_ngrams(file->cache, file->tokenizer, path).ok()) violated("what was read is not saved");
}

void use_suffixes(const std::string& path, Bytes context) {
  const Result<std::unique_ptr<SuffixStore>> store = SuffixStore::open(path);
  if (!store.ok()) return;
  std::vector<Token> end;
  for (const std::uint8_t byte : context.first(std::min<std::size_t>(context.size(), 60))) {
    end.push_back(byte % 8);
  }
  std::vector<SuffixStore::Place> places;
  (*store)->find(end, 16, places);
  for (const SuffixStore::Place& place : places) {
    static_cast<void>((*store)->token_at(place.next));
    if (place.length == 0 || place.length > end.size()) violated("a match of no possible length");
  }
  static_cast<void>((*store)->token_at(~std::uint64_t{0}));
  const Status whole = (*store)->verify();
  SuffixStoreBuilder builder((*store)->file().tokenizer());
  const Status copied = (*store)->copy_to(builder);
  if (whole.ok() && !copied.ok()) violated("a good store is not copied: " + copied.message());
}

// A section of elements of this size, of `reader`'s next bytes.
SectionData section(Reader& reader, const std::string& name, std::uint32_t element_bytes,
                    std::vector<std::byte>& kept) {
  const std::size_t n = reader.byte() * std::size_t{element_bytes};
  const Bytes bytes = reader.take(n);
  kept.resize(bytes.size() / element_bytes * element_bytes);
  if (!kept.empty()) std::memcpy(kept.data(), bytes.data(), kept.size());
  return {.name = name, .bytes = kept, .element_bytes = element_bytes};
}

void write_forged(Reader& reader, const std::string& path) {
  const bool ngrams = reader.byte() % 2 == 0;
  StoreContents contents;
  contents.kind = ngrams ? "ngram" : "suffix";
  contents.tokenizer = {.hash = 5, .n_vocab = 1 + static_cast<std::int32_t>(reader.byte())};
  for (std::uint64_t& param : contents.params) param = reader.byte();
  std::vector<std::byte> kept[3];
  if (ngrams) {
    contents.sections.push_back(section(reader, "ngrams", 20, kept[0]));
    contents.sections.push_back(section(reader, "followers", 8, kept[1]));
    if (reader.byte() % 2 == 1) contents.sections.push_back(section(reader, "ages", 4, kept[2]));
  } else {
    contents.sections.push_back(section(reader, "tokens", 4, kept[0]));
    contents.sections.push_back(section(reader, "order", 4, kept[1]));
    contents.sections.push_back(section(reader, "starts", 4, kept[2]));
  }
  const Status saved = save_store(path, contents);
  if (!saved.ok()) violated(saved.message());
}

// Namespaces whose lengths a byte each gives, and tokens, of which the highest byte ends a text.
void write_remembered(Reader& reader, const TokenizerId& tokenizer, const std::string& path) {
  std::vector<std::uint32_t> spaces;
  std::vector<Token> tokens;
  for (std::size_t n = reader.below(8); n > 0; --n) {
    spaces.push_back(reader.byte() % 16U);
    spaces.push_back(reader.byte());
  }
  const Bytes names = reader.take(reader.byte());
  for (const std::uint8_t byte : reader.rest()) {
    tokens.push_back(byte == 255 ? SuffixMemory::kTextEnd : Token{byte} - 1);
  }
  StoreContents contents;
  contents.kind = "remembered";
  contents.tokenizer = tokenizer;
  contents.sections = {
      {.name = "spaces", .bytes = std::as_bytes(std::span(spaces)), .element_bytes = 8},
      {.name = "names", .bytes = std::as_bytes(names), .element_bytes = 1},
      {.name = "tokens", .bytes = std::as_bytes(std::span(tokens)), .element_bytes = 4}};
  const Status saved = save_store(path, contents);
  if (!saved.ok()) violated(saved.message());
}

void use_remembered(const std::string& path, const TokenizerId& tokenizer) {
  SuffixMemory memory(1024);
  if (!load_memory(path, tokenizer, memory).ok()) return;
  const std::string broken = memory.check_integrity();
  if (!broken.empty()) violated(broken);
  if (!save_memory(memory, tokenizer, path).ok()) violated("what was read is not saved");
  SuffixMemory again(1024);
  if (!load_memory(path, tokenizer, again).ok()) violated("what was saved is not read");
}

}  // namespace

void store_file(Bytes input) {
  Reader reader(input);
  const std::string path = folder().file("store");
  const TokenizerId tokenizer{.hash = 5, .n_vocab = 200};
  const std::uint8_t kind = reader.byte();
  if (kind % 2 == 0) {
    testing::write_bytes(path, std::string(text(reader.rest())));
  } else if (kind % 4 == 1) {
    write_forged(reader, path);
  } else {
    write_remembered(reader, tokenizer, path);
  }
  use_remembered(path, tokenizer);
  use_suffixes(path, input);
  use_ngrams(path);
}

void llama_ngrams(Bytes input) {
  const std::string path = folder().file("llama");
  testing::write_bytes(path, std::string(text(input)));
  const Result<ImportedNgrams> imported = import_llama_ngrams(path, 256);
  if (!imported.ok()) return;
  const std::string broken = imported->cache.check_integrity();
  if (!broken.empty()) violated(broken);
  if (!export_llama_ngrams(imported->cache, path).ok()) violated("what was read is not written");
  const Result<ImportedNgrams> again = import_llama_ngrams(path, 256);
  if (!again.ok() || again->cache.size() != imported->cache.size()) violated("not the same again");
}

}  // namespace outrider::fuzz
