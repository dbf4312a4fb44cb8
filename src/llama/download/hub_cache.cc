#include "llama/download/hub_cache.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <cerrno>
#include <filesystem>
#include <fstream>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "hf-cache.h"

namespace outrider::llama {
namespace {

namespace fs = std::filesystem;

// What stands in the names of files that are no models by themselves, as for llama-common.
constexpr std::array<std::string_view, 6> kNoModel = {"mmproj",  "imatrix", "mtp-",
                                                      "eagle3-", "dflash-", "dspark-"};

std::string mebibytes(std::uint64_t bytes) { return std::to_string(bytes >> 20) + " MiB"; }

Status cannot_write(const std::string& path, int error) {
  if (error == ENOSPC || error == EDQUOT) {
    return resource_exhausted("the disk is full: '" + path +
                              "' cannot be written; make room, or name another folder with "
                              "LLAMA_CACHE");
  }
  return internal_error("cannot write '" + path + "': " + std::generic_category().message(error) +
                        "; LLAMA_CACHE names another folder for downloads");
}

// One that can be loaded by its name: of several files the first.
bool is_model(const fs::path& path) {
  const std::string name = path.filename().string();
  if (path.extension() != ".gguf" || !fs::exists(path)) return false;
  if (name.find("-of-") != std::string::npos && name.find("-00001-of-") == std::string::npos)
    return false;
  return std::none_of(kNoModel.begin(), kNoModel.end(),
                      [&](std::string_view part) { return name.find(part) != std::string::npos; });
}

bool has_quant(const std::string& path, const std::string& quant) {
  return path.find(quant + ".") != std::string::npos || path.find(quant + "-") != std::string::npos;
}

// As llama-common chooses: Q4_K_M, else Q8_0, else the first, where none is asked for. Empty: none.
std::string model_in(const fs::path& folder, const std::string& quant) {
  std::vector<std::string> models;
  for (const fs::directory_entry& entry : fs::recursive_directory_iterator(folder)) {
    if (is_model(entry.path())) models.push_back(entry.path().lexically_relative(folder).string());
  }
  std::sort(models.begin(), models.end());
  std::vector<std::string> quants = {lower_case(quant)};
  if (quant.empty()) quants = {"q4_k_m", "q8_0", ""};
  for (const std::string& wanted : quants) {
    for (const std::string& model : models) {
      if (has_quant(lower_case(model), wanted)) return (folder / model).string();
    }
  }
  return "";
}

}  // namespace

std::string lower_case(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return text;
}

std::string repo_folder(const std::string& repo) {
  std::string name = "models--" + repo;
  name.replace(name.find('/'), 1, "--");
  return (fs::path(hf_cache::get_cache_path()) / name).string();
}

Status check_writable(const std::string& folder) {
  std::error_code error;
  fs::create_directories(folder, error);
  if (error) return cannot_write(folder, error.value());
  const std::string path = folder + "/.writable";
  errno = 0;
  std::ofstream file(path);
  file << "a file of a few bytes, removed at once";
  file.close();
  const int reason = errno;
  const bool is_written = !file.fail();
  fs::remove(path, error);
  return is_written ? Status() : cannot_write(folder, reason);
}

Status check_appendable(const std::string& path) {
  errno = 0;
  const std::ofstream file(path, std::ios::binary | std::ios::app);
  return file.is_open() ? Status() : cannot_write(path, errno);
}

Status check_room(const std::string& path, const std::string& name, std::uint64_t bytes) {
  std::error_code error;
  const fs::space_info space = fs::space(fs::path(path).parent_path(), error);
  if (error || space.available >= bytes) return Status();
  return resource_exhausted("the disk is full: '" + name + "' needs " + mebibytes(bytes) +
                            " more, and " + mebibytes(space.available) + " are free below '" +
                            hf_cache::get_cache_path() +
                            "'; make room, or name another folder with LLAMA_CACHE");
}

std::optional<EarlierCopy> find_earlier_copy(const HubName& name) {
  try {
    std::vector<std::pair<fs::file_time_type, fs::path>> snapshots;
    for (const fs::directory_entry& entry :
         fs::directory_iterator(fs::path(repo_folder(name.repo)) / "snapshots")) {
      if (entry.is_directory()) snapshots.emplace_back(entry.last_write_time(), entry.path());
    }
    std::sort(snapshots.rbegin(), snapshots.rend());
    for (const auto& [time, folder] : snapshots) {
      const std::string path = model_in(folder, name.quant);
      if (!path.empty()) return EarlierCopy{.path = path, .commit = folder.filename().string()};
    }
  } catch (const fs::filesystem_error&) {  // no such folder, or not for this user
  }
  return std::nullopt;
}

}  // namespace outrider::llama
