#include "llama/download/download_job.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdlib>
#include <exception>
#include <filesystem>
#include <new>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "base/list_of.h"
#include "common.h"
#include "download.h"
#include "hf-cache.h"
#include "llama/download/fetch_file.h"
#include "llama/download/hub_cache.h"
#include "llama/files/gguf_header.h"
#include "store/file_lock.h"

namespace outrider::llama {
namespace {

namespace fs = std::filesystem;

// For who lists the files meanwhile; then without the lock, which keeps from a rare failure only.
constexpr std::chrono::seconds kWaitForList{10};

// "a.gguf, b.gguf and 3 more"
std::string file_list(const hf_cache::hf_files& files) {
  std::vector<std::string> names;
  for (const hf_cache::hf_file& file : files) {
    if (file.path.ends_with(".gguf")) names.push_back(file.path);
  }
  if (names.empty()) return "it has no GGUF files";
  constexpr std::size_t kMost = 12;
  const std::size_t n = names.size();
  names.resize(std::min(n, kMost));
  return "it has " + list_of(names, n > kMost ? ", " : " and ") + (n > kMost ? ", ..." : "");
}

// llama-common says of whatever went wrong while it listed the files only that there are none.
Status no_file(const DownloadJob& job) {
  const hf_cache::hf_files files = hf_cache::get_repo_files(job.name.repo, job.hub.token);
  if (files.empty()) {
    OUTRIDER_RETURN_IF_ERROR(check_writable(repo_folder(job.name.repo)));
    OUTRIDER_RETURN_IF_ERROR(job.hub.ask_list(job.name));
  }
  const std::string quant =
      job.name.quant.empty() ? "no model in GGUF format" : "no GGUF file '" + job.name.quant + "'";
  return not_found("'" + job.name.repo + "' has " + quant + "; " +
                   (files.empty() ? job.hub.host + " does not list its files" : file_list(files)));
}

// Which files there are. It is written into the cache, too: who writes the same at the same time
// makes llama-common find nothing.
common_download_hf_plan list_files(DownloadJob& job) {
  job.tell("listing the files of " + job.name.repo, 0.0);
  const std::string folder = repo_folder(job.name.repo);
  std::error_code error;
  fs::create_directories(folder, error);
  int asks_left = static_cast<int>(kWaitForList / kAskAgain);
  const FileLock lock(folder + "/refs.lock", [&] {
    job.tell("waiting for another list of " + job.name.repo, 0.0);
    std::this_thread::sleep_for(kAskAgain);
    return --asks_left > 0 && !job.cancel.load();
  });
  job.tell("listing the files of " + job.name.repo, 0.0);  // it waits no more
  common_params_model model;
  model.hf_repo = job.name.text();
  common_download_opts options;
  options.bearer_token = job.hub.token;
  return common_download_get_hf_plan(model, options);
}

Result<DownloadedModel> fetch(DownloadJob& job) {
  std::error_code error;
  fs::create_directories(hf_cache::get_cache_path(), error);
  if (error) {
    return internal_error("cannot make the folder '" + hf_cache::get_cache_path() +
                          "' for downloads: " + error.message() +
                          "; LLAMA_CACHE names another one");
  }
  const common_download_hf_plan plan = list_files(job);
  if (!plan.preset.path.empty()) {
    return unsupported("'" + job.name.repo +
                       "' is a list of llama-server's settings (preset.ini), not a model; name the "
                       "model itself");
  }
  if (plan.primary.path.empty()) return no_file(job);
  const std::size_t n = plan.model_files.size();
  for (std::size_t i = 0; i < n; ++i) {
    const hf_cache::hf_file& file = plan.model_files[i];
    std::string what = "downloading " + base_name(file.path);
    if (n > 1) what += " (" + std::to_string(i + 1) + " of " + std::to_string(n) + ")";
    OUTRIDER_RETURN_IF_ERROR(fetch_file(job, file, std::move(what)));
  }
  for (const hf_cache::hf_file& file : plan.model_files) hf_cache::finalize_file(file);
  const Result<GgufHeader> header = read_gguf_header(plan.primary.final_path);
  if (!header.ok()) return header.status();
  if (static_cast<std::size_t>(header->n_splits) != n) {
    return data_loss("'" + job.name.text() + "' has " + std::to_string(n) + " of the " +
                     std::to_string(header->n_splits) + " files of its model");
  }
  return DownloadedModel{.path = plan.primary.final_path, .notes = {}};
}

// In the spellings that the hub's own tools take.
bool is_offline() {
  constexpr std::array<std::string_view, 4> kYes = {"1", "on", "true", "yes"};
  const char* value = std::getenv("HF_HUB_OFFLINE");
  if (value == nullptr) return false;
  return std::find(kYes.begin(), kYes.end(), lower_case(value)) != kYes.end();
}

Result<DownloadedModel> ask_and_fetch(DownloadJob& job) {
  const Status asked = is_offline()
                           ? internal_error("HF_HUB_OFFLINE is set, and '" + job.name.text() +
                                            "' is not in the cache; download it without that")
                           : job.hub.ask(job.name);
  if (asked.ok()) return fetch(job);
  DownloadedModel model{.path = common_download_resolve_path(job.name.text()), .notes = {}};
  std::optional<EarlierCopy> earlier;
  if (model.path.empty()) earlier = find_earlier_copy(job.name);
  if (earlier) model.path = earlier->path;
  if (model.path.empty()) return asked;
  if (!is_offline()) {
    model.notes.push_back("the copy in the cache is used, as " + job.hub.host +
                          " does not answer for '" + job.name.repo + "'");
  }
  if (earlier) {
    model.notes.push_back("the copy in the cache is an earlier one of '" + job.name.repo +
                          "' (commit " + earlier->commit +
                          "), as the newest was not downloaded to its end");
  }
  return model;
}

}  // namespace

void DownloadJob::tell(const std::string& now_what, double now_fraction) {
  const std::lock_guard<std::mutex> lock(mutex);
  what = now_what;
  fraction = now_fraction;
  ++n_changes;
}

void DownloadJob::watch(const std::string& path) {
  const std::lock_guard<std::mutex> lock(mutex);
  part = path;
}

void run_download(DownloadJob& job) {
  Result<DownloadedModel> result = internal_error("nothing was downloaded");
  try {
    result = ask_and_fetch(job);
  } catch (const std::bad_alloc&) {
    result = resource_exhausted("out of memory while downloading '" + job.name.text() + "'");
  } catch (const std::exception& error) {
    result = internal_error("cannot download '" + job.name.text() + "': " + error.what());
  }
  const std::lock_guard<std::mutex> lock(job.mutex);
  job.result = std::move(result);
  job.changed.notify_all();
}

}  // namespace outrider::llama
