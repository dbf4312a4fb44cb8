// Station: one target at work, with the draft that was loaded for it, and with the drafters that
// need no model and so are there from the start.
//
// The decode thread's, except for what is said to be for any thread. A station that new requests no
// longer get stays until its last request has ended.
#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "draft/base/lookup_drafter.h"
#include "engine/engine.h"
#include "serve/completion_result.h"
#include "serve/experiences.h"
#include "serve/loader.h"
#include "serve/prompt_cache.h"
#include "serve/runtime_options.h"
#include "serve/runtime_status.h"

namespace outrider {

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

  // The target's, and what else there is to say of it. Before it is put in service.
  std::vector<std::string> notes() const;

  // engine().cancel() is for any thread that keeps restart() from running meanwhile.
  Engine& engine() { return *engine_; }
  const Engine& engine() const { return *engine_; }
  const Draft* draft() const { return draft_.get(); }  // null: there is none

  // Puts `draft` (may be null: none) in the place of the one that is there. Requests that the old
  // one guessed for go on plain and say `reason`. Errors: Engine::attach()'s, when there is none
  // afterwards; a place is kept for it, so only where others took all of them. May throw
  // std::bad_alloc; set_draft(nullptr, ...) then takes away what is half in place, and fails never.
  Status set_draft(std::unique_ptr<Draft> draft, const std::string& reason);

  // A file that its drafter uses from now on, see LookupDrafter::add_file; for all requests, the
  // running ones too. May throw std::bad_alloc, with nothing changed.
  void add_file(const OpenedDrafterFile& file);
  // Running requests that lose it say `reason`. Unknown files are ignored. Needs no memory.
  void remove_file(const DrafterFile& file, std::string reason);

  // DrafterStatus::memory_bytes, without its files' (DrafterFileStatus) and without what it
  // remembers. 0 for names that are not attached.
  std::uint64_t memory_of(std::string_view drafter) const;
  // What the drafter remembers of finished texts. Not given: it remembers none.
  std::optional<MemoryStatus> remembered_by(std::string_view drafter) const;

  // Whether finished texts are remembered.
  bool remembers() const { return memory() != nullptr; }
  // Keeps a finished text for later requests of its namespace, which see it from their next step
  // on. REQUIRES: remembers(). Never throws.
  Remembered remember(std::string name_space, std::span<const Token> text);

  // Between steps: keeps what was learned of its drafters for later runs, where enough was said
  // since to be worth it, and gives back what nobody can use any more. Never throws.
  void after_step();

  // Keeps all that was learned for later runs, once; the end does it otherwise. For a runtime that
  // is at its end and is not freed: no step comes any more. Never throws.
  void keep_learned();

  // After an exception out of the engine: its requests are gone, models and draft are as new, and
  // nothing is remembered.
  void restart();

 private:
  void make_engine();
  void introduce_draft();           // to the planner: what is known of it before it is asked
  TextMemory* memory() const;       // null: no drafter remembers texts
  std::string memory_file() const;  // empty: remembered texts are not kept
  void recall_texts();
  Status keep_texts() const;
  void tell_unless_kept(const std::function<Status()>& keep) const;
  void tell_of_experience(const Status& kept);
  LookupDrafter* find(std::string_view drafter) const;

  const EngineOptions options_;
  const std::shared_ptr<Target> target_;
  mutable std::once_flag tokenizer_once_;
  mutable TokenizerId tokenizer_;
  std::unique_ptr<Draft> draft_;
  std::vector<std::unique_ptr<LookupDrafter>> lookups_;  // of the table, then the added ones
  Experiences experiences_;
  PromptCache prompts_;
  const std::string remember_folder_;
  const std::function<void(const Status&)> not_kept_;
  bool told_of_experience_ = false;
  bool kept_ = false;               // keep_learned() has been called
  std::string memory_note_;         // why no texts were recalled; empty: there is nothing to say
  std::unique_ptr<Engine> engine_;  // ends before what it uses
};

}  // namespace outrider
