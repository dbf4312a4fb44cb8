#include "llama/download/download_job.h"

#include <algorithm>
#include <array>
#include <cctype>
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
#include "llama/download/sha256.h"
#include "llama/files/gguf_header.h"
#include "store/file_lock.h"

namespace outrider::llama {
namespace {

namespace fs = std::filesystem;

constexpr std::chrono::milliseconds kAskAgain{100};  // who waits for another's download

std::string base_name(const std::string& path) { return path.substr(path.rfind('/') + 1); }

std::string lower_case(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return text;
}

std::string mebibytes(std::uint64_t bytes) { return std::to_string(bytes >> 20) + " MiB"; }

// llama-common's way of telling, for one file. On the job's thread.
class FileWatch : public common_download_callback {
 public:
  FileWatch(DownloadJob& job, const std::string& path, std::string what)
      : job_(job), part_(path + ".downloadInProgress"), what_(std::move(what)) {
    std::error_code error;
    if (!fs::exists(part_, error)) fs::rename(kept(), part_, error);
  }
  // What was kept out of llama-common's reach comes back.
  ~FileWatch() override {
    std::error_code error;
    if (fs::exists(kept(), error)) fs::rename(kept(), part_, error);
  }

  void on_start(const common_download_progress& p) override {
    total_ = p.total;
    std::error_code error;
    const std::uint64_t size = fs::file_size(part_, error);
    if (!error && total_ > 0 && size > total_) fs::remove(part_, error);
    // It would be asked for what follows the end. Its last byte once more makes it complete.
    if (!error && total_ > 0 && size == total_) fs::resize_file(part_, total_ - 1, error);
    job_.tell(what_, 0.0);
  }
  void on_update(const common_download_progress& p) override {
    downloaded_ = p.downloaded;
    total_ = p.total;
    job_.tell(what_, p.total == 0
                         ? 0.0
                         : static_cast<double>(p.downloaded) / static_cast<double>(p.total));
  }
  void on_done(const common_download_progress& /*p*/, bool ok) override {
    std::error_code error;
    if (!ok && is_cancelled()) fs::rename(part_, kept(), error);
  }
  bool is_cancelled() const override { return job_.cancel.load(); }

  std::uint64_t total() const { return total_; }  // bytes; 0: not told
  std::uint64_t downloaded() const { return downloaded_; }

 private:
  std::string kept() const { return part_ + ".kept"; }

  DownloadJob& job_;
  std::string part_;
  std::string what_;
  std::uint64_t total_ = 0;
  std::uint64_t downloaded_ = 0;
};

Status interrupted(const DownloadJob& job) {
  return cancelled("the download of '" + job.name.text() +
                   "' was interrupted; the part is kept, and the same command goes on from there");
}

Status broke_off(const DownloadJob& job, const FileWatch& watch, const hf_cache::hf_file& file) {
  if (watch.is_cancelled()) return interrupted(job);
  std::error_code error;
  const fs::space_info space = fs::space(fs::path(file.local_path).parent_path(), error);
  const std::uint64_t wanted =
      watch.total() > watch.downloaded() ? watch.total() - watch.downloaded() : 0;
  if (!error && space.available < wanted) {
    return resource_exhausted("the disk is full: '" + base_name(file.path) + "' needs " +
                              mebibytes(wanted) + " more, and " + mebibytes(space.available) +
                              " are free below '" + hf_cache::get_cache_path() +
                              "'; make room, or name another folder with LLAMA_CACHE");
  }
  return internal_error("the connection to " + job.hub.host + " broke off again and again at " +
                        mebibytes(watch.downloaded()) + " of " + mebibytes(watch.total()) +
                        " of '" + base_name(file.path) +
                        "'; the part is kept, and the same command goes on from there");
}

// What came is what the hub has, and a model. Removes what cannot be either: what is certain to be
// the hub's and is refused here may be one for a later version of this program, or for another one.
Status check_file(DownloadJob& job, const hf_cache::hf_file& file, std::uint64_t total) {
  const std::string name = base_name(file.path);
  std::error_code error;
  const auto remove = [&](const std::string& why) {
    fs::remove(file.local_path, error);
    return data_loss("'" + name + "' " + why + "; it was removed, try again");
  };
  const std::uint64_t size = fs::file_size(file.local_path, error);
  if (error || (total > 0 && size != total)) {
    return remove("came with " + std::to_string(size) + " bytes instead of " +
                  std::to_string(total));
  }
  bool certain = false;
  if (file.oid.size() == 64) {
    const Result<std::optional<std::string>> hash =
        sha256_of(file.local_path, [&](std::uint64_t done) {
          job.tell("checking " + name, static_cast<double>(done) / static_cast<double>(size));
          return !job.cancel.load();
        });
    if (!hash.ok()) return hash.status();
    certain = hash->has_value();
    if (certain && **hash != lower_case(file.oid)) {
      return remove("is not what the hub has (its SHA-256 differs)");
    }
  }
  const Status header = read_gguf_header(file.local_path).status();
  if (header.ok()) return header;
  if (!certain) return remove("came whole, but cannot be used: " + header.message());
  return header.with_context("'" + name + "' came as the hub has it, but cannot be used");
}

Status fetch_file(DownloadJob& job, const hf_cache::hf_file& file, std::string what) {
  std::error_code error;
  if (file.local_path == file.final_path && fs::exists(file.final_path, error)) return Status();
  fs::create_directories(fs::path(file.local_path).parent_path(), error);
  // llama-common appends to the part that is there: two at once would both spoil it.
  const FileLock lock(file.local_path + ".lock", [&] {
    job.tell("waiting for another download of " + base_name(file.path), 0.0);
    std::this_thread::sleep_for(kAskAgain);
    return !job.cancel.load();
  });
  if (job.cancel.load()) return interrupted(job);
  common_download_opts options;
  options.bearer_token = job.hub.token;
  FileWatch watch(job, file.local_path, std::move(what));
  options.callback = &watch;
  const int status =
      common_download_file_single(file.url, file.local_path, options, /*skip_etag=*/true);
  if (status >= 400) return job.hub.refusal(status, job.name);
  if (status < 200) return broke_off(job, watch, file);
  return check_file(job, file, watch.total());
}

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

Status no_file(const DownloadJob& job) {
  const hf_cache::hf_files files = hf_cache::get_repo_files(job.name.repo, job.hub.token);
  const std::string quant =
      job.name.quant.empty() ? "no model in GGUF format" : "no GGUF file '" + job.name.quant + "'";
  return not_found("'" + job.name.repo + "' has " + quant + "; " +
                   (files.empty() ? job.hub.host + " does not list its files" : file_list(files)));
}

Result<DownloadedModel> fetch(DownloadJob& job) {
  std::error_code error;
  fs::create_directories(hf_cache::get_cache_path(), error);
  if (error) {
    return internal_error("cannot make the folder '" + hf_cache::get_cache_path() +
                          "' for downloads: " + error.message() +
                          "; LLAMA_CACHE names another one");
  }
  common_params_model model;
  model.hf_repo = job.name.text();
  common_download_opts options;
  options.bearer_token = job.hub.token;
  const common_download_hf_plan plan = common_download_get_hf_plan(model, options);
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
  const std::string cached = common_download_resolve_path(job.name.text());
  if (cached.empty()) return asked;
  DownloadedModel model{.path = cached, .notes = {}};
  if (!is_offline()) {
    model.notes.push_back("the copy in the cache is used, as " + job.hub.host +
                          " does not answer for '" + job.name.repo + "'");
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
