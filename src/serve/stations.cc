#include "serve/stations.h"

#include <algorithm>

namespace outrider {

void Stations::note_idle(const Station& station) {
  if (&station == current_.get()) idle_ = station.engine().idle();
}

void Stations::put_in_service(StationPtr station) {
  IdleTexts idle = station->engine().idle();  // first: it may fail
  all_.push_back(station);
  current_ = std::move(station);
  idle_ = std::move(idle);
}

void Stations::take_out_of_service() {
  current_.reset();
  idle_ = IdleTexts();
}

bool Stations::has(const Station& station) const {
  return std::any_of(all_.begin(), all_.end(),
                     [&station](const StationPtr& one) { return one.get() == &station; });
}

std::list<StationChange> Stations::release(const Station& station) {
  std::list<StationChange> left;
  for (auto it = changes_.begin(); it != changes_.end();) {
    const auto change = it++;
    if (change->station.get() == &station) left.splice(left.end(), changes_, change);
  }
  std::erase_if(all_, [&station](const StationPtr& one) { return one.get() == &station; });
  return left;
}

void Stations::add(StationChange&& change) {
  if (has(*change.station)) changes_.push_back(std::move(change));
}

void Stations::add_for_all(const DrafterFile& gone, const std::string& reason) {
  std::list<StationChange> added;
  for (const StationPtr& station : all_) added.push_back({station, gone, reason});
  changes_.splice(changes_.end(), added);
}

bool Stations::has_changes(const Station& station) const {
  return std::any_of(changes_.begin(), changes_.end(), [&station](const StationChange& change) {
    return change.station.get() == &station;
  });
}

std::optional<StationChange> Stations::take_change(const Station& station) {
  const auto found = std::find_if(
      changes_.begin(), changes_.end(),
      [&station](const StationChange& change) { return change.station.get() == &station; });
  if (found == changes_.end()) return std::nullopt;
  std::optional<StationChange> change = std::move(*found);
  changes_.erase(found);
  return change;
}

std::string Stations::check_integrity() const {
  if (current_ && (all_.empty() || all_.back() != current_)) {
    return "the current target is not at work";
  }
  for (const StationChange& change : changes_) {
    if (!has(*change.station)) return "a change is for a station that was released";
  }
  return "";
}

}  // namespace outrider
