// DrafterNotes: what is known of each drafter without asking the decode thread, whose they are: who
// is attached to the current station, what each holds, and what all requests had of it.
//
// Any thread; REQUIRES throughout: the runtime's mutex. Nothing but the constructor and statuses()
// needs memory.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "engine/request.h"
#include "serve/runtime_options.h"
#include "serve/runtime_status.h"
#include "serve/station.h"

namespace outrider {

class DrafterNotes {
 public:
  explicit DrafterNotes(const std::vector<AddedDrafter>& added);

  // Takes down what `station` has attached. Whoever calls must be the one whose station it is.
  void note(const Station& station);
  // No station is current.
  void none_attached();

  // A request has ended.
  void count(const Completion& completion);

  // All that there are, attached or not, without their files and the draft model's state.
  std::vector<DrafterStatus> statuses() const;

 private:
  struct Note {
    bool attached = false;
    std::uint64_t memory_bytes = 0;  // as of its last change, as is the next one
    std::optional<MemoryStatus> memory;
    DrafterStats totals;
  };
  Note& note_of(std::string_view drafter);

  std::vector<std::string_view> names_;  // kDrafterNames, then the added ones
  std::vector<Note> notes_;              // [names_ + 1], the last: any other name
};

}  // namespace outrider
