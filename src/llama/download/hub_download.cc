#include "llama/download/hub_download.h"

#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <system_error>
#include <thread>
#include <utility>

#include "llama/base/backend.h"
#include "llama/download/download_job.h"

namespace outrider::llama {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::chrono::milliseconds kTell{100};
constexpr std::chrono::seconds kLeave{2};      // after an interruption, without an answer
constexpr std::chrono::seconds kNoAnswer{25};  // to the first question

// By what is in the part: llama-common tells a thousandth of the file at a time, which takes
// minutes where the network is slow.
class PartWatch {
 public:
  // Whether there is another part, or another size of it, than the last time.
  bool has_changed(const std::string& part) {
    std::error_code error;
    std::uintmax_t size = part.empty() ? 0 : std::filesystem::file_size(part, error);
    if (error) size = 0;
    const bool has = part != part_ || size != size_;
    part_ = part;
    size_ = size;
    return has;
  }

 private:
  std::string part_;
  std::uintmax_t size_ = 0;
};

Status gone_silent(const DownloadJob& job, bool was_asking, std::chrono::seconds limit) {
  return internal_error(
      was_asking
          ? "no answer from " + job.hub.host + " in " + std::to_string(kNoAnswer.count()) +
                " seconds; check the network" + job.hub.proxy_hint() +
                "; or get the GGUF file some other way and give it with -m FILE"
          : "nothing has come from " + job.hub.host + " for " + std::to_string(limit.count()) +
                " seconds; the part is kept, and the same command goes on from there");
}

// Waits for the job, and leaves it when it does not come to an end.
Result<DownloadedModel> wait_for(DownloadJob& job, const DownloadHooks& hooks) {
  std::unique_lock<std::mutex> lock(job.mutex);
  Clock::time_point last_change = Clock::now();
  std::uint64_t changes = 0;
  PartWatch part;
  for (;;) {
    job.changed.wait_for(lock, kTell, [&job] { return job.result.has_value(); });
    if (job.result) return *job.result;
    const Clock::time_point now = Clock::now();
    if (job.n_changes != changes) last_change = now;
    changes = job.n_changes;
    if (part.has_changed(job.part) && !job.cancel) last_change = now;
    const bool is_asking = changes == 0;
    if (!job.cancel && hooks.cancel != nullptr && hooks.cancel->load()) {
      job.cancel = true;
      last_change = now;
    }
    if (job.cancel && now - last_change > kLeave) {
      return cancelled("the download was interrupted; the same command goes on from there");
    }
    if (now - last_change > (is_asking ? kNoAnswer : hooks.give_up_after)) {
      job.cancel = true;
      return gone_silent(job, is_asking, hooks.give_up_after);
    }
    if (!hooks.progress || is_asking) continue;
    const std::string what = job.what;
    const double fraction = job.fraction;
    lock.unlock();
    hooks.progress(what, fraction);
    lock.lock();
  }
}

}  // namespace

Result<DownloadedModel> download_model(const HubName& name, const DownloadHooks& hooks) {
  take_over_log();  // llama-common's own lines go nowhere
  Result<Hub> hub = Hub::find();
  if (!hub.ok()) return hub.status();
  const std::shared_ptr<DownloadJob> job = std::make_shared<DownloadJob>();
  job->name = name;
  job->hub = std::move(*hub);
  std::thread thread;
  try {
    thread = std::thread([job] { run_download(*job); });
  } catch (const std::system_error& error) {
    return resource_exhausted(std::string("no thread can be made to download with: ") +
                              error.what());
  }
  Result<DownloadedModel> result = wait_for(*job, hooks);
  bool is_done = false;
  {
    const std::lock_guard<std::mutex> lock(job->mutex);
    is_done = job->result.has_value();
  }
  // One that waits for the network cannot be ended; it keeps what it needs alive.
  is_done ? thread.join() : thread.detach();
  return result;
}

}  // namespace outrider::llama
