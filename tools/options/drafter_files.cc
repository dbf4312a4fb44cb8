#include "tools/options/drafter_files.h"

#include <filesystem>
#include <system_error>

#include "draft/drafter_table.h"
#include "tools/options/needs.h"
#include "tools/options/usage.h"

namespace outrider::tools {
namespace {

// The tier to which `run` writes, and what help says of it behind the drafter's name.
constexpr std::string_view kGrowing = "dynamic";
constexpr const char* kGrowingHelp =
    ": what earlier texts held; 'run' adds its prompt and answer, and makes the file where there "
    "is none";

}  // namespace

void add_drafter_files(OptionGroup& group, std::vector<DrafterFile>& files, bool grows) {
  for (const std::string_view drafter : kFileDrafters) {
    for (const FileOption& option : find_lookup_kind(drafter)->files->options) {
      const std::string name = option_name(option.name);
      const auto take = [&files, &option, name, drafter](const std::vector<std::string>& paths) {
        std::erase_if(files, [&](const DrafterFile& f) { return file_option(f) == name; });
        for (const std::string& path : paths) {
          files.push_back({std::string(drafter), path, std::string(option.tier)});
        }
      };
      const std::string help = grows && option.tier == kGrowing
                                   ? std::string(drafter) + kGrowingHelp
                                   : std::string(option.help);
      if (option.tier.empty()) {
        group.declare_many(name, help, "FILE", take);
      } else {
        group.declare(name, help, "FILE", "", [take](const std::string& path) { take({path}); });
      }
    }
  }
}

std::string file_option(const DrafterFile& file) { return option_name(file_option_of(file).name); }

const DrafterFile* typed_file(const CLI::App& app, const std::vector<DrafterFile>& files) {
  for (const DrafterFile& file : files) {
    if (was_typed(app, file_option(file).substr(2))) return &file;
  }
  return nullptr;
}

void check_drafter_files(const CLI::App& app, const std::vector<DrafterFile>& files,
                         const DrafterPlan& plan, const std::string& drafter) {
  for (const DrafterFile& file : files) {
    if (plan.mentions(file.drafter) || !was_typed(app, file_option(file).substr(2))) continue;
    throw UsageError(file_option(file) + " is given, but --drafter is '" + drafter + "'",
                     "give --drafter " + file.drafter + ", too, or leave the file out");
  }
}

void check_dynamic_file(const CLI::App& app, const std::vector<DrafterFile>& files) {
  for (const DrafterFile& file : files) {
    const std::string option = file_option(file);
    std::error_code error;
    if (file.tier != kGrowing || std::filesystem::exists(file.path, error)) continue;
    if (!was_typed(app, option.substr(2))) continue;
    throw UsageError(option + " is '" + file.path + "', but there is no such file",
                     "only 'run' makes one; leave it out: the cache starts empty then");
  }
}

std::vector<DrafterFile> files_to_read(const std::vector<DrafterFile>& files,
                                       const DrafterPlan& plan) {
  std::vector<DrafterFile> read = files;
  std::erase_if(read, [&plan](const DrafterFile& file) {
    std::error_code error;
    return !plan.mentions(file.drafter) ||
           (file.tier == kGrowing && !std::filesystem::exists(file.path, error));
  });
  return read;
}

std::optional<std::string> dynamic_file(const std::vector<DrafterFile>& files,
                                        const DrafterPlan& plan) {
  for (const DrafterFile& file : files) {
    if (file.tier == kGrowing && plan.mentions(file.drafter)) return file.path;
  }
  return std::nullopt;
}

}  // namespace outrider::tools
