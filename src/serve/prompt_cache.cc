#include "serve/prompt_cache.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <optional>
#include <string_view>
#include <system_error>
#include <utility>

#include "base/numbers.h"
#include "base/random.h"
#include "serve/runtime_options.h"
#include "store/part_files.h"

namespace outrider {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kExtension = ".prompt";
constexpr std::size_t kHashDigits = 16;

struct Found {
  fs::path path;
  fs::file_time_type written;
  std::uint64_t bytes = 0;
};

// Whether a name is one that we give: the hashes of an identity and a text, or, in earlier
// versions, of the text alone. What else ends like that is somebody's own.
bool is_ours(const fs::path& path) {
  const std::string stem = path.stem().string();
  if (path.extension() != kExtension) return false;
  if (stem.size() != kHashDigits && stem.size() != 2 * kHashDigits + 1) return false;
  for (std::size_t i = 0; i < stem.size(); ++i) {
    const bool is_digit = std::string_view("0123456789abcdef").find(stem[i]) != std::string::npos;
    if (i == kHashDigits ? stem[i] != '-' : !is_digit) return false;
  }
  return true;
}

// The files of all models in the folder, written last first.
std::vector<Found> files_in(const std::string& folder) {
  std::vector<Found> files;
  std::error_code error;
  for (fs::directory_iterator at(folder, error), end; !error && at != end; at.increment(error)) {
    if (!is_ours(at->path())) continue;
    std::error_code gone;
    Found found{.path = at->path(), .written = fs::last_write_time(at->path(), gone)};
    if (!gone) found.bytes = fs::file_size(at->path(), gone);
    if (!gone) files.push_back(std::move(found));
  }
  std::sort(files.begin(), files.end(), [](const Found& a, const Found& b) {
    return a.written != b.written ? a.written > b.written : a.path < b.path;
  });
  return files;
}

std::string digits(std::uint64_t hash) {
  char text[kHashDigits + 1];
  std::snprintf(text, sizeof text, "%016llx", static_cast<unsigned long long>(hash));
  return text;
}

std::string name_of(std::string_view identity) {
  std::uint64_t hash = mix64(identity.size());
  for (const char c : identity) hash = mix64(hash ^ static_cast<unsigned char>(c));
  return digits(hash);
}

// Whether the name of a file of ours says whose it is.
bool names_identity(const fs::path& path) {
  return path.stem().string().size() == 2 * kHashDigits + 1;
}

// What a process that was killed in the middle of a save left counts for no limit.
void remove_left(const std::string& folder) {
  remove_left_parts(folder, [](std::string_view name) { return name.ends_with(kExtension); });
}

bool begins_with(const std::vector<Token>& text, const std::vector<Token>& beginning) {
  return beginning.size() <= text.size() &&
         std::equal(beginning.begin(), beginning.end(), text.begin());
}

const IdleTexts::Entry* find_idle(const Engine& engine, SeqId seq) {
  for (const IdleTexts::Entry& entry : engine.idle().entries()) {
    if (entry.seq == seq) return &entry;
  }
  return nullptr;
}

// Whether `text` still lies in its sequence: copies of an entry share their text, so one of the
// same address was not used in between.
bool is_unused(const Engine& engine, const IdleTexts::Entry& text) {
  const IdleTexts::Entry* const now = find_idle(engine, text.seq);
  return now != nullptr && &now->text() == &text.text();
}

double mebibytes(std::uint64_t bytes) { return static_cast<double>(bytes) / (1 << 20); }

}  // namespace

// Files count as written when a save began, by the clock that stamps them, each a nanosecond before
// the one that was used after it: that clock goes in steps of milliseconds, in which many are
// written, and their order must last.
class PromptCache::Stamps {
 public:
  // `rank`: how many were used after it. False: there is none, or it is not ours to touch.
  bool stamp(const std::string& path, std::size_t rank) {
    if (::utimensat(AT_FDCWD, path.c_str(), nullptr, 0) != 0) return false;
    std::error_code error;  // then it is as one that is written now
    if (!began_) {
      const fs::file_time_type now = fs::last_write_time(path, error);
      if (error) return true;
      began_ = now;
    }
    fs::last_write_time(path, *began_ - std::chrono::nanoseconds(rank), error);
    return true;
  }

 private:
  std::optional<fs::file_time_type> began_;
};

PromptCache::PromptCache(std::string folder, std::uint64_t most_bytes, std::string identity)
    : folder_(std::move(folder)),
      most_bytes_(most_bytes),
      identity_(std::move(identity)),
      name_of_identity_(name_of(identity_)) {
  if (folder_.empty() || !identity_.empty()) return;
  notes_.push_back(
      "prompt_cache has no effect on this target: what it reads cannot be saved, since it is in "
      "another process or on workers, or its files were changed while it was loaded");
}

