// DrafterNotes: what is known of each drafter without asking the decode thread, whose they are: who
// is attached to the current station, what each holds, and what all requests had of it.
//
// Any thread; REQUIRES throughout: the runtime's mutex. Nothing but the constructor
// needs memory.
#pragma once

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

  // Notes what `station` has attached. Whoever calls must be the one whose station it is.
  void note(const Station& station);
  // No station is current.
  void none_attached();

  // A request has ended.
  void count(const Completion& completion);

  // All that there are, attached or not, without their files and the draft model's state. What they
  // hold is as of their last change.
  const std::vector<DrafterStatus>& statuses() const { return notes_; }

 private:
  DrafterStatus* find(std::string_view drafter);

  std::vector<DrafterStatus> notes_;  // of kDrafterNames, then of the added ones
};

}  // namespace outrider
