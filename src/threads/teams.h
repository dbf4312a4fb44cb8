// Teams: the process' teams of threads, one for each computation that goes on at a time.
//
// A target and its draft, which compute one after the other, get the same threads; two requests
// that compute at once on two models get two teams, and each the one that its thread had last.
#pragma once

#include <cstddef>
#include <memory>
#include <mutex>
#include <vector>

#include "threads/team.h"

namespace outrider::threads {

class Teams {
 public:
  // Made for the first that asks, gone with the last that holds it, and all threads with it.
  static std::shared_ptr<Teams> shared();

  // A team for as long as it lives. No longer than the Teams that it is from.
  class Borrowed {
   public:
    explicit Borrowed(Teams& from, Cores cores = Cores::kAsked) : from_(from), team_(from.take()) {
      team_->compute_on(cores);
    }
    ~Borrowed() { from_.give_back(std::move(team_)); }
    Borrowed(const Borrowed&) = delete;
    Borrowed& operator=(const Borrowed&) = delete;
    Team& operator*() const { return *team_; }

   private:
    Teams& from_;
    std::unique_ptr<Team> team_;
  };

 private:
  std::unique_ptr<Team> take();
  void give_back(std::unique_ptr<Team> team);

  std::mutex mutex_;
  std::size_t n_made_ = 0;
  std::vector<std::unique_ptr<Team>> idle_;  // by when they came back
};

}  // namespace outrider::threads
