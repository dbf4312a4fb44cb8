#include "backend/experience_files.h"

#include <fstream>
#include <iterator>
#include <system_error>

#include "llama/exactness_key.h"
#include "store/atomic_file.h"

namespace outrider {

std::filesystem::path ExperienceFiles::file_of(const std::string& drafter) const {
  llama::Fingerprint fingerprint;
  fingerprint.add(key_of(drafter));
  return folder_ / "experience" / (fingerprint.hex() + ".txt");
}

std::optional<DrafterExperience> ExperienceFiles::load(const std::string& drafter) {
  std::ifstream file(file_of(drafter));
  std::string written_for;
  if (!std::getline(file, written_for) || written_for != key_of(drafter)) return std::nullopt;
  return experience_from(std::string(std::istreambuf_iterator<char>(file), {}));
}

void ExperienceFiles::save(const std::string& drafter, const DrafterExperience& experience) {
  const std::filesystem::path path = file_of(drafter);
  std::error_code error;
  std::filesystem::create_directories(path.parent_path(), error);
  if (error) return;
  (void)write_whole_file(path.string(), key_of(drafter) + "\n" + to_text(experience));
}

}  // namespace outrider
