#include "serve/loading_thread.h"

#include <exception>
#include <future>
#include <type_traits>
#include <utility>

#include "base/caught.h"
#include "base/on_exit.h"
#include "draft/drafter_table.h"

namespace outrider {
namespace {

// Runs `work` on a thread of its own and waits for it. A thread that has computed leaves OpenMP's
// helpers behind until it ends, and with more helpers than cores OpenMP puts all of them to sleep
// at every barrier: a loading thread that had probed a model and stayed made the decode thread half
// as fast (SmolLM2-135M, 2 cores: 65 instead of 121 tokens a second).
template <typename Work>
std::invoke_result_t<Work> on_own_thread(Work work) {
  return std::async(std::launch::async, std::move(work)).get();
}

}  // namespace

void LoadingThread::run() {
  Lock lock(parts_.shared.mutex);
  while (true) {
    parts_.shared.load_work.wait(lock, [this] {
      return parts_.shared.stop || parts_.models.next() || parts_.files.has_next() ||
             parts_.files.has_unused();
    });
    if (parts_.shared.stop) return;
    if (parts_.files.has_unused()) {
      free_unused(lock);
      continue;  // it let go of the lock: all may be otherwise
    }
    const std::optional<ModelRole> role = parts_.models.next();
    if (role) {
      open_model(*role, lock);
    } else {
      open_file(lock);
    }
    parts_.shared.loaded.notify_all();
  }
}

void LoadingThread::open_model(ModelRole role, Lock& lock) {
  const ModelLoads::Opening opening = parts_.models.begin(role);
  Status status;
  try {
    status = role == ModelRole::kTarget ? open_target(opening, lock) : open_draft(opening, lock);
  } catch (const std::exception& error) {
    status = caught_loading(error, opening.options->path);
  }
  if (!lock.owns_lock()) lock.lock();
  if (!status.ok()) parts_.models.failed(role, opening.task, std::move(status));
}

LoadHooks LoadingThread::hooks_for(ModelRole role, const LoadTask::Opening& opening) {
  LoadHooks hooks;
  hooks.cancel = opening.cancel.get();
  hooks.progress = [this, role, opening](double fraction) {
    const Lock lock(parts_.shared.mutex);
    parts_.models.note_progress(role, opening, fraction);
  };
  return hooks;
}

// Both return, and throw, without the lock: what was opened and is not wanted ends then, which
// takes a while.
Status LoadingThread::open_target(const ModelLoads::Opening& opening, Lock& lock) {
  const LoadHooks hooks = hooks_for(ModelRole::kTarget, opening.task);
  const ModelOptions options = parts_.models.target_options(opening);
  lock.unlock();
  Result<std::unique_ptr<Target>> opened =
      on_own_thread([&] { return loader_.load_target(options, hooks); });
  StationPtr station;
  if (opened.ok()) station = std::make_shared<Station>(std::move(*opened), parts_.shared.options);
  lock.lock();
  const OnExit let_go([&lock] { lock.unlock(); });
  if (!opened.ok()) return opened.status();
  if (opening.task.cancel->load()) return cancelled("loading was cancelled");
  decoders_.start(station);  // first: it may fail
  parts_.models.target_opened(opening, std::move(station));
  return Status();
}

Status LoadingThread::open_draft(const ModelLoads::Opening& opening, Lock& lock) {
  const LoadHooks hooks = hooks_for(ModelRole::kDraft, opening.task);
  const StationPtr station = parts_.stations.current();
  lock.unlock();
  // What it throws is an error like others, since it may come of the target that goes.
  Result<std::unique_ptr<Draft>> opened = on_own_thread([&]() -> Result<std::unique_ptr<Draft>> {
    try {
      return loader_.load_draft(*opening.options, station->target(), hooks);
    } catch (const std::exception& error) {
      return caught_loading(error, opening.options->path);
    }
  });
  const Status failure = opened.status();
  StationChange change;
  if (opened.ok()) change = {station, *std::move(opened), "the draft model was replaced"};
  lock.lock();
  const OnExit let_go([&lock] { lock.unlock(); });
  if (opening.task.cancel->load()) return cancelled("loading was cancelled");
  // Only this thread puts another one there, so there is none now; which may be why it failed.
  if (station != parts_.stations.current()) {
    parts_.models.draft_waits_again(opening);
    return Status();
  }
  if (!failure.ok()) return failure;
  parts_.models.draft_opened(opening, std::move(change));
  return Status();
}

void LoadingThread::open_file(Lock& lock) {
  const LoadTask::Opening opening = parts_.files.begin_next();
  StationPtr station = parts_.stations.current();
  DrafterFile file;
  std::optional<Result<OpenedDrafterFile>> opened;
  try {
    file = parts_.files.name_of(opening);
    lock.unlock();
    opened = open_drafter_file(file, station->tokenizer());
    lock.lock();
    parts_.files.done(opening, station, *opened);
  } catch (const std::exception& error) {
    if (!lock.owns_lock()) lock.lock();
    parts_.files.done(opening, station, caught_loading(error, file.path));
  }
  parts_.shared.loaded.notify_all();
  // Without the lock: the target may have been unloaded meanwhile, and ends with this; nor may
  // anybody want the file any more.
  lock.unlock();
  station.reset();
  opened.reset();
  lock.lock();
}

void LoadingThread::free_unused(Lock& lock) {
  while (std::shared_ptr<const LookupFile> unused = parts_.files.take_unused()) {
    lock.unlock();
    unused.reset();
    lock.lock();
  }
}

}  // namespace outrider
