#include "llama/download/fetch_file.h"

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <system_error>
#include <thread>
#include <utility>

#include "download.h"
#include "llama/download/hub_cache.h"
#include "llama/download/sha256.h"
#include "llama/files/gguf_header.h"
#include "store/file_lock.h"

namespace outrider::llama {
namespace {

namespace fs = std::filesystem;

constexpr int kRangeNotSatisfiable = 416;  // the part is as long as the file, or longer

std::uint64_t size_of(const std::string& path) {
  std::error_code error;
  const std::uint64_t size = fs::file_size(path, error);
  return error ? 0 : size;
}

// llama-common's way of telling, for one file. On the job's thread.
class FileWatch : public common_download_callback {
 public:
  FileWatch(DownloadJob& job, const std::string& path, std::string what)
      : job_(job), part_(path + ".downloadInProgress"), what_(std::move(what)) {
    std::error_code error;
    if (!fs::exists(part_, error)) fs::rename(kept(), part_, error);
    job_.watch(part_);
  }
  // What was kept out of llama-common's reach comes back.
  ~FileWatch() override {
    job_.watch("");
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
    size_at_start_ = part_size();
    was_updated_ = false;
    job_.tell(what_, 0.0);
  }
  void on_update(const common_download_progress& p) override {
    was_updated_ = true;
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

  const std::string& part() const { return part_; }
  std::uint64_t part_size() const { return size_of(part_); }
  std::uint64_t total() const { return total_; }  // bytes; 0: not told
  std::uint64_t missing() const { return total_ > part_size() ? total_ - part_size() : 0; }
  // llama-common tells of a thousandth of the file at a time.
  bool has_come() const { return was_updated_ || part_size() != size_at_start_; }

 private:
  std::string kept() const { return part_ + ".kept"; }

  DownloadJob& job_;
  std::string part_;
  std::string what_;
  std::uint64_t total_ = 0;
  std::uint64_t size_at_start_ = 0;
  bool was_updated_ = false;
};

Status interrupted(const DownloadJob& job) {
  return cancelled("the download of '" + job.name.text() +
                   "' was interrupted; the part is kept, and the same command goes on from there");
}

Status broke_off(const DownloadJob& job, const FileWatch& watch, const hf_cache::hf_file& file) {
  if (watch.is_cancelled()) return interrupted(job);
  OUTRIDER_RETURN_IF_ERROR(check_room(file.local_path, base_name(file.path), watch.missing()));
  return internal_error("the connection to " + job.hub.host + " broke off again and again at " +
                        std::to_string(watch.part_size() >> 20) + " MiB of " +
                        std::to_string(watch.total() >> 20) + " MiB of '" + base_name(file.path) +
                        "'; the part is kept, and the same command goes on from there");
}

// The last bytes are written when llama-common no longer looks whether they can be.
Status came_short(const FileWatch& watch, const hf_cache::hf_file& file) {
  std::error_code error;
  fs::rename(file.local_path, watch.part(), error);
  const std::string name = base_name(file.path);
  OUTRIDER_RETURN_IF_ERROR(check_room(file.local_path, name, watch.missing()));
  return data_loss("'" + name + "' came with " + std::to_string(watch.part_size()) +
                   " bytes instead of " + std::to_string(watch.total()) +
                   "; the part is kept, and the same command goes on from there");
}

// What came is what the hub has, and a model. Removes what cannot be either: what is certain to be
// the hub's and is refused here may be one for a later version of this program, or for another one.
Status check_file(DownloadJob& job, const FileWatch& watch, const hf_cache::hf_file& file) {
  const std::string name = base_name(file.path);
  std::error_code error;
  const auto remove = [&](const std::string& why) {
    fs::remove(file.local_path, error);
    return data_loss("'" + name + "' " + why + "; it was removed, try again");
  };
  const std::uint64_t size = fs::file_size(file.local_path, error);
  if (!error && size < watch.total()) return came_short(watch, file);
  if (error || (watch.total() > 0 && size != watch.total())) {
    return remove("came with " + std::to_string(size) + " bytes instead of " +
                  std::to_string(watch.total()));
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

// llama-common's own, an HTTP status; negative: it did not come to its end.
int pull(DownloadJob& job, FileWatch& watch, const hf_cache::hf_file& file) {
  common_download_opts options;
  options.bearer_token = job.hub.token;
  options.callback = &watch;
  return common_download_file_single(file.url, file.local_path, options, /*skip_etag=*/true);
}

// Where not one byte came: an error that llama-common did not tell; else whether what is asked for
// is not given because of the part, whose rest the hub does not send.
Result<bool> part_is_useless(const DownloadJob& job, const FileWatch& watch,
                             const hf_cache::hf_file& file) {
  OUTRIDER_RETURN_IF_ERROR(check_appendable(watch.part()));
  const std::uint64_t at = watch.part_size();
  const std::optional<int> status = job.hub.status_of(file.url, at);
  if (!status || *status == 206) return false;
  if (at > 0 && (*status < 400 || *status == kRangeNotSatisfiable)) return true;
  if (*status >= 400) return job.hub.refusal(*status, job.name);
  return false;
}

}  // namespace

std::string base_name(const std::string& path) { return path.substr(path.rfind('/') + 1); }

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
  job.tell(what, 0.0);  // it waits no more
  FileWatch watch(job, file.local_path, std::move(what));
  int status = pull(job, watch, file);
  if (status < 200 && !watch.is_cancelled() && !watch.has_come()) {
    OUTRIDER_ASSIGN_OR_RETURN(const bool is_useless, part_is_useless(job, watch, file));
    if (is_useless && fs::remove(watch.part(), error)) status = pull(job, watch, file);
  }
  if (status >= 400) return job.hub.refusal(status, job.name);
  if (status < 200) return broke_off(job, watch, file);
  return check_file(job, watch, file);
}

}  // namespace outrider::llama