// One file per text: what is saved again is the same file.
std::string PromptCache::path_of(const std::vector<Token>& tokens) const {
  std::uint64_t hash = mix64(tokens.size());
  for (const Token token : tokens) hash = mix64(hash + static_cast<std::uint64_t>(token));
  const std::string name = name_of_identity_ + "-" + digits(hash) + std::string(kExtension);
  return (fs::path(folder_) / name).string();
}

// Of this target, as far as can be told without reading all of it.
bool PromptCache::is_own(const std::string& path) {
  bool own = false;
  if (names_identity(path)) {
    own = fs::path(path).filename().string().starts_with(name_of_identity_);
  } else {
    const Result<std::string> identity = load_prompt_identity(path);
    if (!identity.ok()) {
      notes_.push_back("prompt_cache: " + identity.status().message() + "; it is ignored");
      return false;
    }
    own = *identity == identity_;
  }
  n_of_others_ += own ? 0 : 1;
  return own;
}

// Or it would lie there twice once it is saved. Where that cannot be, it does.
void PromptCache::give_new_name(std::string& path, const std::vector<Token>& tokens) const {
  if (names_identity(path)) return;
  std::string name = path_of(tokens);
  std::error_code error;
  fs::rename(path, name, error);
  if (!error) path = std::move(name);
}

// False: there is no place for more.
bool PromptCache::adopt(Engine& engine, std::string path) {
  Result<SavedPrompt> prompt = load_saved_prompt(path, most_bytes_);
  if (!prompt.ok()) {
    notes_.push_back("prompt_cache: " + prompt.status().message() + "; it is ignored");
    return true;
  }
  if (prompt->target.identity != identity_) {  // of the same hash
    notes_.push_back("prompt_cache: '" + path +
                     "' is of another model, other settings or another build; it is ignored");
    return true;
  }
  const std::vector<Token>& tokens = prompt->target.tokens;
  give_new_name(path, tokens);
  for (const IdleTexts::Entry& entry : engine.idle().entries()) {
    if (begins_with(entry.text(), tokens)) return true;  // a longer one is there
  }
  const Result<SeqId> seq = engine.restore_idle(tokens, prompt->target.bytes);
  if (seq.ok()) {
    put_back_.push_back(*find_idle(engine, *seq));
    SavedState& draft = prompt->draft;
    if (!draft.bytes.empty() && begins_with(tokens, draft.tokens)) {
      waiting_.push_back({.text = *find_idle(engine, *seq), .draft = std::move(draft)});
    }
    return true;
  }
  if (seq.status().code() == StatusCode::kResourceExhausted) return false;
  notes_.push_back("prompt_cache: '" + path + "' is ignored: " + seq.status().message());
  return true;
}

void PromptCache::restore(Engine& engine) {
  if (!used()) return;
  remove_left(folder_);
  keep_to_limit();  // which may be lower than when they were written
  bool any = false;
  for (const Found& found : files_in(folder_)) {
    try {
      if (!is_own(found.path.string())) continue;
      any = true;
      if (!adopt(engine, found.path.string())) return;
    } catch (const std::bad_alloc&) {
      return;
    }
  }
  if (any || n_of_others_ == 0) return;
  notes_.push_back("prompt_cache: nothing in '" + folder_ +
                   "' is of this model, build and settings (" + std::to_string(n_of_others_) +
                   " of others)");
}

void PromptCache::restore(Engine& engine, Drafter& drafter, const std::string& identity) {
  for (const Waiting& waiting : waiting_) {
    if (identity.empty() || waiting.draft.identity != identity) continue;
    if (!is_unused(engine, waiting.text)) continue;
    // What cannot be put back is read again.
    static_cast<void>(
        drafter.restore(waiting.text.seq, waiting.draft.bytes, waiting.draft.tokens.size()));
  }
  waiting_ = {};  // its memory, too
}

void PromptCache::drop_used(const Engine& engine) {
  std::erase_if(waiting_,
                [&engine](const Waiting& waiting) { return !is_unused(engine, waiting.text); });
  std::erase_if(put_back_,
                [&engine](const IdleTexts::Entry& text) { return !is_unused(engine, text); });
}

std::size_t PromptCache::waiting_bytes() const {
  std::size_t bytes = 0;
  for (const Waiting& waiting : waiting_) bytes += waiting.draft.bytes.size();
  return bytes;
}

