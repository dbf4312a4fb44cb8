#include "serve/runtime.h"

#include <mutex>
#include <optional>
#include <system_error>
#include <thread>
#include <utility>

#include "serve/decoders.h"
#include "serve/loading_thread.h"

namespace outrider {

// The parts, and the threads that run on them. What a client calls is checked here and handed on to
// a part, with the mutex.
class Runtime::Impl : public RuntimeParts {
 public:
  using Lock = RuntimeShared::Lock;

  Impl(const RuntimeOptions& options, ModelLoader& loader);
  ~Impl();
  void shut_down() {
    std::call_once(shut_down_, [this] { stop_threads(); });
  }
  Status keep(const StationPtr& station);  // with the mutex
  void keep_learned();
  // with_idle_target(); `only_free`: with_free_target().
  Status lend(const TargetWork& work, bool only_free);

 private:
  void stop_threads();

  Decoders decoders_{*this};
  std::once_flag shut_down_;
  std::optional<LoadingThread> loading_;
  std::thread deadlines_;
};

Runtime::Impl::Impl(const RuntimeOptions& options, ModelLoader& loader) : RuntimeParts(options) {
  try {
    loading_.emplace(*this, loader, decoders_);
    deadlines_ = std::thread([this] { jobs.keep_time(); });
  } catch (...) {  // there can be no further thread
    shut_down();
    throw;
  }
}

Runtime::Impl::~Impl() {
  shared.events.subscribe({}, /*wait=*/false);
  shut_down();                  // first: the callback that runs may wait for what this ends
  shared.events.subscribe({});  // all parts are still there for it
}

void Runtime::Impl::stop_threads() {
  {
    const Lock lock(shared.mutex);
    shared.stop = true;
    models.interrupt();
    jobs.end_running(EndedBy::kShutdown);
  }
  shared.load_work.notify_all();
  shared.decode_work.notify_all();
  shared.deadline_set.notify_all();
  if (loading_) loading_->join();
  if (deadlines_.joinable()) deadlines_.join();
  decoders_.join();
  Lock lock(shared.mutex);
  models.end_everything();  // whoever waits for a load is told
  files.end_everything();
  jobs.end_everything(lock);  // whoever waits for a completion gets it
  idle_work.end_everything(lock);
}

void Runtime::Impl::keep_learned() {
  Lock lock(shared.mutex);
  for (std::size_t i = 0; i < stations.all().size(); ++i) {
    const StationPtr station = stations.all()[i];
    lock.unlock();
    station->keep_learned();
    lock.lock();
  }
}

// `station` may have been replaced and released meanwhile: it is at work once more then.
Status Runtime::Impl::keep(const StationPtr& station) {
  if (stations.has(*station)) return Status();
  try {
    decoders_.start(station);
  } catch (const std::system_error& e) {
    return resource_exhausted(std::string("cannot start a thread: ") + e.what());
  }
  stations.keep(station);
  return Status();
}

std::string Runtime::check_integrity() const {
  Impl& all = *impl_;
  const Impl::Lock lock(all.shared.mutex);
  const std::size_t slots = static_cast<std::size_t>(all.shared.options.slots);
  for (const std::string& broken :
       {all.jobs.check_integrity(slots * all.stations.all().size()), all.stations.check_integrity(),
        all.models.check_integrity(), all.files.check_integrity()}) {
    if (!broken.empty()) return broken;
  }
  return "";
}

Runtime::Runtime(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Runtime::~Runtime() = default;

Result<std::unique_ptr<Runtime>> Runtime::create(const RuntimeOptions& options,
                                                 ModelLoader& loader) {
  OUTRIDER_RETURN_IF_ERROR(validate(options));
  try {
    return std::unique_ptr<Runtime>(new Runtime(std::make_unique<Impl>(options, loader)));
  } catch (const std::system_error& e) {
    return resource_exhausted(std::string("cannot start a thread: ") + e.what());
  }
}

void Runtime::shut_down() { impl_->shut_down(); }

void Runtime::keep_learned() { impl_->keep_learned(); }

const RuntimeOptions& Runtime::options() const { return impl_->shared.options; }

Status Runtime::load(ModelRole role, ModelOptions options, std::optional<ModelOptions> draft) {
  if (options.path.empty() || (draft && draft->path.empty())) {
    return wrong_value("path", "''", "a GGUF file");
  }
  OUTRIDER_RETURN_IF_ERROR(validate(options));
  if (draft) OUTRIDER_RETURN_IF_ERROR(validate(*draft));
  const Impl::Lock lock(impl_->shared.mutex);
  if (impl_->shared.stop) return RuntimeShared::is_shut_down();
  impl_->models.load(role, std::move(options));
  if (draft) impl_->models.load(ModelRole::kDraft, *std::move(draft));
  return Status();
}

Status Runtime::cancel_load(ModelRole role) {
  const Impl::Lock lock(impl_->shared.mutex);
  return impl_->models.cancel(role);
}

Status Runtime::unload(ModelRole role, bool at_once) {
  const Impl::Lock lock(impl_->shared.mutex);
  const StationPtr station = impl_->stations.current();
  const bool ends_requests = at_once && role == ModelRole::kTarget && station != nullptr;
  if (ends_requests) impl_->jobs.end_all_of(*station, EndedBy::kUnload);
  return impl_->models.unload(role);
}

Status Runtime::attach(DrafterFile file) {
  OUTRIDER_RETURN_IF_ERROR(check_file_drafter(file));
  if (file.path.empty()) return wrong_value("path", "''", "a file");
  file.tier = file_option_of(file).tier;
  const Impl::Lock lock(impl_->shared.mutex);
  if (impl_->shared.stop) return RuntimeShared::is_shut_down();
  return impl_->files.attach(std::move(file));
}

Status Runtime::detach(const DrafterFile& file) {
  OUTRIDER_RETURN_IF_ERROR(check_file_drafter(file));
  const Impl::Lock lock(impl_->shared.mutex);
  return impl_->files.detach(file);
}

RuntimeStatus Runtime::status() const {
  const Impl::Lock lock(impl_->shared.mutex);
  RuntimeStatus s{impl_->jobs.totals()};
  s.running = static_cast<std::int64_t>(impl_->jobs.running().size());
  s.queued = static_cast<std::int64_t>(impl_->jobs.waiting().size());
  s.target = impl_->models.status(ModelRole::kTarget);
  s.draft = impl_->models.status(ModelRole::kDraft);
  s.slots = impl_->shared.options.slots;
  s.drafters = impl_->drafters.statuses();
  s.not_kept = impl_->shared.not_kept->texts();
  // Of a draft that is not open nobody knows yet what it is.
  const std::string_view draft = draft_name(s.draft.info ? s.draft.info->architecture : "");
  for (DrafterStatus& drafter : s.drafters) {
    drafter.files = impl_->files.statuses(drafter.name);
    for (const DrafterFileStatus& file : drafter.files) drafter.memory_bytes += file.memory_bytes;
    if (drafter.name != draft) continue;
    drafter.state = s.draft.state;
    drafter.path = s.draft.serving ? s.draft.serving_path : s.draft.path;
    drafter.error = s.draft.error;
  }
  const StationPtr& current = impl_->stations.current();
  if (!current) return s;
  s.exactness = current->target()->exactness();
  s.n_ctx = current->target()->capabilities().n_ctx;
  return s;
}

RuntimeTotals Runtime::totals() const {
  const Impl::Lock lock(impl_->shared.mutex);
  return impl_->jobs.totals();
}

std::shared_ptr<const Target> Runtime::target() const {
  const Impl::Lock lock(impl_->shared.mutex);
  const StationPtr& current = impl_->stations.current();
  return current ? current->target() : nullptr;
}

bool Runtime::has_target() const {
  const Impl::Lock lock(impl_->shared.mutex);
  return impl_->stations.current() != nullptr;
}

std::shared_ptr<const ModelOptions> Runtime::latest_target() const {
  const Impl::Lock lock(impl_->shared.mutex);
  return impl_->models.latest_target();
}

bool Runtime::is_idle() const {
  const Impl::Lock lock(impl_->shared.mutex);
  return !impl_->jobs.any();
}

bool Runtime::wait_loaded(std::int64_t wait_ms) const {
  Impl::Lock lock(impl_->shared.mutex);
  const auto done = [this] { return !impl_->models.busy() && !impl_->files.busy(); };
  if (wait_ms >= 0) {
    return impl_->shared.loaded.wait_for(lock, RuntimeShared::wait_time(wait_ms), done);
  }
  impl_->shared.loaded.wait(lock, done);
  return true;
}

Status Runtime::check_room(std::size_t n) const {
  const Impl::Lock lock(impl_->shared.mutex);
  return impl_->jobs.check_room(n);
}

Result<StartedCompletion> Runtime::start(CompletionRequest request) {
  OUTRIDER_RETURN_IF_ERROR(validate(request));
  StationPtr station;
  IdleTexts idle;
  {
    const Impl::Lock lock(impl_->shared.mutex);
    station = impl_->stations.current();
    if (!station) return impl_->models.no_target();
    OUTRIDER_RETURN_IF_ERROR(impl_->jobs.check_room());  // before any work is done for nothing
    idle = impl_->stations.idle();
  }
  OUTRIDER_ASSIGN_OR_RETURN(const JobPtr job, make_job(std::move(request), std::move(station), idle,
                                                       impl_->shared.options.remember_tokens > 0));
  // Before it is anybody's: from add() on nothing may fail, or the request runs and nobody knows
  // it.
  StartedCompletion started{.prompt = job->result->prompt,
                            .reader = job->result->reader,
                            .hold = std::make_shared<const bool>(true)};
  job->hold = started.hold;

  const Impl::Lock lock(impl_->shared.mutex);
  if (impl_->shared.stop) return RuntimeShared::is_shut_down();
  OUTRIDER_RETURN_IF_ERROR(impl_->jobs.check_room());
  if (!impl_->stations.current()) return impl_->models.no_target();
  OUTRIDER_RETURN_IF_ERROR(impl_->keep(job->station));
  impl_->jobs.add(job);
  started.id = job->id;
  return started;
}

Result<PolledCompletion> Runtime::poll(CompletionId id, std::int64_t wait_ms) {
  Impl::Lock lock(impl_->shared.mutex);
  return impl_->jobs.poll(id, wait_ms, lock);
}

void Runtime::wait_any(std::span<const CompletionId> ids, std::int64_t wait_ms) {
  Impl::Lock lock(impl_->shared.mutex);
  impl_->jobs.wait_any(ids, wait_ms, lock);
}

Status Runtime::cancel(CompletionId id) {
  const Impl::Lock lock(impl_->shared.mutex);
  return impl_->jobs.cancel(id);
}

Result<std::shared_ptr<const CompletionResult>> Runtime::run(CompletionRequest request) {
  OUTRIDER_ASSIGN_OR_RETURN(const StartedCompletion started, start(std::move(request)));
  while (true) {
    OUTRIDER_ASSIGN_OR_RETURN(PolledCompletion polled, poll(started.id, 3'600'000));
    if (polled.finished) return polled.result;
  }
}

Status Runtime::Impl::lend(const TargetWork& work, bool only_free) {
  Lock lock(shared.mutex);
  if (shared.stop) return RuntimeShared::is_shut_down();
  if (!stations.current()) return models.no_target();
  if (only_free && jobs.any()) {
    return resource_exhausted("completions run or wait; try again later");
  }
  return idle_work.queue(work, lock);
}

Status Runtime::with_idle_target(const TargetWork& work) { return impl_->lend(work, false); }
Status Runtime::with_free_target(const TargetWork& work) { return impl_->lend(work, true); }

void Runtime::subscribe(std::function<void(const RuntimeEvent&)> callback, bool wait) {
  impl_->shared.events.subscribe(std::move(callback), wait);
}

}  // namespace outrider
