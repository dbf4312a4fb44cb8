#include "tools/options/model_folder.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <filesystem>
#include <regex>
#include <set>
#include <string_view>
#include <utility>

#include "base/utf8.h"
#include "tools/options/shell_word.h"

namespace outrider::tools {
namespace {

namespace fs = std::filesystem;

// As llama.cpp's own downloader tells them.
constexpr std::array<std::string_view, 6> kParts = {"mmproj",  "imatrix", "mtp-",
                                                    "eagle3-", "dflash-", "dspark-"};
constexpr std::size_t kMostBeside = 64;

bool is_part(const std::string& file_name) {
  return std::any_of(kParts.begin(), kParts.end(), [&](std::string_view part) {
    return file_name.find(part) != std::string::npos;
  });
}

// "model-00002-of-00003" -> "model" and 2; number 1 where it is not split.
std::pair<std::string, int> split_name(const std::string& stem) {
  static const std::regex split("^(.+)-([0-9]{5})-of-[0-9]{5}$");
  std::smatch match;
  if (!std::regex_match(stem, match, split)) return {stem, 1};
  return {match[1].str(), std::stoi(match[2].str())};
}

// A link that leads nowhere is one, too: that it cannot be read is told like of any other.
bool is_candidate(const fs::directory_entry& entry) {
  std::error_code error;
  const fs::path& path = entry.path();
  const bool dangles = entry.is_symlink(error) && !fs::exists(path, error);
  return path.extension() == ".gguf" && (entry.is_regular_file(error) || dangles) &&
         !is_part(path.filename().string()) && split_name(path.stem().string()).second == 1;
}

// Such as a catalog takes (catalog/catalog.h).
std::string usable_name(const std::string& given) {
  constexpr std::size_t kMostBytes = 128;
  std::string name = with_replacements(given);
  for (char& c : name) {
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7F) c = '_';
  }
  if (name.size() > kMostBytes) {
    name.resize(kMostBytes);
    name.resize(complete_utf8_prefix(name));
  }
  return name;
}

// Every candidate in `folder` and below it, by its path. Links to folders are followed, behind all
// that is found without them, so that files have the same paths whatever their order on the disk.
// Each folder is looked into once, since links may lead back. `error`: why it cannot be read.
std::vector<fs::path> candidates_below(const fs::path& folder, const ModelFamilies& families,
                                       std::error_code& error) {
  constexpr fs::directory_options kSkip = fs::directory_options::skip_permission_denied;
  std::vector<fs::path> found;
  std::set<fs::path> seen;
  std::vector<fs::path> links = {folder};
  for (std::size_t i = 0; !error && i < links.size(); ++i) {
    if (!seen.insert(fs::canonical(links[i], error)).second) continue;
    const std::size_t n_known = links.size();
    fs::recursive_directory_iterator at(links[i], kSkip, error);
    for (; !error && at != fs::recursive_directory_iterator(); at.increment(error)) {
      if (families.stopped()) return {};
      std::error_code unknown;  // what cannot be looked at is no folder
      if (is_candidate(*at)) found.push_back(at->path());
      if (!at->is_directory(unknown)) continue;
      if (at->is_symlink(unknown)) {
        links.push_back(at->path());
      } else if (!seen.insert(fs::canonical(at->path(), unknown)).second) {
        at.disable_recursion_pending();
      }
    }
    std::sort(links.begin() + static_cast<std::ptrdiff_t>(n_known), links.end());
  }
  std::sort(found.begin(), found.end());
  return found;
}

}  // namespace

ModelFamilies::ModelFamilies(std::function<bool()> stopped, Read read)
    : stopped_(std::move(stopped)), read_(std::move(read)) {}

const Result<llama::GgufFamily>& ModelFamilies::of(const std::string& path) {
  const auto known = known_.find(path);
  return known != known_.end() ? known->second : known_.emplace(path, read_(path)).first->second;
}

std::string model_name(const std::string& path) {
  return usable_name(split_name(fs::path(path).stem().string()).first);
}

Result<ModelFolder> read_model_folder(const std::string& folder, ModelFamilies& families) {
  std::error_code error;
  if (!fs::exists(folder, error)) {
    return not_found("there is no folder '" + folder + "'; give one with GGUF files");
  }
  if (!fs::is_directory(folder, error)) {
    return invalid_argument("'" + folder + "' is not a folder; give one with GGUF files");
  }
  const std::vector<fs::path> paths = candidates_below(folder, families, error);
  if (error) return invalid_argument("cannot read '" + folder + "': " + error.message());
  if (families.stopped()) return cancelled("stopped by a signal");
  ModelFolder result;
  std::set<std::string> names;
  for (const fs::path& path : paths) {
    if (families.stopped()) return cancelled("stopped by a signal");
    const Result<llama::GgufFamily>& family = families.of(path.string());
    if (!family.ok()) {
      result.left_out.push_back(family.status().message());
      continue;
    }
    std::string name = model_name(path.string());
    if (!names.insert(name).second) {
      name = usable_name((path.lexically_relative(folder).parent_path() / name).generic_string());
      names.insert(name);
    }
    result.models.push_back({.name = std::move(name), .path = path.string()});
  }
  std::sort(result.models.begin(), result.models.end(),
            [](const FolderModel& a, const FolderModel& b) { return a.name < b.name; });
  return result;
}

std::optional<std::string> find_draft_beside(const std::string& target, ModelFamilies& families) {
  const Result<llama::GgufFamily>& large = families.of(target);
  if (!large.ok()) return std::nullopt;
  const fs::path folder = fs::path(target).parent_path();
  std::error_code error;
  fs::directory_iterator at(folder.empty() ? fs::path(".") : folder, error);
  std::vector<fs::path> paths;
  for (; !error && at != fs::directory_iterator(); at.increment(error)) {
    if (is_candidate(*at)) paths.push_back(folder / at->path().filename());
  }
  std::sort(paths.begin(), paths.end());
  if (paths.size() > kMostBeside) paths.resize(kMostBeside);
  std::optional<std::string> best;
  llama::GgufFamily best_family;
  for (const fs::path& path : paths) {
    if (path == fs::path(target)) continue;
    if (families.stopped()) return std::nullopt;
    const Result<llama::GgufFamily>& small = families.of(path.string());
    if (!small.ok() || !llama::could_draft(*small, *large)) continue;
    const auto size = [](const llama::GgufFamily& family) {
      return std::pair(family.n_parameters, family.file_bytes);
    };
    if (best && size(*small) >= size(best_family)) continue;
    best = path.string();
    best_family = *small;
  }
  return best;
}

std::string draft_offer(const std::string& target, const std::string& draft) {
  return "'" + fs::path(draft).filename().string() + "' beside '" +
         fs::path(target).filename().string() +
         "' could guess ahead for it, which makes it faster: -d " + shell_word(draft);
}

}  // namespace outrider::tools
