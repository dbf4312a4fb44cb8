#include "serve/runtime_options.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <system_error>

#include "base/types.h"
#include "draft/base/text_memory.h"
#include "draft/drafter_table.h"

namespace outrider {
namespace {

using Options = RuntimeOptions;

constexpr Field<Options> kFields[] = {
    {.name = "slots",
     .help = "completions that run at once",
     .place = &Options::slots,
     .range = {.min = 1.0, .max = kMaxSequences}},
    {.name = "max_queue",
     .help = "completions that wait, at most",
     .place = &Options::max_queue,
     .range = {.min = 0.0, .max = kMaxInt32}},
    {.name = "prompt_chunk",
     .help = "prompt tokens of a step while other texts go on",
     .place = &Options::prompt_chunk,
     .range = {.min = 1.0, .max = kMaxInt32}},
    {.name = "prompt_share",
     .help = "of the time, what reading one prompt takes from other texts that go on, in the long "
             "run; 1: no limit",
     .place = &Options::prompt_share,
     .range = {.min = 0.01, .max = 1.0}},
    {.name = "reuse_prefix",
     .help = "keep the state of ended texts for prompts that begin alike",
     .place = &Options::reuse_prefix},
    {.name = "retention_ms",
     .help = "milliseconds that a finished result waits to be fetched",
     .place = &Options::retention_ms,
     .range = {.min = 1.0, .max = kYearMs}},  // 0: nobody could fetch one
    {.name = "remember_tokens",
     .help =
         "tokens of finished texts that the drafter suffix remembers, a quarter of them for one "
         "namespace at most; 0 (none), or at least 1024. A completion's text is remembered for "
         "later ones with the same namespace, and for no others",
     .place = &Options::remember_tokens,
     .range = {.min = 0.0, .max = static_cast<double>(TextMemory::kMostTokens)}},
    {.name = "remember_folder",
     .help = "folder that keeps the remembered texts when a model is closed, and gives them back "
             "when it is opened after that; may be shared: each model that is closed adds its own. "
             "It holds the texts themselves",
     .place = &Options::remember_folder,
     .unit = "FOLDER",
     .otherwise = "they are forgotten"},
    {.name = "prompt_cache",
     .help =
         "folder that keeps what the models have read of ended texts when they are closed, and "
         "gives it back when they are opened after that; may be shared by models, not by running "
         "servers. It holds the texts themselves",
     .place = &Options::prompt_cache,
     .unit = "FOLDER",
     .otherwise = "nothing is kept"},
    {.name = "prompt_cache_mib",
     .help = "mebibytes that the prompt cache may have; what was kept longest ago goes first",
     .place = &Options::prompt_cache_mib,
     .range = {.min = 1.0, .max = 1048576.0}},
};

Status prepare_folder(std::string_view field, const std::string& path) {
  if (path.empty()) return Status();
  std::error_code error = make_private_folder(path);
  if (!error && ::access(path.c_str(), R_OK | W_OK | X_OK) != 0) {
    error = std::error_code(errno, std::generic_category());
  }
  if (!error) return Status();
  return wrong_value(std::string(field), "'" + path + "'",
                     "a folder that can be written to: " + error.message());
}

Status check_added(const std::vector<AddedDrafter>& drafters) {
  if (drafters.size() > RuntimeOptions::kMaxAddedDrafters) {
    return invalid_argument("there are " + std::to_string(drafters.size()) +
                            " added drafters, but there can be at most " +
                            std::to_string(RuntimeOptions::kMaxAddedDrafters));
  }
  std::vector<std::string_view> names(kDrafterNames.begin(), kDrafterNames.end());
  for (const AddedDrafter& added : drafters) {
    const bool taken = std::find(names.begin(), names.end(), added.name) != names.end();
    if (taken || added.name.empty() || !added.make) {
      return invalid_argument("the added drafter '" + std::string(added.name) +
                              "' must have a name that no other has, and be one that can be made");
    }
    names.push_back(added.name);
  }
  return Status();
}

}  // namespace

std::span<const Field<RuntimeOptions>> runtime_fields() { return kFields; }

Status validate(const RuntimeOptions& options) {
  OUTRIDER_RETURN_IF_ERROR(check(runtime_fields(), options));
  OUTRIDER_RETURN_IF_ERROR(check_added(options.drafters));
  if (!options.remember_folder.empty() && options.remember_tokens == 0) {
    return refused(StatusCode::kInvalidArgument, "remember_folder",
                   "is given, but remember_tokens is 0, so that nothing is remembered");
  }
  const std::int64_t least = static_cast<std::int64_t>(TextMemory::kLeastTokens);
  if (options.remember_tokens == 0 || options.remember_tokens >= least) return Status();
  return wrong_value("remember_tokens", std::to_string(options.remember_tokens),
                     "0 (nothing is remembered), or at least " + std::to_string(least));
}

std::error_code make_private_folder(const std::string& path) {
  std::error_code error;
  if (!path.empty() && std::filesystem::create_directories(path, error)) {
    std::filesystem::permissions(path, std::filesystem::perms::owner_all, error);
  }
  return error;
}

Status prepare_folders(const RuntimeOptions& options) {
  OUTRIDER_RETURN_IF_ERROR(validate(options));
  OUTRIDER_RETURN_IF_ERROR(prepare_folder("remember_folder", options.remember_folder));
  return prepare_folder("prompt_cache", options.prompt_cache);
}

}  // namespace outrider
