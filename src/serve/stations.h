// Stations: which targets are at work, and what is on its way to them.
//
// The current station is the one that new requests get; there may be none. Older ones stay until
// their last request has ended. What was loaded for a station, and what is to be taken from it, is
// put here as a change, by the loading thread or a client; the decode thread takes the changes out
// and carries them out between two steps.
//
// Invariant: the current station is the last one of all().
//
// Any thread; REQUIRES throughout: the runtime's mutex (serve/runtime_shared.h). The stations
// themselves are the decode thread's.
#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "draft/base/lookup_drafter.h"
#include "engine/idle_texts.h"
#include "serve/loader.h"
#include "serve/station.h"

namespace outrider {

using StationPtr = std::shared_ptr<Station>;

// A draft (null: take away the one that is there), a file that was opened, or one that is to go.
struct StationChange {
  StationPtr station;  // null: all
  std::variant<std::unique_ptr<Draft>, OpenedDrafterFile, DrafterFile> what;
  std::string reason;  // for the requests that lose something
};

class Stations {
 public:
  const StationPtr& current() const { return current_; }  // may be null
  const std::vector<StationPtr>& all() const { return all_; }

  // What the idle sequences of the current station hold, as of its last change.
  const IdleTexts& idle() const { return idle_; }
  // They have changed: a request has taken one, or given one back. Not the current one's: no
  // effect.
  void note_idle(const Station& station);

  // New requests get `station` from now on. May throw std::bad_alloc, with nothing changed.
  void put_in_service(StationPtr station);
  // There is none for new requests any more. What runs is not touched.
  void take_out_of_service();

  // A request was made for `station`, which may have been replaced meanwhile, and be at its end.
  // May throw std::bad_alloc, with nothing changed.
  void keep(const StationPtr& station);
  // Takes out those that are not current and that nobody needs; freeing them takes a while.
  std::vector<StationPtr> release(const std::function<bool(const Station&)>& needed);

  // May throw std::bad_alloc, with nothing changed.
  void add(StationChange change) { changes_.push_back(std::move(change)); }
  void add_first(StationChange change) { changes_.push_front(std::move(change)); }
  bool has_changes() const { return !changes_.empty(); }
  // The oldest. Nothing: there is none.
  std::optional<StationChange> take_change();

  std::string check_integrity() const;

 private:
  StationPtr current_;
  std::vector<StationPtr> all_;
  IdleTexts idle_;
  std::deque<StationChange> changes_;
};

}  // namespace outrider
