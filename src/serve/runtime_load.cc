// The loading thread, and what is said of the models. One order at a time, the target's first, so
// that a draft finds the target that it is for.
#include <algorithm>
#include <exception>
#include <future>
#include <new>
#include <type_traits>

#include "serve/runtime_impl.h"

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

Runtime::Impl::Impl(const RuntimeOptions& o, ModelLoader& loader)
    : options(o), loader_(loader), drafter_names_(kDrafterNames.begin(), kDrafterNames.end()) {
  for (const AddedDrafter& added : options.drafters) drafter_names_.push_back(added.name);
  drafters_.resize(drafter_names_.size() + 1);
  loading_thread_ = std::thread([this] { load_loop(); });
  try {
    decode_thread_ = std::thread([this] { decode_loop(); });
    deadline_thread_ = std::thread([this] { deadline_loop(); });
  } catch (...) {
    {
      const Lock lock(mutex_);
      stop_ = true;
    }
    load_work_.notify_all();
    decode_work_.notify_all();
    loading_thread_.join();
    if (decode_thread_.joinable()) decode_thread_.join();
    throw;
  }
}

Runtime::Impl::~Impl() {
  events.subscribe({});  // no callback finds this half gone
  shut_down();
}

void Runtime::Impl::shut_down() {
  std::call_once(shut_down_, [this] { join_threads(); });
}

void Runtime::Impl::join_threads() {
  {
    const Lock lock(mutex_);
    stop_ = true;
    for (Role* role : {&target_role_, &draft_role_}) {
      if (role->order) role->order->cancel.store(true);
    }
    for (const JobPtr& job : running_) {
      try {
        end(*job, EndedBy::kShutdown);
      } catch (const std::bad_alloc&) {  // then it is ended after the step that is running
      }
    }
  }
  load_work_.notify_all();
  decode_work_.notify_all();
  deadline_set_.notify_all();
  loading_thread_.join();
  deadline_thread_.join();
  decode_thread_.join();
  end_all();
}

Status Runtime::Impl::load(ModelRole role, ModelOptions o) {
  if (o.path.empty()) return invalid_argument("--path is '', but must be a GGUF file");
  o.n_sequences = options.slots;
  const Lock lock(mutex_);
  if (stop_) return is_shut_down();
  order(role, std::move(o));
  return Status();
}

void Runtime::Impl::order(ModelRole role, ModelOptions o) {
  const OrderPtr order = std::make_shared<Order>();
  order->options = std::move(o);
  Role& r = role_of(role);
  if (r.order) r.order->cancel.store(true);
  r.status.path = order->options.path;
  r.status.progress = 0.0;
  r.order = order;
  set_status(role, ModelState::kLoading, Status());
  load_work_.notify_all();
}

Status Runtime::Impl::cancel_load(ModelRole role) {
  const Lock lock(mutex_);
  Role& r = role_of(role);
  if (!r.order) {
    return not_found("no " + std::string(model_role_name(role)) + " is being loaded");
  }
  r.order->cancel.store(true);
  r.order.reset();
  set_status(role, ModelState::kFailed, cancelled("loading was cancelled"));
  loaded_.notify_all();
  return Status();
}

Status Runtime::Impl::unload(ModelRole role, bool at_once) {
  const Lock lock(mutex_);
  Role& r = role_of(role);
  if (!r.order && !r.status.serving) {
    return not_found("no " + std::string(model_role_name(role)) + " is loaded or being loaded");
  }
  if (r.order) r.order->cancel.store(true);
  r.order.reset();
  if (role == ModelRole::kDraft && current_) {
    changes_.push_back({current_, std::unique_ptr<Draft>(), "the draft model was unloaded"});
  } else if (role == ModelRole::kTarget && current_) {
    if (at_once) end_requests_of(*current_);
    take_out_of_service();
  }
  r.status.serving = false;
  r.status.path.clear();
  set_status(role, ModelState::kAbsent, Status());
  decode_work_.notify_all();
  loaded_.notify_all();
  return Status();
}

void Runtime::Impl::end_requests_of(const Station& station) {
  std::vector<JobPtr> open(queue_.begin(), queue_.end());  // those that wait leave the queue
  open.insert(open.end(), running_.begin(), running_.end());
  for (const JobPtr& job : open) {
    if (job->station.get() == &station) end(*job, EndedBy::kUnload);
  }
}

// There is no target for new requests any more, no draft and none of their files. What runs is not
// touched.
void Runtime::Impl::take_out_of_service() {
  current_.reset();
  idle_ = IdleTexts();
  no_drafters();
  drop_files();
  target_role_.status.serving = false;
  draft_role_.status.serving = false;
  if (draft_role_.order) return;
  draft_role_.status.path.clear();
  set_status(ModelRole::kDraft, ModelState::kAbsent, Status());
}

// Keeps what belongs to the model at work in step with `serving`.
void Runtime::Impl::set_status(ModelRole role, ModelState state, Status error) {
  ModelStatus& status = role_of(role).status;
  status.state = state;
  status.error = std::move(error);
  if (!status.serving) {
    status.serving_path.clear();
    status.info.reset();
    status.notes.clear();
  }
  announce(role);
}

void Runtime::Impl::announce(ModelRole role) {
  if (!events.wanted()) return;
  try {
    RuntimeEvent event;
    event.model = ModelEvent{.role = role, .status = role_of(role).status};
    events.post(std::move(event));
  } catch (const std::exception&) {  // out of memory: the status says the same
  }
}

