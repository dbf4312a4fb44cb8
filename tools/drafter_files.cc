#include "tools/drafter_files.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <system_error>

#include "draft/ngram/ngram_drafter.h"
#include "draft/suffix/suffix_drafter.h"
#include "tools/usage.h"

namespace outrider::tools {
namespace {

struct FileOption {
  const char* name;
  std::string_view drafter;
  std::string_view tier;  // empty: the drafter takes several, and so does the option
  const char* help;       // null: the caller's
};

constexpr std::array<FileOption, 3> kFileOptions = {{
    {"--suffix-store", SuffixDrafter::kName, "",
     "a store of texts for the drafter suffix, made by 'outrider suffix build'; may be given "
     "several times"},
    {"--ngram-static", NgramDrafter::kName, "static",
     "ngram-cache: what is common in a large corpus, from 'outrider ngram create'; is only read"},
    {"--ngram-dynamic", NgramDrafter::kName, "dynamic", nullptr},
}};

bool exists(const std::string& path) {
  std::error_code error;
  return std::filesystem::exists(path, error);
}

}  // namespace

void add_drafter_files(OptionGroup& group, std::vector<DrafterFile>& files,
                       const std::string& dynamic_help) {
  for (const FileOption& option : kFileOptions) {
    const auto take = [&files, &option](const std::vector<std::string>& paths) {
      std::erase_if(files, [&](const DrafterFile& f) { return file_option(f) == option.name; });
      for (const std::string& path : paths) {
        files.push_back({std::string(option.drafter), path, std::string(option.tier)});
      }
    };
    const std::string help = option.help != nullptr ? option.help : dynamic_help;
    if (option.tier.empty()) {
      group.declare_many(option.name, help, "FILE", take);
    } else {
      group.declare(option.name, help, "FILE", "",
                    [take](const std::string& path) { take({path}); });
    }
  }
}

std::string file_option(const DrafterFile& file) {
  return std::find_if(kFileOptions.begin(), kFileOptions.end(),
                      [&](const FileOption& option) {
                        return option.drafter == file.drafter && option.tier == file.tier;
                      })
      ->name;
}

void check_drafter_files(const std::vector<DrafterFile>& files, const DrafterPlan& plan,
                         const std::string& drafter) {
  for (const DrafterFile& file : files) {
    if (plan.mentions(file.drafter)) continue;
    throw UsageError(file_option(file) + " is given, but --drafter is '" + drafter + "'",
                     "give --drafter " + file.drafter + ", too, or leave the file out");
  }
}

std::vector<DrafterFile> files_to_read(const std::vector<DrafterFile>& files,
                                       const DrafterPlan& plan) {
  std::vector<DrafterFile> read = files;
  std::erase_if(read, [&plan](const DrafterFile& file) {
    return !plan.mentions(file.drafter) || (file.tier == "dynamic" && !exists(file.path));
  });
  return read;
}

std::optional<std::string> dynamic_file(const std::vector<DrafterFile>& files,
                                        const DrafterPlan& plan) {
  for (const DrafterFile& file : files) {
    if (file.tier == "dynamic" && plan.mentions(file.drafter)) return file.path;
  }
  return std::nullopt;
}

}  // namespace outrider::tools
