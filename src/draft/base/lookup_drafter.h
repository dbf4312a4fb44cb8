// LookupDrafter: a drafter that needs no model. It guesses from the text itself, from files, or
// from what the target found likely.
//
// Each has a row in the table of all drafters (draft/drafter_table.h), which says how it is made,
// how its files are opened, how options call them, and how it is described. So no other code names
// it. A new one is: its own files, with a LookupKind beside the class; and a row of the table.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "base/status.h"
#include "draft/base/drafter.h"
#include "draft/base/drafter_kind.h"
#include "draft/base/text_memory.h"
#include "store/tokenizer_id.h"

namespace outrider {

// A file of a drafter, as a client names it.
struct DrafterFile {
  std::string drafter;  // the name of one that takes files
  std::string path;
  // Of one of the drafter's options (FileOption), where these have tiers; else empty. Empty also
  // for "whichever" where a file is named that is there already.
  std::string tier = {};

  bool operator==(const DrafterFile&) const = default;
};

// What such a file holds once it is open. Immutable; any thread.
class LookupFile {
 public:
  virtual ~LookupFile() = default;
  virtual std::uint64_t file_bytes() const = 0;
  // That it takes: 0 for a file that is mapped and not read as a whole.
  virtual std::uint64_t memory_bytes() const = 0;
  // That was found so far, see StoreFile::damage().
  virtual Status damage() const { return Status(); }
};

struct OpenedDrafterFile {
  DrafterFile file;
  std::shared_ptr<const LookupFile> contents;  // not null
};

class LookupDrafter : public Drafter {
 public:
  // Of what it holds for its sequences; files and remembered texts are counted by themselves.
  virtual std::size_t memory_bytes() const = 0;

  // Files that come and go between two calls of draft(); what is known of the sequences stays. A
  // file takes the place of one of the same path (of the same tier, where there are tiers). May
  // throw std::bad_alloc, with nothing changed. REQUIRES: it was opened as its LookupKind says
  virtual void add_file(const OpenedDrafterFile& /*file*/) {}
  // `reason`: for the sequences that lose it. Needs no memory. Unknown files are ignored.
  virtual void remove_file(const DrafterFile& /*file*/, std::string /*reason*/) {}

  // Where finished texts are kept, each for later requests of its namespace, which see it from
  // their next step on. Null: it remembers none. The thread's that drafts.
  virtual TextMemory* memory() const { return nullptr; }
};

// What a lookup drafter is made for.
struct LookupSettings {
  std::int32_t n_vocab = 0;      // of the target
  std::int32_t n_sequences = 0;  // likewise
  // Tokens of finished texts that it remembers, if it can; 0, or as TextMemory allows.
  std::size_t remember_tokens = 0;
};

// When a drafter guesses for a request that names none, under the coupled rule.
enum class Unasked { kNever, kWithFiles, kAlways };

// How interfaces call the files of a kind of drafter. All texts are static storage.
struct FileOption {
  std::string_view name;  // in JSON: "ngram_static"; the command has '-' for '_'
  std::string_view help;
  // As what the drafter uses the file: it holds one for each tier. Empty: it takes several, and
  // uses them alike.
  std::string_view tier = {};
  std::string_view tier_help = {};  // what such a file holds, a phrase
};

// The files that a kind of drafter takes.
struct LookupFiles {
  // Opens one and checks that it is for this tokenizer. Errors name the file.
  Result<std::shared_ptr<const LookupFile>> (*open)(const std::string& path,
                                                    const TokenizerId& tokenizer) = nullptr;
  // At least one; either one without a tier, or each with another tier. The first is meant where a
  // new file is given without a tier.
  std::span<const FileOption> options = {};
  std::string_view one = {};   // "a file of 'outrider ngram create'"
  std::string_view many = {};  // "n-gram files"
  // The command that makes one file of two, for those who have two for a tier.
  std::string_view join_command = {};

  constexpr bool has_tiers() const { return !options.front().tier.empty(); }
};

// An entry of the table. All texts are static storage.
struct LookupKind {
  std::string_view name;
  std::string_view help;  // what it guesses from, a phrase
  GuessesFrom from = GuessesFrom::kText;
  Unasked unasked = Unasked::kNever;
  bool remembers = false;                 // it can keep finished texts (LookupDrafter::memory)
  ShapeUse shape = {};                    // by default its guesses are chains
  std::optional<LookupFiles> files = {};  // not given: it takes none
  // May throw std::bad_alloc.
  std::unique_ptr<LookupDrafter> (*make)(const LookupSettings& settings) = nullptr;
};

}  // namespace outrider
