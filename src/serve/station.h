// Station: one target at work, with the draft that was loaded for it, and with the drafters that
// need no model and so are there from the start.
//
// The decode thread's, except for what is said to be for any thread. A station that new requests no
// longer get stays until its last request has ended.
#pragma once

#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>

#include "draft/ngram/ngram_drafter.h"
#include "draft/recycle/recycle.h"
#include "draft/suffix/suffix_drafter.h"
#include "draft/suffix/suffix_memory.h"
#include "engine/engine.h"
#include "serve/drafter_file.h"
#include "serve/experiences.h"
#include "serve/loader.h"
#include "serve/runtime.h"

namespace outrider {

// What the planner of an engine needs to know of its target.
void set_planning(const Target& target, EngineOptions& options);

class Station {
 public:
  Station(std::shared_ptr<Target> target, const RuntimeOptions& options);
  ~Station();
  Station(const Station&) = delete;
  Station& operator=(const Station&) = delete;

  // Immutable; any thread.
  const std::shared_ptr<Target>& target() const { return target_; }

  // Of the target's vocabulary; any thread. The first call reads all of it (milliseconds).
  const TokenizerId& tokenizer() const;

  // engine().cancel() is for any thread that keeps restart() from running meanwhile.
  Engine& engine() { return *engine_; }
  const Engine& engine() const { return *engine_; }
  const Draft* draft() const { return draft_.get(); }

  // Puts `draft` (may be null: none) in the place of the one that is there. Requests that the old
  // one guessed for go on plain and say `reason`.
  void set_draft(std::unique_ptr<Draft> draft, const std::string& reason);

  // A file that its drafter uses from now on, in place of one of the same path (ngram-cache: of the
  // same tier); for all requests, the running ones too. May throw std::bad_alloc, with nothing
  // changed.
  void add_file(const OpenedDrafterFile& file);
  // Running requests that lose it say `reason`. Unknown files are ignored. Needs no memory.
  void remove_file(const DrafterFile& file, std::string reason);

  // DrafterStatus::memory_bytes, without its files' (DrafterFileStatus). 0 for names that are not
  // attached.
  std::uint64_t memory_of(std::string_view drafter) const;

  // Keeps a finished text for later requests of its namespace, which see it from their next step
  // on. REQUIRES: memory(). Never throws.
  Remembered remember(std::string name_space, std::span<const Token> text);
  // Not given: nothing is remembered here.
  std::optional<MemoryStatus> memory() const;

  // Keeps what was learned of its drafters for later runs, where enough was said since to be worth
  // it. Between steps.
  void keep_experience() { experiences_.keep_now_and_then(*engine_); }

  // After an exception out of the engine: its requests are gone, models and draft are as new, and
  // nothing is remembered.
  void restart();

 private:
  void make_engine();

  const EngineOptions options_;
  const std::shared_ptr<Target> target_;
  mutable std::once_flag tokenizer_once_;
  mutable TokenizerId tokenizer_;
  std::unique_ptr<Draft> draft_;
  std::optional<SuffixMemory> remembered_;  // outlives suffix_, which looks into it
  SuffixDrafter suffix_;
  NgramDrafter ngrams_;
  RecycleDrafter recycle_;
  Experiences experiences_;
  std::unique_ptr<Engine> engine_;  // ends before what it uses
};

}  // namespace outrider
