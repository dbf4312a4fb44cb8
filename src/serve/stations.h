// Stations: which targets are at work, and what is on its way to them.
//
// The current station is the one that new requests get; there may be none. Older ones stay until
// their last request has ended. What was loaded for a station, and what is to be taken from it, is
// put here as a change, by the loading thread or a client; the station's decode thread takes its
// changes out and carries them out between two steps.
//
// Invariants: the current station is the last one of all(); changes are those of stations of all().
//
// Any thread; REQUIRES throughout: the runtime's mutex (serve/runtime_shared.h). A station itself
// is its decode thread's.
#pragma once

#include <cstdint>
#include <list>
#include <memory>
#include <optional>
#include <string>
#include <utility>
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
  StationPtr station;
  std::variant<std::unique_ptr<Draft>, OpenedDrafterFile, DrafterFile> what;
  std::string reason;      // for the requests that lose something
  std::uint64_t load = 0;  // of a draft: the number of its load
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

  // Whether it is among all().
  bool has(const Station& station) const;
  // A request was made for `station`, which was replaced and released meanwhile: it is among all()
  // again, in front. May throw std::bad_alloc, with nothing changed. REQUIRES: !has(*station)
  void keep(StationPtr station) { all_.insert(all_.begin(), std::move(station)); }
  // Takes `station` out, and returns its changes, to be freed without the mutex. Throws nothing.
  // REQUIRES: it is not current
  std::list<StationChange> release(const Station& station);

  // May throw std::bad_alloc, with nothing changed. Not for a station that was released: no effect.
  void add(StationChange&& change);
  // `gone` is to be taken from all of them. May throw std::bad_alloc, with nothing changed.
  void add_for_all(const DrafterFile& gone, const std::string& reason);
  bool has_changes(const Station& station) const;
  // The oldest of the station. Nothing: there is none.
  std::optional<StationChange> take_change(const Station& station);

  std::string check_integrity() const;

 private:
  StationPtr current_;
  std::vector<StationPtr> all_;
  IdleTexts idle_;
  std::list<StationChange> changes_;  // oldest first
};

}  // namespace outrider
