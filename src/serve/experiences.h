// Experiences: what an engine learned of its drafters, kept from run to run.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "base/status.h"
#include "engine/engine.h"
#include "plan/experience.h"

namespace outrider {

// Where it is kept, for one target. Any thread. Implementations: backend/experience_files.h,
// tests'.
class ExperienceStore {
 public:
  virtual ~ExperienceStore() = default;
  // `drafter` says which one, with all that its speed depends on. Nothing: unknown, or unreadable.
  virtual std::optional<DrafterExperience> load(const std::string& drafter) = 0;
  // Errors: why it is lost, which costs time and nothing else.
  virtual Status save(const std::string& drafter, const DrafterExperience& experience) = 0;
};

// One engine's. The thread's that steps it. What cannot be had or kept is as if it were not known.
class Experiences {
 public:
  // Null: nothing is kept. `store` must outlive this.
  explicit Experiences(ExperienceStore* store) : store_(store) {}

  // `drafter` was attached to the engine: it begins with what was kept of `identity`, and is kept
  // under that name from now on. An empty identity: it is not kept.
  void recall(Engine& engine, const Drafter& drafter, const std::string& identity);
  // The same for one that is the same in all processes: its name says which.
  void recall(Engine& engine, const Drafter& drafter) {
    recall(engine, drafter, std::string(drafter.name()));
  }

  // Saves all that was learned since they were recalled or saved last. The store's error, the first
  // one; the others are saved all the same. Never throws.
  Status keep(const Engine& engine);
  // The same where so much was said since that it is worth it.
  Status keep_now_and_then(const Engine& engine) {
    return engine.planner().steps_noted() - kept_at_ >= kWorthKeeping ? keep(engine) : Status();
  }

 private:
  static constexpr std::int64_t kWorthKeeping = 256;  // steps

  ExperienceStore* store_;
  std::map<std::string, std::string> identities_;  // by the drafter's name
  std::int64_t kept_at_ = 0;                       // steps of the planner
};

}  // namespace outrider
