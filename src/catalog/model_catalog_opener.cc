// The opener's half of ModelCatalog: opens and closes models, one after another.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <exception>
#include <new>
#include <utility>

#include "base/caught.h"
#include "base/list_of.h"
#include "base/numbers.h"
#include "catalog/model_catalog.h"
#include "catalog/room_plan.h"

namespace outrider {
namespace {

// Between two looks whether a load is still wanted, or a model that is not is still at work.
constexpr std::int64_t kLookMs = 20;
// Between two looks whether the default model is lost, which nobody tells either.
constexpr std::int64_t kLossMs = 100;
constexpr double kLongestRetryMs = 60'000;

// Never throws. Where memory is lacking, for the name too, that alone is said.
Status caught_opening(const std::exception& error, const std::string& name) {
  Status status = caught(error);
  if (status.code() != StatusCode::kInternal) return status;
  try {
    return status.with_context("model '" + name + "'");
  } catch (const std::bad_alloc& lacking) {
    return caught(lacking);
  }
}

}  // namespace

void ModelCatalog::run_opener() {
  for (;;) {
    Model* next = nullptr;
    {
      Lock lock(mutex_);
      wait_for_work(lock);
      if (!ending_ && closed_.empty()) {
        next = queue_.front();
        queue_.erase(queue_.begin());
        next->state = State::kOpening;
      }
    }
    end_closed();
    if (next != nullptr) open(*next);
    const Lock lock(mutex_);
    if (!ending_ || !closed_.empty()) continue;
    for (Model* const model : std::exchange(queue_, {})) {
      end_load(*model, cancelled("shutting down"));  // short: there may be no memory
    }
    return;
  }
}

// Nobody tells when the last completion of a model has ended, so one that is only waiting for that
// is looked at now and then.
void ModelCatalog::wait_for_work(Lock& lock) {
  const auto has_work = [this] { return ending_ || !closed_.empty() || !queue_.empty(); };
  while (!has_work()) {
    bool is_one_unwanted = false;
    for (const std::unique_ptr<Model>& model : models_) {
      if (model->state != State::kReady || !model->unwanted) continue;
      close_if_unwanted(*model);
      is_one_unwanted = is_one_unwanted || model->unwanted;
    }
    reopen_default();
    if (has_work()) return;
    changed_.wait_for(lock, std::chrono::milliseconds(is_one_unwanted ? kLookMs : kLossMs));
  }
}

// Whoever watches /health sends nothing to a server whose default model cannot answer, and nothing
// would open it. One that is only not open answers the next request. Where there was no memory for
// it with all others closed, they stay open this time: what it needs may have come free elsewhere.
void ModelCatalog::reopen_default() {
  if (models_.empty()) return;
  Model& model = *models_.front();
  try {
    if (model.unwanted || (model.state != State::kFailed && !loss_of(model))) return;
    const double longest_ms = std::max(options_.retry_ms, kLongestRetryMs);
    const double wait_ms = std::min(std::ldexp(options_.retry_ms, model.n_reopened), longest_ms);
    if (options_.now() - model.ended_ms < wait_ms) return;
    Status no_memory = model.no_memory;
    enqueue(model);
    model.no_memory = std::move(no_memory);
    ++model.n_reopened;
  } catch (const std::bad_alloc&) {  // at the next look
  }
}

// Frees them, which waits for their threads.
void ModelCatalog::end_closed() {
  {
    const Lock lock(mutex_);
    ended_.swap(closed_);
  }
  ended_.clear();
}

// Does not throw: whatever happens is the outcome of this load.
void ModelCatalog::open(Model& model) {
  Status outcome;
  try {
    outcome = try_open(model);
  } catch (const std::exception& error) {
    outcome = caught_opening(error, model.entry.name);
  }
  std::shared_ptr<Runtime> runtime;
  {
    const Lock lock(mutex_);
    if (outcome.ok()) model.no_memory = Status();
    end_load(model, std::move(outcome));
    if (model.state == State::kReady) runtime = model.runtime;
  }
  if (runtime) wait_for_rest(model, runtime);
}

Status ModelCatalog::try_open(Model& model) {
  OUTRIDER_RETURN_IF_ERROR(estimate(model));
  OUTRIDER_RETURN_IF_ERROR(make_room(model));
  const auto try_load = [&]() -> Status {
    try {
      return load(model);
    } catch (const std::bad_alloc& error) {
      return caught(error);
    }
  };
  Status outcome = try_load();
  // The estimate was too low, or something else took the memory.
  while (outcome.code() == StatusCode::kResourceExhausted) {
    {
      const Lock lock(mutex_);
      if (spares_others(model)) return model.no_memory;
      if (Model* const oldest = oldest_idle(model)) {
        close(*oldest);
      } else if (names_in_use(model).empty()) {
        model.no_memory = unsupported(outcome.message());  // no room to wait for
        return model.no_memory;
      } else {
        return outcome;
      }
    }
    end_closed();
    outcome = try_load();
  }
  return outcome;
}

// Sets `bytes`, unless they are known.
Status ModelCatalog::estimate(Model& model) {
  for (;;) {
    std::shared_ptr<const ModelOptions> target;
    {
      const Lock lock(mutex_);
      if (model.bytes) return Status();
      target = model.target;
    }
    OUTRIDER_ASSIGN_OR_RETURN(std::uint64_t bytes, loader_.estimate_memory(*target));
    if (model.entry.draft) {
      const Result<std::uint64_t> draft = loader_.estimate_memory(*model.entry.draft);
      // One that cannot be opened keeps no target from answering; its load will say why.
      bytes += draft.ok() ? *draft : 0;
    }
    const Lock lock(mutex_);
    if (model.target == target) model.bytes = bytes;  // else load_target() came
  }
}

std::uint64_t ModelCatalog::open_bytes() const {
  std::uint64_t sum = 0;
  for (const std::unique_ptr<Model>& model : models_) {
    if (model->runtime) sum += model->bytes.value_or(0);
  }
  return sum;
}

std::size_t ModelCatalog::n_open() const {
  return static_cast<std::size_t>(
      std::count_if(models_.begin(), models_.end(),
                    [](const std::unique_ptr<Model>& model) { return model->runtime != nullptr; }));
}

std::string ModelCatalog::names_in_use(const Model& but) const {
  std::vector<std::string> names;
  for (const std::unique_ptr<Model>& model : models_) {
    if (model.get() != &but && model->runtime && !may_close(*model)) {
      names.push_back(model->entry.name);
    }
  }
  return list_of(names);
}

// Closes what must go for it, or nothing with an error. The runtime that a died target left keeps
// its room.
Status ModelCatalog::make_room(Model& model) {
  const bool has_limit = options_.memory_bytes > 0;
  const std::uint64_t free_now = has_limit || !options_.free_memory ? 0 : options_.free_memory();
  {
    const Lock lock(mutex_);
    if (model.runtime) return Status();
    std::vector<Model*> models;
    std::vector<OpenModel> open;
    for (const std::unique_ptr<Model>& other : models_) {
      if (!other->runtime) continue;
      models.push_back(other.get());
      open.push_back({.bytes = other->bytes.value_or(0),
                      .last_use = other->last_use,
                      .idle = may_close(*other)});
    }
    // What a machine has free is no certainty, so a model that would be alone there is tried.
    RoomWanted wanted{.bytes = model.bytes.value_or(0),
                      .max_models = options_.max_models,
                      .even_without = !has_limit};
    if (has_limit) {
      const std::uint64_t taken = open_bytes();
      wanted.free = options_.memory_bytes > taken ? options_.memory_bytes - taken : 0;
    } else if (free_now > 0) {
      wanted.free = free_now;
    }
    const std::optional<std::vector<std::size_t>> plan = plan_room(wanted, open);
    if (!plan) return why_no_room(model, has_limit ? options_.memory_bytes : free_now);
    if (!plan->empty() && spares_others(model)) return model.no_memory;
    for (const std::size_t index : *plan) close(*models[index]);
  }
  end_closed();
  return Status();
}

// `limit`: of the memory, as far as there is one.
Status ModelCatalog::why_no_room(const Model& model, std::uint64_t limit) const {
  const std::string who = "model '" + model.entry.name + "' ";
  const std::string in_use = names_in_use(model);
  const std::uint64_t bytes = model.bytes.value_or(0);
  const std::string size = "needs about " + gibibytes(bytes);
  if (options_.memory_bytes > 0 && bytes > limit) {
    return unsupported(who + size + ", more than the " + gibibytes(limit) +
                       " that all models together may take; a smaller context or fewer "
                       "slots need less");
  }
  if (options_.max_models > 0 && n_open() >= static_cast<std::size_t>(options_.max_models)) {
    return resource_exhausted(who + "cannot be opened now: no more than " +
                              std::to_string(options_.max_models) +
                              " may be open at once, and requests run on " + in_use);
  }
  return resource_exhausted(
      who + "cannot be opened now: it " + size + ", " +
      (options_.memory_bytes > 0 ? "all models together may take " : "free are ") +
      gibibytes(limit) + ", and requests run on " + in_use);
}

// The one that was used longest ago; null when all others are in use.
ModelCatalog::Model* ModelCatalog::oldest_idle(const Model& but) const {
  Model* oldest = nullptr;
  for (const std::unique_ptr<Model>& model : models_) {
    if (model.get() == &but || !may_close(*model)) continue;
    if (oldest == nullptr || model->last_use < oldest->last_use) oldest = model.get();
  }
  return oldest;
}

// Makes the model's runtime where it has none, and begins to load into it.
Result<std::shared_ptr<Runtime>> ModelCatalog::begin_load(Model& model) {
  std::shared_ptr<Runtime> runtime;
  {
    const Lock lock(mutex_);
    runtime = model.runtime;
  }
  if (runtime == nullptr) {
    Result<std::unique_ptr<Runtime>> made = Runtime::create(options_.runtime, loader_);
    if (!made.ok()) return made.status();
    runtime = std::move(*made);
  }
  const RuntimeStatus status = runtime->status();
  // They wait for the target. A runtime whose target was lost keeps its own, which a client may
  // have changed; where one was unloaded, its files have gone with it.
  const bool has_files = std::any_of(status.drafters.begin(), status.drafters.end(),
                                     [](const DrafterStatus& of) { return !of.files.empty(); });
  if (status.target.state == ModelState::kAbsent && !has_files) {
    for (const DrafterFile& file : model.entry.files) {
      OUTRIDER_RETURN_IF_ERROR(runtime->attach(file));
    }
  }
  // One that is kept or waits is what a client may have changed; one that failed, or went with its
  // target, is loaded again.
  const bool has_draft =
      status.draft.state == ModelState::kLoading || status.draft.state == ModelState::kReady;
  {
    const Lock lock(mutex_);  // what load_target() brings takes the place of this load, or is it
    if (ending_) return cancelled("the server is shutting down");
    model.runtime = runtime;
    OUTRIDER_RETURN_IF_ERROR(runtime->load(ModelRole::kTarget, *model.target,
                                           has_draft ? std::nullopt : model.entry.draft));
  }
  return runtime;
}

// Until the target is ready, or the load has failed or is not wanted any more.
Status ModelCatalog::load(Model& model) {
  Result<std::shared_ptr<Runtime>> begun = begin_load(model);
  if (!begun.ok()) return begun.status();
  Runtime& runtime = **begun;
  bool is_called_off = false;
  for (;;) {
    const bool is_done = runtime.wait_loaded(kLookMs);
    const ModelStatus target = runtime.status().target;
    if (target.state != ModelState::kLoading || is_done) {
      if (target.state == ModelState::kReady) return Status();
      if (!target.error.ok()) {
        return is_called_off
                   ? cancelled("model '" + model.entry.name + "' was unloaded while it was opened")
                   : target.error;
      }
      return cancelled("model '" + model.entry.name + "' was unloaded while it was opened");
    }
    const Lock lock(mutex_);
    if (is_called_off || !model.unwanted || ending_) continue;
    (void)runtime.cancel_load(ModelRole::kTarget);  // not found: it is done already
    is_called_off = true;
  }
}

// A draft and files take memory, too: the next model's room is looked for when they are there.
void ModelCatalog::wait_for_rest(Model& model, const std::shared_ptr<Runtime>& runtime) {
  while (!runtime->wait_loaded(kLookMs)) {
    const Lock lock(mutex_);
    if (ending_ || model.runtime != runtime) return;
  }
}

}  // namespace outrider
