#include "backend/experience_files.h"

#include <fstream>
#include <iterator>

#include "llama/exactness/exactness_cache.h"
#include "store/cache_folder.h"

namespace outrider {
namespace {

// Nothing is brought to the disk: that can take a second, in which requests wait, and a file that
// is lost costs nothing.
class Unsynced : public FileOps {
 public:
  int sync(int /*file*/) override { return 0; }
  int sync_folder(const std::string& /*folder*/) override { return 0; }
};

}  // namespace

std::filesystem::path ExperienceFiles::file_of(const std::string& drafter) const {
  return llama::cache_file(folder_, "experience", key_of(drafter), ".txt");
}

std::optional<DrafterExperience> ExperienceFiles::load(const std::string& drafter) {
  std::ifstream file(file_of(drafter));
  std::string written_for;
  if (!std::getline(file, written_for) || written_for != key_of(drafter)) return std::nullopt;
  return experience_from(std::string(std::istreambuf_iterator<char>(file), {}));
}

Status ExperienceFiles::save(const std::string& drafter, const DrafterExperience& experience) {
  Unsynced ops;
  return write_cache_file(file_of(drafter), key_of(drafter) + '\n' + to_text(experience), ops);
}

}  // namespace outrider
