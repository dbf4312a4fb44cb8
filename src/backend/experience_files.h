// ExperienceFiles: what was learned of drafters, in files "<folder>/experience/<hash>.txt", by
// target, drafter, machine, build and settings. A file that cannot be read or is damaged is as if
// it were not there.
#pragma once

#include <filesystem>
#include <string>
#include <utility>

#include "serve/experiences.h"

namespace outrider {

class ExperienceFiles : public ExperienceStore {
 public:
  // `target`: all that a step's time depends on, in a line (backend/target_costs.h).
  ExperienceFiles(std::filesystem::path folder, std::string target)
      : folder_(std::move(folder)), target_(std::move(target)) {}

  std::optional<DrafterExperience> load(const std::string& drafter) override;
  Status save(const std::string& drafter, const DrafterExperience& experience) override;

  std::filesystem::path file_of(const std::string& drafter) const;

 private:
  std::string key_of(const std::string& drafter) const { return target_ + " | by " + drafter; }

  std::filesystem::path folder_;
  std::string target_;
};

}  // namespace outrider
