// PromptCache: texts that a target has read, kept in a folder over restarts.
//
// When a target's time ends, what its idle sequences hold is written, one file each
// (serve/saved_prompt.h); when it is opened again, the texts used last are put back. So the first
// request after a restart finds what the last one before it found. Of all files in the folder, of
// all models, those written longest ago are removed until they keep to the limit.
//
//     <hash of the target's identity>-<hash of the text>.prompt      16 hexadecimal digits each
//
// So a file of another model, other settings or another build is told by its name and never read:
// models may share a folder, and a file may have gigabytes. A note says so where there are none but
// such. (Versions up to 0.1.0 gave names of one hash. Of such a file the beginning is read, and the
// target's own gets its new name.) One that is damaged is named in a note and ignored; each is
// removed like any other. A text that the model cannot save is passed over.
//
// Files are read while a target is opened only. What a draft had read of a text waits in memory
// until a draft is attached, beside requests that run, or the text is used.
//
// The thread's that has the engine. Nothing here fails: what cannot be kept is read again. Tested
// by prompt_cache_test.cc, and on llama.cpp by backend/prompt_cache_model_test.cc.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "engine/engine.h"
#include "serve/saved_prompt.h"

namespace outrider {

class PromptCache {
 public:
  // Texts below this are read faster than their files.
  static constexpr std::size_t kLeastTokens = 32;

  // `folder` empty: nothing is kept. `identity`: of the target (Target::state_identity); empty: its
  // state cannot be kept, which a note says.
  PromptCache(std::string folder, std::uint64_t most_bytes, std::string identity);

  // Puts texts into empty idle sequences of the engine, the newest first. What killed processes
  // left half written is removed, and so is what lies there beyond the limit.
  void restore(Engine& engine);

  // A draft model was attached: it gets its part of the texts that were put back, as far as nobody
  // has used them since. `identity`: Draft::state_identity; empty: it gets nothing. Reads no file:
  // a draft is attached while requests run.
  void restore(Engine& engine, Drafter& drafter, const std::string& identity);

  // After a step: what waits for a draft is given back where its text was used since. Never throws.
  void drop_used(const Engine& engine);
  // What waits for a draft.
  std::size_t waiting_bytes() const;

  // Writes what the idle sequences hold, the text used last first, as far as the limit has room:
  // the others are not copied. `drafter` may be null. The file of a text that nobody used since it
  // was put back stays as it is, with the draft's part, whether a draft was attached or not; it
  // counts as written now. Error: that of the first file that could not be written, or
  // kResourceExhausted for a text that is larger than the limit by itself, with both; the others
  // are written all the same.
  Status save(Engine& engine, Drafter* drafter, const std::string& draft_identity);

  // What was ignored, and why.
  const std::vector<std::string>& notes() const { return notes_; }

 private:
  // What a draft had read of a text that was put back, until one is attached.
  struct Waiting {
    IdleTexts::Entry text;  // as it was put back: one that was used since is another object
    SavedState draft;
  };

  bool used() const { return !folder_.empty() && !identity_.empty(); }
  class Stamps;
  bool lies_there(const Engine& engine, const IdleTexts::Entry& text, std::size_t rank,
                  Stamps& stamps) const;
  std::optional<SavedPrompt> copy_of(Engine& engine, const IdleTexts::Entry& text, Drafter* drafter,
                                     const std::string& draft_identity,
                                     std::uint64_t most_bytes) const;
  Status check_size(const IdleTexts::Entry& text, std::uint64_t bytes) const;
  bool is_own(const std::string& path);
  bool adopt(Engine& engine, std::string path);
  void give_new_name(std::string& path, const std::vector<Token>& tokens) const;
  std::string path_of(const std::vector<Token>& tokens) const;
  void keep_to_limit();

  std::string folder_;
  std::uint64_t most_bytes_;
  std::string identity_;
  std::string name_of_identity_;
  std::size_t n_of_others_ = 0;  // files in the folder
  std::vector<std::string> notes_;
  std::vector<Waiting> waiting_;
  std::vector<IdleTexts::Entry> put_back_;  // as Waiting::text
};

}  // namespace outrider
