#include "backend/experience_files.h"

#include <unistd.h>

#include <fstream>
#include <iterator>
#include <system_error>

#include "llama/exactness_key.h"

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

// Whole or not at all, but not brought to the disk: that can take a second, and requests wait.
void ExperienceFiles::save(const std::string& drafter, const DrafterExperience& experience) {
  const std::filesystem::path path = file_of(drafter);
  std::filesystem::path part = path;
  part += "." + std::to_string(getpid()) + ".part";
  std::error_code error;
  std::filesystem::create_directories(path.parent_path(), error);
  std::ofstream file(part, std::ios::binary);
  file << key_of(drafter) << '\n' << to_text(experience);
  file.close();
  if (file) std::filesystem::rename(part, path, error);
  if (!file || error) std::filesystem::remove(part, error);
}

}  // namespace outrider
