#include "serve/drafter_notes.h"

#include <algorithm>
#include <string>

#include "draft/base/drafter_plan.h"
#include "draft/lookup_table.h"

namespace outrider {

DrafterNotes::DrafterNotes(const std::vector<AddedDrafter>& added)
    : names_(kDrafterNames.begin(), kDrafterNames.end()) {
  for (const AddedDrafter& drafter : added) names_.push_back(drafter.name);
  notes_.resize(names_.size() + 1);
}

DrafterNotes::Note& DrafterNotes::note_of(std::string_view drafter) {
  const auto found = std::find(names_.begin(), names_.end(), drafter);
  return notes_[static_cast<std::size_t>(found - names_.begin())];
}

void DrafterNotes::note(const Station& station) {
  none_attached();
  for (const Drafter* drafter : station.engine().drafters()) {
    if (drafter == nullptr) continue;
    Note& note = note_of(drafter->name());
    note.attached = true;
    note.memory_bytes = station.memory_of(drafter->name());
    note.memory = station.remembered_by(drafter->name());
  }
}

void DrafterNotes::none_attached() {
  for (Note& note : notes_) note.attached = false;
}

void DrafterNotes::count(const Completion& completion) {
  for (const DrafterStats& d : completion.speculation.drafters) {
    DrafterStats& sum = note_of(d.name).totals;
    sum.calls += d.calls;
    sum.drafts += d.drafts;
    sum.accepted_drafts += d.accepted_drafts;
    sum.drafted += d.drafted;
    sum.accepted += d.accepted;
    sum.foregone += d.foregone;
    sum.draft_ms += d.draft_ms;
    sum.accept_ms += d.accept_ms;
  }
}

std::vector<DrafterStatus> DrafterNotes::statuses() const {
  std::vector<DrafterStatus> list;
  for (std::size_t i = 0; i < names_.size(); ++i) {
    const Note& note = notes_[i];
    DrafterStatus& s = list.emplace_back();
    s.name = names_[i];
    s.attached = note.attached;
    s.memory_bytes = note.attached ? note.memory_bytes : 0;
    s.totals = note.totals;
    s.totals.name = s.name;
    s.state = note.attached ? ModelState::kReady : ModelState::kAbsent;
    if (!note.attached || !note.memory) continue;
    s.memory = note.memory;
    s.memory_bytes += note.memory->memory_bytes;
  }
  return list;
}

}  // namespace outrider
