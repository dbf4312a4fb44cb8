#include "threads/teams.h"

namespace outrider::threads {

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
  std::unique_ptr<Team> team = std::move(idle_.back());
  idle_.pop_back();
  return team;
}

void Teams::give_back(std::unique_ptr<Team> team) {
  const std::lock_guard lock(mutex_);
  idle_.push_back(std::move(team));
}

}  // namespace outrider::threads
