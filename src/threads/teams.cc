#include "threads/teams.h"

#include <algorithm>

namespace outrider::threads {
namespace {

// The team that this thread had last, if it is still there; only compared, never followed.
const Team*& last_team() {
  static thread_local const Team* team = nullptr;
  return team;
}

}  // namespace

std::shared_ptr<Teams> Teams::shared() {
  static std::mutex mutex;
  static std::weak_ptr<Teams> living;
  const std::lock_guard lock(mutex);
  std::shared_ptr<Teams> teams = living.lock();
  if (teams == nullptr) living = teams = std::make_shared<Teams>();
  return teams;
}

std::unique_ptr<Team> Teams::take() {
  const std::lock_guard lock(mutex_);
  if (idle_.empty()) {
    auto team = std::make_unique<Team>();
    idle_.reserve(n_made_ + 1);  // so that giving back needs no memory
    ++n_made_;
    return team;
  }
  const auto mine = std::find_if(idle_.begin(), idle_.end(),
                                 [](const auto& team) { return team.get() == last_team(); });
  const auto chosen = mine != idle_.end() ? mine : idle_.end() - 1;
  std::unique_ptr<Team> team = std::move(*chosen);
  idle_.erase(chosen);
  return team;
}

void Teams::give_back(std::unique_ptr<Team> team) {
  const std::lock_guard lock(mutex_);
  last_team() = team.get();
  idle_.push_back(std::move(team));
}

}  // namespace outrider::threads
