#include "catalog/model_catalog.h"

#include <algorithm>
#include <atomic>
#include <cassert>
#include <chrono>
#include <system_error>
#include <utility>

#include "base/on_exit.h"
#include "base/utf8.h"

namespace outrider {
namespace {

constexpr std::chrono::milliseconds kAsk{50};  // between two calls of give_up

Status check_name(const std::string& name) {
  const bool has_control = std::any_of(name.begin(), name.end(), [](char c) {
    return static_cast<unsigned char>(c) < 0x20 || c == 0x7f;
  });
  if (!name.empty() && name.size() <= 128 && !has_control && !first_invalid_utf8(name))
    return Status();
  return invalid_argument("'" + name +
                          "' is no name for a model; it must have 1 to 128 bytes of "
                          "UTF-8 without control characters");
}

Status check_entries(const std::vector<CatalogEntry>& entries) {
  std::unordered_map<std::string, const CatalogEntry*> seen;
  for (const CatalogEntry& entry : entries) {
    std::vector<std::string> names = entry.aliases;
    names.insert(names.begin(), entry.name);
    for (const std::string& name : names) {
      OUTRIDER_RETURN_IF_ERROR(check_name(name));
      const auto [other, is_new] = seen.emplace(name, &entry);
      if (is_new) continue;
      return invalid_argument("two models are called '" + name + "': '" +
                              other->second->target.path + "' and '" + entry.target.path +
                              "'; give one of them another name");
    }
    OUTRIDER_RETURN_IF_ERROR(validate(entry.target).with_context("model '" + entry.name + "'"));
    if (entry.draft) {
      OUTRIDER_RETURN_IF_ERROR(
          validate(*entry.draft).with_context("the draft of model '" + entry.name + "'"));
    }
  }
  return Status();
}

Status ended() { return cancelled("the server is shutting down"); }

// Ids of completions are counted over all models, and over all openings of one.
CatalogOptions with_one_count(CatalogOptions options) {
  if (!options.runtime.last_id) {
    options.runtime.last_id = std::make_shared<std::atomic<CompletionId>>(0);
  }
  return options;
}

}  // namespace

Result<std::unique_ptr<Catalog>> Catalog::create(std::vector<CatalogEntry> entries,
                                                 CatalogOptions options, ModelLoader& loader) {
  OUTRIDER_RETURN_IF_ERROR(prepare_folders(options.runtime));
  if (options.max_models < 0) {
    return wrong_value("max_models", std::to_string(options.max_models), "at least 0");
  }
  OUTRIDER_RETURN_IF_ERROR(check_entries(entries));
  std::unique_ptr<ModelCatalog> catalog =
      std::make_unique<ModelCatalog>(std::move(entries), std::move(options), loader);
  try {
    catalog->start();
  } catch (const std::system_error& error) {
    return resource_exhausted(std::string("the thread that opens models cannot be made: ") +
                              error.what());
  }
  return std::unique_ptr<Catalog>(std::move(catalog));
}

ModelCatalog::ModelCatalog(std::vector<CatalogEntry> entries, CatalogOptions options,
                           ModelLoader& loader)
    : options_(with_one_count(std::move(options))), loader_(loader) {
  for (CatalogEntry& entry : entries) {
    entry.target.n_sequences = options_.runtime.slots;
    if (entry.draft) entry.draft->n_sequences = options_.runtime.slots;
    models_.push_back(std::make_unique<Model>());
    Model& model = *models_.back();
    model.target = std::make_shared<const ModelOptions>(entry.target);
    model.entry = std::move(entry);
    by_name_.emplace(model.entry.name, &model);
    for (const std::string& alias : model.entry.aliases) by_name_.emplace(alias, &model);
  }
  queue_.reserve(models_.size());
  closed_.reserve(models_.size());
  ended_.reserve(models_.size());
}

ModelCatalog::~ModelCatalog() {
  shut_down();
  assert(std::all_of(models_.begin(), models_.end(),
                     [](const std::unique_ptr<Model>& model) { return model->leases == 0; }));
}

void ModelCatalog::start() {
  opener_ = std::thread([this] { run_opener(); });
}

ModelCatalog::Model* ModelCatalog::find(std::string_view name) const {
  if (name.empty()) return models_.empty() ? nullptr : models_.front().get();
  const auto found = by_name_.find(std::string(name));
  return found == by_name_.end() ? nullptr : found->second;
}

bool ModelCatalog::serves(const Model& model) {
  return model.state == State::kReady && model.runtime->has_target();
}

// Whether who asks gets the last load's error, since it failed just now.
bool ModelCatalog::is_refused(const Model& model) const {
  const bool has_failed =
      model.state == State::kFailed ||
      (model.state == State::kAbsent && model.outcome.code() == StatusCode::kResourceExhausted);
  return has_failed && options_.now() - model.ended_ms < options_.retry_ms;
}

// Before its runtime goes, or opens a target anew: what load_target() brought stays. Where none was
// at work it has said so itself. Needs no memory.
void ModelCatalog::follow(Model& model) {
  if (model.state != State::kReady) return;
  const std::shared_ptr<const ModelOptions> latest = model.runtime->latest_target();
  if (latest == nullptr || *latest == *model.target) return;
  model.target = latest;
  model.bytes.reset();
}

void ModelCatalog::enqueue(Model& model) {
  std::optional<Status> lost = loss_of(model);  // first: there may be no memory
  queue_.push_back(&model);
  follow(model);
  if (lost) {
    ++model.n_lost;
    model.lost = *std::move(lost);
    model.is_sound = false;
  }
  model.state = State::kQueued;
  model.unwanted = false;
  model.no_memory = Status();
  changed_.notify_all();
}

// Whether one more may wait until it is open: so many as its runtime takes then. Else all that is
// connected would wait for the whole load, to be refused behind it.
Status ModelCatalog::check_queue(const Model& model) const {
  const std::int64_t most = std::int64_t{options_.runtime.slots} + options_.runtime.max_queue;
  if (model.waiting < most || ending_ || serves(model) || is_refused(model)) return Status();
  return resource_exhausted("the queue is full: " + std::to_string(model.waiting) +
                            " requests are waiting for model '" + model.entry.name +
                            "' to be opened; try again later");
}

// REQUIRES: may_close()
void ModelCatalog::close(Model& model) {
  follow(model);
  hand_to_opener(model);
  model.state = State::kAbsent;
  model.unwanted = false;
}

void ModelCatalog::hand_to_opener(Model& model) {
  model.ended.add(model.runtime->totals());
  closed_.push_back(std::move(model.runtime));
  model.runtime = nullptr;
  changed_.notify_all();
}

// After somebody stopped using it.
void ModelCatalog::close_if_unwanted(Model& model) {
  if (!idle(model) || !model.runtime) return;
  if (model.state == State::kReady) {
    if (model.unwanted && may_close(model)) close(model);
  } else if (model.state == State::kAbsent || model.state == State::kFailed) {
    hand_to_opener(model);  // a target had died under leases, and was not opened again
  }
}

Result<std::shared_ptr<Runtime>> ModelCatalog::acquire(std::string_view name,
                                                       const std::function<bool()>& give_up) {
  Runtime* runtime = nullptr;
  Lock lock(mutex_);
  Model* const found = find(name);
  if (found == nullptr) return no_model(name);
  Model& model = *found;
  OUTRIDER_RETURN_IF_ERROR(check_queue(model));
  // A load that an unload() has called off is not the one that is waited for.
  const bool is_called_off = model.state == State::kOpening && model.unwanted;
  const std::uint64_t ended_before = model.loads_ended + (is_called_off ? 1 : 0);
  model.wanted_again = model.wanted_again || is_called_off;
  Status failure;
  ++model.waiting;
  const OnExit leave([this, &model, &lock] {
    if (!lock.owns_lock()) lock.lock();
    --model.waiting;
    close_if_unwanted(model);
    lock.unlock();
  });
  while (failure.ok()) {
    if (ending_) {
      failure = ended();
    } else if (serves(model)) {
      ++model.leases;
      model.last_use = ++uses_;
      model.n_reopened = 0;
      runtime = model.runtime.get();
      break;
    } else if (model.loads_ended > ended_before) {
      failure = !model.outcome.ok() ? model.outcome
                                    : internal_error("model '" + model.entry.name +
                                                     "' ended as soon as it was "
                                                     "ready; the next request opens it again");
    } else if (is_refused(model)) {
      failure = model.outcome;
    } else {
      if (model.state != State::kQueued && model.state != State::kOpening) enqueue(model);
      changed_.wait_for(lock, kAsk);
      if (!give_up) continue;
      lock.unlock();
      const bool gives_up = give_up();
      lock.lock();
      if (gives_up && !serves(model)) {
        failure = cancelled("nobody waits any more for model '" + model.entry.name + "'");
      }
    }
  }
  if (runtime == nullptr) return failure;
  lock.unlock();
  return lease(model, runtime);
}

std::shared_ptr<Runtime> ModelCatalog::lease(Model& model, Runtime* runtime) {
  return std::shared_ptr<Runtime>(runtime, [this, &model](Runtime*) { give_back(model); });
}

void ModelCatalog::give_back(Model& model) {
  const std::lock_guard<std::mutex> lock(mutex_);
  --model.leases;
  close_if_unwanted(model);
}

std::shared_ptr<Runtime> ModelCatalog::find_open(std::string_view name) {
  Lock lock(mutex_);
  Model* const model = find(name);
  if (model == nullptr || ending_ || !serves(*model)) return nullptr;
  ++model->leases;
  Runtime* const runtime = model->runtime.get();
  lock.unlock();
  return lease(*model, runtime);
}

Result<std::shared_ptr<Runtime>> ModelCatalog::look(std::string_view name) {
  {
    Lock lock(mutex_);
    Model* const model = find(name);
    if (model == nullptr) return no_model(name);
    if (ending_) return ended();
    if (model->runtime) {
      ++model->leases;
      Runtime* const runtime = model->runtime.get();
      lock.unlock();
      return lease(*model, runtime);
    }
  }
  OUTRIDER_ASSIGN_OR_RETURN(std::unique_ptr<Runtime> none,
                            Runtime::create(options_.runtime, loader_));
  return std::shared_ptr<Runtime>(std::move(none));
}

Status ModelCatalog::load_target(std::string_view name, ModelOptions target) {
  if (target.path.empty()) return wrong_value("path", "''", "a GGUF file");
  OUTRIDER_RETURN_IF_ERROR(validate(target));
  target.n_sequences = options_.runtime.slots;
  const auto next = std::make_shared<const ModelOptions>(std::move(target));
  const Lock lock(mutex_);
  Model* const found = find(name);
  if (found == nullptr) return no_model(name);
  if (ending_) return ended();
  Model& model = *found;
  if (serves(model)) return model.runtime->load(ModelRole::kTarget, *next);
  if (model.state == State::kOpening) {
    // A load that has begun gives way to this one; one that was called off is not the one that is
    // wanted now.
    if (model.runtime) OUTRIDER_RETURN_IF_ERROR(model.runtime->load(ModelRole::kTarget, *next));
    model.wanted_again = model.wanted_again || model.unwanted;
    model.unwanted = false;
  } else if (model.state != State::kQueued) {
    enqueue(model);
  }
  model.target = next;
  model.bytes.reset();
  model.no_memory = Status();
  return Status();
}

Status ModelCatalog::preload(std::string_view name) {
  const Lock lock(mutex_);
  Model* const model = find(name);
  if (model == nullptr) return no_model(name);
  if (ending_) return ended();
  if (model->state == State::kQueued || model->state == State::kOpening || serves(*model)) {
    const bool is_opening = model->state == State::kOpening;
    model->wanted_again = model->wanted_again || (is_opening && model->unwanted);
    if (!is_opening) model->unwanted = false;
    model->no_memory = Status();
    return Status();
  }
  enqueue(*model);
  return Status();
}

Status ModelCatalog::unload(std::string_view name) {
  const Lock lock(mutex_);
  Model* const model = find(name);
  if (model == nullptr) return no_model(name);
  switch (model->state) {
    case State::kAbsent:
      break;
    case State::kQueued:
      queue_.erase(std::find(queue_.begin(), queue_.end(), model));
      end_load(*model,
               cancelled("model '" + model->entry.name + "' was unloaded before it was open"));
      break;
    case State::kOpening:  // the opener looks at it
      model->unwanted = true;
      model->wanted_again = false;
      break;
    case State::kReady:
      model->unwanted = true;
      close_if_unwanted(*model);
      changed_.notify_all();  // the opener: for what runs without a lease
      break;
    case State::kFailed:
      model->state = State::kAbsent;
      close_if_unwanted(*model);
      break;
  }
  return Status();
}

// A load was called off, failed, or brought the model into service.
void ModelCatalog::end_load(Model& model, Status outcome) {
  ++model.loads_ended;
  model.outcome = std::move(outcome);
  model.ended_ms = options_.now();
  const bool wanted_again = std::exchange(model.wanted_again, false);
  if (model.outcome.ok()) {
    model.state = State::kReady;
    model.is_sound = true;
    model.unwanted = model.unwanted && !wanted_again;
    model.last_use = ++uses_;
    close_if_unwanted(model);
  } else {
    const StatusCode code = model.outcome.code();
    const bool is_told = model.unwanted || code == StatusCode::kCancelled;
    // Where there is no room nothing is wrong with the model.
    const bool has_failed = !is_told && code != StatusCode::kResourceExhausted;
    model.state = has_failed ? State::kFailed : State::kAbsent;
    if (!is_told) model.is_sound = !has_failed;
    model.unwanted = false;
    if (model.runtime && model.leases == 0) hand_to_opener(model);
    if (wanted_again && is_told && !ending_) enqueue(model);
  }
  changed_.notify_all();
}

void ModelCatalog::shut_down() {
  {
    const Lock lock(mutex_);
    ending_ = true;
  }
  changed_.notify_all();
  for (const std::unique_ptr<Model>& model : models_) {
    std::shared_ptr<Runtime> runtime;
    {
      const Lock lock(mutex_);
      runtime = model->runtime;
    }
    if (runtime) runtime->shut_down();
  }
  const std::lock_guard<std::mutex> joining(joining_);
  if (opener_.joinable()) opener_.join();
}

}  // namespace outrider
