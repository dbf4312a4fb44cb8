#include "draft/suffix/suffix_memory_file.h"

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string_view>
#include <system_error>
#include <vector>

#include "store/store_file.h"
#include "store/store_writer.h"

namespace outrider {
namespace {

constexpr const char* kKind = "remembered";

struct SpaceRecord {
  std::uint32_t name_bytes = 0;
  std::uint32_t n_tokens = 0;  // marks included
};

// A file's sections, whose bytes are undamaged.
struct Sections {
  std::span<const SpaceRecord> spaces;
  std::span<const char> names;
  std::span<const Token> tokens;
};

Status read_sections(const StoreFile& file, Sections& sections) {
  const Result<std::span<const SpaceRecord>> spaces = file.section<SpaceRecord>("spaces");
  if (!spaces.ok()) return spaces.status();
  const Result<std::span<const char>> names = file.section<char>("names");
  if (!names.ok()) return names.status();
  const Result<std::span<const Token>> tokens = file.section<Token>("tokens");
  if (!tokens.ok()) return tokens.status();
  OUTRIDER_RETURN_IF_ERROR(file.verify());
  sections = {.spaces = *spaces, .names = *names, .tokens = *tokens};
  return Status();
}

// Whether the sections fit each other, and every token is one.
bool sound(const Sections& sections, std::int32_t n_vocab) {
  std::uint64_t name_bytes = 0;
  std::uint64_t n_tokens = 0;
  for (const SpaceRecord& space : sections.spaces) {
    name_bytes += space.name_bytes;
    n_tokens += space.n_tokens;
    if (n_tokens > sections.tokens.size()) return false;
    // Each text ends, the last one too.
    if (space.n_tokens > 0 && sections.tokens[n_tokens - 1] != SuffixMemory::kTextEnd) return false;
  }
  return name_bytes == sections.names.size() && n_tokens == sections.tokens.size() &&
         std::all_of(sections.tokens.begin(), sections.tokens.end(), [n_vocab](Token token) {
           return token == SuffixMemory::kTextEnd || (token >= 0 && token < n_vocab);
         });
}

std::string lock_of(const std::string& path) { return path + ".lock"; }

// What no later try, and no other version of this program, will read either. That of another
// tokenizer has another name.
bool is_damage(const Status& loaded) {
  return loaded.code() == StatusCode::kDataLoss || loaded.code() == StatusCode::kInvalidArgument;
}

// REQUIRES: the file's lock is held
Status load_or_set_aside(const std::string& path, const TokenizerId& tokenizer,
                         SuffixMemory& memory) {
  const Status loaded = load_memory(path, tokenizer, memory);
  if (!is_damage(loaded)) return loaded;
  std::error_code error;
  if (!std::filesystem::is_regular_file(path, error)) return loaded;
  std::filesystem::rename(path, path + ".damaged", error);
  if (error) return loaded;
  return Status(loaded.code(), loaded.message() + "; it is now '" + path + ".damaged'");
}

}  // namespace

Status save_memory(const SuffixMemory& memory, const TokenizerId& tokenizer,
                   const std::string& path) {
  std::vector<SpaceRecord> spaces;
  std::string names;
  std::vector<Token> tokens;
  memory.for_each_space([&](std::string_view name, std::span<const Token> texts) {
    spaces.push_back({.name_bytes = static_cast<std::uint32_t>(name.size()),
                      .n_tokens = static_cast<std::uint32_t>(texts.size())});
    names += name;
    tokens.insert(tokens.end(), texts.begin(), texts.end());
  });
  StoreContents contents;
  contents.kind = kKind;
  contents.tokenizer = tokenizer;
  contents.sections = {make_section("spaces", std::span<const SpaceRecord>(spaces)),
                       make_section("names", std::span<const char>(names)),
                       make_section("tokens", std::span<const Token>(tokens))};
  PrivateFileOps ops;  // it holds texts
  return save_store(path, contents, ops);
}

Status load_memory(const std::string& path, const TokenizerId& tokenizer, SuffixMemory& memory) {
  const Result<std::unique_ptr<StoreFile>> file = StoreFile::open(path, kKind);
  if (!file.ok()) return file.status();
  OUTRIDER_RETURN_IF_ERROR((*file)->check_tokenizer(tokenizer));
  Sections sections;
  OUTRIDER_RETURN_IF_ERROR(read_sections(**file, sections));
  if (!sound(sections, tokenizer.n_vocab)) {
    return data_loss("'" + path + "' holds no texts that could have been remembered");
  }
  const char* name = sections.names.data();
  const Token* token = sections.tokens.data();
  for (const SpaceRecord& space : sections.spaces) {
    memory.add_all({name, space.name_bytes}, {token, space.n_tokens});
    token += space.n_tokens;
    name += space.name_bytes;
  }
  return Status();
}

Status recall_memory(const std::string& path, const TokenizerId& tokenizer, SuffixMemory& memory,
                     std::chrono::milliseconds patience) {
  const Status loaded = load_memory(path, tokenizer, memory);
  if (!is_damage(loaded)) return loaded;
  const FileLock lock(lock_of(path), FileLock::for_at_most(patience, path));
  if (lock.gave_up()) return loaded;
  return load_or_set_aside(path, tokenizer, memory);  // somebody may have replaced it meanwhile
}

Status add_to_file(const SuffixMemory& memory, const TokenizerId& tokenizer,
                   const std::string& path, std::chrono::milliseconds patience) {
  const FileLock lock(lock_of(path), FileLock::for_at_most(patience, path));
  if (lock.gave_up()) return locked_by_another(path, lock_of(path));
  SuffixMemory merged(memory.stats().max_tokens);
  const Status loaded = load_or_set_aside(path, tokenizer, merged);
  if (!loaded.ok()) {
    // One that is there and may be read another time stays.
    std::error_code unknown;
    if (std::filesystem::exists(path, unknown) || unknown) return loaded;
    merged.clear();
  }
  // add_all() ends a text that was added while memory ran out.
  const auto add = [&merged](std::string_view name, std::span<const Token> texts) {
    merged.add_all(name, texts);
  };
  if (loaded.ok()) {
    memory.for_each_new(add);
  } else {
    memory.for_each_space(add);
  }
  OUTRIDER_RETURN_IF_ERROR(save_memory(merged, tokenizer, path));
  return loaded.ok() || loaded.code() == StatusCode::kNotFound ? Status() : loaded;
}

Status SuffixMemory::recall(const std::string& path, const TokenizerId& tokenizer) {
  OUTRIDER_RETURN_IF_ERROR(recall_memory(path, tokenizer, *this));
  mark_known();
  return Status();
}

Status SuffixMemory::keep(const std::string& path, const TokenizerId& tokenizer) const {
  return add_to_file(*this, tokenizer, path);
}

}  // namespace outrider
