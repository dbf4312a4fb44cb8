#include "serve/drafter_notes.h"

#include "draft/drafter_table.h"

namespace outrider {

DrafterNotes::DrafterNotes(const std::vector<AddedDrafter>& added) {
  std::vector<std::string_view> names(kDrafterNames.begin(), kDrafterNames.end());
  for (const AddedDrafter& drafter : added) names.push_back(drafter.name);
  for (const std::string_view name : names) {
    notes_.emplace_back().name = name;
    notes_.back().totals.name = name;
  }
}

DrafterStatus* DrafterNotes::find(std::string_view drafter) {
  for (DrafterStatus& note : notes_) {
    if (note.name == drafter) return &note;
  }
  return nullptr;
}

void DrafterNotes::note(const Station& station) {
  none_attached();
  for (const Drafter* drafter : station.engine().drafters()) {
    DrafterStatus* const note = drafter == nullptr ? nullptr : find(drafter->name());
    if (note == nullptr) continue;
    note->attached = true;
    note->state = ModelState::kReady;
    note->memory = station.remembered_by(drafter->name());
    note->memory_bytes = station.memory_of(drafter->name());
    if (note->memory) note->memory_bytes += note->memory->memory_bytes;
  }
}

void DrafterNotes::none_attached() {
  for (DrafterStatus& note : notes_) {
    note.attached = false;
    note.state = ModelState::kAbsent;
    note.memory.reset();
    note.memory_bytes = 0;
  }
}

void DrafterNotes::count(const Completion& completion) {
  for (const DrafterStats& stats : completion.speculation.drafters) {
    DrafterStatus* const note = find(stats.name);
    if (note != nullptr) note->totals.add(stats);
  }
}

}  // namespace outrider