RuntimeStatus Runtime::Impl::status() {
  const Lock lock(mutex_);
  RuntimeStatus s = totals_;
  s.target = target_role_.status;
  s.draft = draft_role_.status;
  s.slots = options.slots;
  s.drafters = drafter_statuses();
  s.running = static_cast<std::int64_t>(running_.size());
  s.queued = static_cast<std::int64_t>(queue_.size());
  if (!current_) return s;
  s.exactness = current_->target()->exactness();
  s.n_ctx = current_->target()->capabilities().n_ctx;
  return s;
}

bool Runtime::Impl::wait_loaded(std::int64_t wait_ms) {
  Lock lock(mutex_);
  const auto done = [this] {
    const bool draft_waits = draft_role_.order && !draft_role_.order->active && !current_;
    return !target_role_.order && (!draft_role_.order || draft_waits) && !file_orders_wait();
  };
  if (wait_ms >= 0) {
    return loaded_.wait_for(lock, wait_time(wait_ms), done);
  }
  loaded_.wait(lock, done);
  return true;
}

// A draft's order waits for a target.
std::optional<ModelRole> Runtime::Impl::next_order() const {
  if (target_role_.order) return ModelRole::kTarget;
  if (draft_role_.order && current_) return ModelRole::kDraft;
  return std::nullopt;
}

void Runtime::Impl::load_loop() {
  Lock lock(mutex_);
  while (true) {
    load_work_.wait(lock, [this] { return stop_ || next_order() || next_file() != nullptr; });
    if (stop_) return;
    const std::optional<ModelRole> role = next_order();
    if (role) {
      const OrderPtr order = role_of(*role).order;
      order->active = true;
      carry_out(*role, order, lock);
    } else {
      open_file(lock);
    }
    loaded_.notify_all();
  }
}

void Runtime::Impl::carry_out(ModelRole role, const OrderPtr& order, Lock& lock) {
  Status status;
  try {
    const LoadHooks hooks = hooks_for(role, order);
    status = role == ModelRole::kTarget ? open_target(*order, hooks, lock)
                                        : open_draft(*order, hooks, lock);
  } catch (const std::bad_alloc&) {
    if (!lock.owns_lock()) lock.lock();
    status = resource_exhausted("out of memory");  // short enough to need none
  } catch (const std::exception& e) {
    if (!lock.owns_lock()) lock.lock();
    status = internal_error("cannot load '" + order->options.path + "': " + e.what());
  }
  Role& r = role_of(role);
  if (r.order != order) return;  // a newer one has taken its place, or it was called off
  r.order.reset();
  if (status.ok()) {
    r.status.progress = 1.0;
    set_status(role, ModelState::kReady, Status());
  } else {
    set_status(role, ModelState::kFailed, std::move(status));
  }
}

LoadHooks Runtime::Impl::hooks_for(ModelRole role, const OrderPtr& order) {
  LoadHooks hooks;
  hooks.cancel = &order->cancel;
  hooks.progress = [this, role, order](double fraction) {
    const Lock lock(mutex_);
    Role& r = role_of(role);
    if (r.order != order) return;
    const bool shown = fraction >= r.status.progress + 0.01;
    r.status.progress = std::clamp(fraction, r.status.progress, 1.0);
    if (shown) announce(role);
  };
  return hooks;
}

// Both open the model without the lock and return with it.
Status Runtime::Impl::open_target(const Order& order, const LoadHooks& hooks, Lock& lock) {
  lock.unlock();
  Result<std::unique_ptr<Target>> opened =
      on_own_thread([&] { return loader_.load_target(order.options, hooks); });
  std::shared_ptr<Station> station;
  if (opened.ok()) station = std::make_shared<Station>(std::move(*opened), options);
  lock.lock();
  if (!opened.ok()) return opened.status();
  if (order.cancel.load()) {
    lock.unlock();
    station.reset();  // takes a while
    lock.lock();
    return cancelled("loading was cancelled");
  }
  stations_.push_back(station);
  current_ = std::move(station);
  idle_ = current_->engine().idle();
  note_drafters(*current_);  // nobody else has it yet
  reorder_files();
  const Target& target = *current_->target();
  target_role_.status.serving = true;
  target_role_.status.serving_path = order.options.path;
  target_role_.status.info = target.info();
  target_role_.status.notes = target.notes();
  target_role_.serving = order.options;
  // The draft at work was the old target's; the same file is ordered for the new one.
  const bool follows = draft_role_.status.serving && !draft_role_.order;
  draft_role_.status.serving = false;
  if (follows) this->order(ModelRole::kDraft, draft_role_.serving);
  decode_work_.notify_all();  // the old one may be at its end
  return Status();
}

Status Runtime::Impl::open_draft(const Order& order, const LoadHooks& hooks, Lock& lock) {
  const std::shared_ptr<Station> station = current_;
  lock.unlock();
  Result<std::unique_ptr<Draft>> opened =
      on_own_thread([&] { return loader_.load_draft(order.options, station->target(), hooks); });
  lock.lock();
  if (!opened.ok()) return opened.status();
  if (order.cancel.load()) return cancelled("loading was cancelled");
  if (station != current_) {  // its target was replaced meanwhile: once more, for the new one
    if (current_) return open_draft(order, hooks, lock);
    return cancelled("its target was taken away while it was loading; load it again");
  }
  draft_role_.serving = order.options;
  draft_role_.status.serving = true;
  draft_role_.status.serving_path = order.options.path;
  draft_role_.status.info = (*opened)->info();
  draft_role_.status.notes = (*opened)->notes();
  changes_.push_back({station, std::move(*opened), "the draft model was replaced"});
  decode_work_.notify_all();
  return Status();
}

}  // namespace outrider