// Whether its file has all there is to save: it was put back and is unused, so no draft has read
// more of it than that file has. Then it counts as written now.
bool PromptCache::lies_there(const Engine& engine, const IdleTexts::Entry& text, std::size_t rank,
                             Stamps& stamps) const {
  const bool unused = std::ranges::any_of(put_back_, [&](const IdleTexts::Entry& entry) {
    return entry.seq == text.seq && is_unused(engine, entry);
  });
  return unused && stamps.stamp(path_of(text.text()), rank);
}

// The draft's part is left out where the file would have more than `most_bytes` with it. Nothing:
// the text cannot be saved.
std::optional<SavedPrompt> PromptCache::copy_of(Engine& engine, const IdleTexts::Entry& text,
                                                Drafter* drafter, const std::string& draft_identity,
                                                std::uint64_t most_bytes) const {
  Result<std::vector<std::uint8_t>> bytes = engine.save_idle(text.seq);
  if (!bytes.ok()) return std::nullopt;
  SavedPrompt prompt;
  prompt.target = {.identity = identity_, .tokens = text.text(), .bytes = std::move(*bytes)};
  std::size_t n_drafted = 0;
  if (drafter != nullptr && !draft_identity.empty()) {
    Result<std::vector<std::uint8_t>> draft = drafter->save(text.seq, &n_drafted);
    if (draft.ok() && n_drafted > 0 && n_drafted <= text.text().size()) {
      prompt.draft = {
          .identity = draft_identity, .tokens = text.text(), .bytes = std::move(*draft)};
      prompt.draft.tokens.resize(n_drafted);
    }
  }
  if (bytes_of_prompt(prompt) > most_bytes) prompt.draft = {};
  return prompt;
}

Status PromptCache::check_size(const IdleTexts::Entry& text, std::uint64_t bytes) const {
  if (bytes <= most_bytes_) return Status();
  return resource_exhausted("a text of " + std::to_string(text.text().size()) +
                            " tokens is not kept: it takes " + fixed(mebibytes(bytes), 1) +
                            " MiB, and all texts may have " + fixed(mebibytes(most_bytes_), 1) +
                            " MiB (prompt_cache_mib)");
}

// The one used last first: it is there when the process is killed in the middle, and what finds no
// place beside it is not copied.
Status PromptCache::save(Engine& engine, Drafter* drafter, const std::string& draft_identity) {
  Status result;
  if (!used()) return result;
  (void)make_private_folder(folder_);  // somebody may have removed it
  const std::vector<IdleTexts::Entry>& texts = engine.idle().entries();
  const auto of_rank = [&texts](std::size_t rank) { return texts[texts.size() - 1 - rank]; };
  Stamps stamps;
  // Before anything is written, which removes the oldest files.
  for (std::size_t rank = 0; rank < texts.size(); ++rank) {
    (void)lies_there(engine, of_rank(rank), rank, stamps);
  }
  std::uint64_t left = most_bytes_;
  for (std::size_t rank = 0; rank < texts.size(); ++rank) {
    const IdleTexts::Entry entry = of_rank(rank);
    if (entry.text().size() < kLeastTokens) continue;
    const std::string path = path_of(entry.text());
    try {
      if (lies_there(engine, entry, rank, stamps)) {
        std::error_code gone;
        const std::uint64_t bytes = fs::file_size(path, gone);
        if (!gone) left -= std::min(left, bytes);
        continue;
      }
      std::uint64_t bytes = engine.saved_bytes(entry.seq);
      Status size = check_size(entry, bytes);
      std::optional<SavedPrompt> prompt;
      if (size.ok() && bytes <= left) {
        prompt = copy_of(engine, entry, drafter, draft_identity, left);
        if (!prompt) continue;
        bytes = bytes_of_prompt(*prompt);
        size = check_size(entry, bytes);
      }
      if (!size.ok()) {
        if (result.ok()) result = size;
        continue;
      }
      if (bytes > left) break;  // as keep_to_limit() does
      const Status written = write_prompt(path, *prompt);
      if (written.ok()) {
        left -= bytes;
        (void)stamps.stamp(path, rank);
      }
      if (result.ok()) result = written;
    } catch (const std::bad_alloc&) {
      continue;
    }
    keep_to_limit();
  }
  return result;
}

void PromptCache::keep_to_limit() {
  std::uint64_t bytes = 0;
  for (const Found& found : files_in(folder_)) {
    std::error_code error;
    if (bytes + found.bytes <= most_bytes_) {
      bytes += found.bytes;
    } else {
      fs::remove(found.path, error);
      // One that is larger than the limit by itself is no reason to lose those before it.
      if (found.bytes <= most_bytes_) bytes = most_bytes_;
    }
  }
}

}  // namespace outrider
