#include "serve/stations.h"

#include <algorithm>
#include <utility>

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

void Stations::keep(const StationPtr& station) {
  if (std::find(all_.begin(), all_.end(), station) == all_.end()) {
    all_.insert(all_.begin(), station);
  }
}

std::vector<StationPtr> Stations::release(const std::function<bool(const Station&)>& needed) {
  std::vector<StationPtr> done;
  for (const StationPtr& station : all_) {
    if (station != current_ && !needed(*station)) done.push_back(station);
  }
  for (const StationPtr& station : done) std::erase(all_, station);
  return done;
}

std::optional<StationChange> Stations::take_change() {
  if (changes_.empty()) return std::nullopt;
  std::optional<StationChange> change = std::move(changes_.front());
  changes_.pop_front();
  return change;
}

std::string Stations::check_integrity() const {
  if (current_ && (all_.empty() || all_.back() != current_)) {
    return "the current target is not at work";
  }
  return "";
}

}  // namespace outrider
