#include "catalog/model_catalog.h"

#include <algorithm>
#include <cassert>
#include <chrono>
#include <system_error>
#include <utility>

#include "base/list_of.h"
#include "base/nearest.h"
#include "base/utf8.h"

namespace outrider {
namespace {

constexpr std::chrono::milliseconds kAsk{50};  // between two calls of give_up
constexpr std::size_t kNamesShown = 8;

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

}  // namespace

Result<std::unique_ptr<Catalog>> Catalog::create(std::vector<CatalogEntry> entries,
                                                 CatalogOptions options, ModelLoader& loader) {
  OUTRIDER_RETURN_IF_ERROR(validate(options.runtime));
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
    : options_(std::move(options)), loader_(loader) {
  for (CatalogEntry& entry : entries) {
    entry.target.n_sequences = options_.runtime.slots;
    if (entry.draft) entry.draft->n_sequences = options_.runtime.slots;
    slots_.push_back(std::make_unique<Slot>());
    Slot& slot = *slots_.back();
    slot.entry = std::move(entry);
    by_name_.emplace(slot.entry.name, &slot);
    for (const std::string& alias : slot.entry.aliases) by_name_.emplace(alias, &slot);
  }
}

ModelCatalog::~ModelCatalog() {
  shut_down();
  assert(std::all_of(slots_.begin(), slots_.end(),
                     [](const std::unique_ptr<Slot>& slot) { return slot->leases == 0; }));
}

void ModelCatalog::start() {
  opener_ = std::thread([this] { run_opener(); });
}

ModelCatalog::Slot* ModelCatalog::find(std::string_view name) {
  if (name.empty()) return slots_.empty() ? nullptr : slots_.front().get();
  const auto found = by_name_.find(std::string(name));
  return found == by_name_.end() ? nullptr : found->second;
}

Status ModelCatalog::no_model(std::string_view name) const {
  if (slots_.empty()) return not_found("there are no models here");
  std::vector<std::string> names;
  for (const std::unique_ptr<Slot>& slot : slots_) names.push_back(slot->entry.name);
  const std::string near = nearest(std::string(name), names);
  const std::size_t n = names.size();
  names.resize(std::min(n, kNamesShown));
  std::string message = "there is no model '" + std::string(name) + "'; ";
  message += near.empty() ? "" : "did you mean '" + near + "'? ";
  message += (n > kNamesShown ? "some of the " + std::to_string(n) + " models are "
              : n == 1        ? "the only model is "
                              : "models are ") +
             list_of(names);
  return not_found(std::move(message));
}

bool ModelCatalog::serves(const Slot& slot) {
  return slot.state == State::kReady && slot.runtime->target() != nullptr;
}

void ModelCatalog::enqueue(Slot& slot) {
  slot.state = State::kQueued;
  slot.unwanted = false;
  queue_.push_back(&slot);
  changed_.notify_all();
}

// REQUIRES: may_close()
void ModelCatalog::close(Slot& slot) {
  hand_to_opener(slot);
  slot.state = State::kAbsent;
  slot.unwanted = false;
}

void ModelCatalog::hand_to_opener(Slot& slot) {
  closed_.push_back(std::move(slot.runtime));
  slot.runtime = nullptr;
  changed_.notify_all();
}

// After somebody stopped using it.
void ModelCatalog::close_if_unwanted(Slot& slot) {
  if (!idle(slot) || !slot.runtime) return;
  if (slot.state == State::kReady && slot.unwanted) close(slot);
  // A target had died under leases, and was not opened again.
  if (slot.state == State::kAbsent || slot.state == State::kFailed) hand_to_opener(slot);
}

Result<std::shared_ptr<Runtime>> ModelCatalog::acquire(std::string_view name,
                                                       const std::function<bool()>& give_up) {
  Runtime* runtime = nullptr;
  Lock lock(mutex_);
  Slot* const found = find(name);
  if (found == nullptr) return no_model(name);
  Slot& slot = *found;
  const std::uint64_t ended_before = slot.loads_ended;
  Status failure;
  ++slot.waiting;
  while (failure.ok()) {
    if (ending_) {
      failure = ended();
    } else if (serves(slot)) {
      ++slot.leases;
      slot.last_use = ++uses_;
      runtime = slot.runtime.get();
      break;
    } else if (slot.loads_ended != ended_before) {
      failure = !slot.outcome.ok() ? slot.outcome
                                   : internal_error("model '" + slot.entry.name +
                                                    "' ended as soon as it was "
                                                    "ready; the next request opens it again");
    } else if (slot.state == State::kFailed &&
               options_.now() - slot.failed_ms < options_.retry_ms) {
      failure = slot.outcome;
    } else {
      if (slot.state != State::kQueued && slot.state != State::kOpening) enqueue(slot);
      changed_.wait_for(lock, kAsk);
      if (!give_up) continue;
      lock.unlock();
      const bool gives_up = give_up();
      lock.lock();
      if (gives_up && !serves(slot)) {
        failure = cancelled("nobody waits any more for model '" + slot.entry.name + "'");
      }
    }
  }
  --slot.waiting;
  if (runtime == nullptr) {
    close_if_unwanted(slot);
    return failure;
  }
  lock.unlock();
  return lease(slot, runtime);
}

std::shared_ptr<Runtime> ModelCatalog::lease(Slot& slot, Runtime* runtime) {
  return std::shared_ptr<Runtime>(runtime, [this, &slot](Runtime*) { give_back(slot); });
}

void ModelCatalog::give_back(Slot& slot) {
  const std::lock_guard<std::mutex> lock(mutex_);
  --slot.leases;
  close_if_unwanted(slot);
}

std::shared_ptr<Runtime> ModelCatalog::find_open(std::string_view name) {
  Lock lock(mutex_);
  Slot* const slot = find(name);
  if (slot == nullptr || ending_ || !serves(*slot)) return nullptr;
  ++slot->leases;
  Runtime* const runtime = slot->runtime.get();
  lock.unlock();
  return lease(*slot, runtime);
}

Status ModelCatalog::preload(std::string_view name) {
  const Lock lock(mutex_);
  Slot* const slot = find(name);
  if (slot == nullptr) return no_model(name);
  if (ending_) return ended();
  if (slot->state == State::kQueued || slot->state == State::kOpening || serves(*slot)) {
    return Status();
  }
  enqueue(*slot);
  return Status();
}

Status ModelCatalog::unload(std::string_view name) {
  const Lock lock(mutex_);
  Slot* const slot = find(name);
  if (slot == nullptr) return no_model(name);
  switch (slot->state) {
    case State::kAbsent:
      break;
    case State::kQueued:
      queue_.erase(std::find(queue_.begin(), queue_.end(), slot));
      end_load(*slot,
               cancelled("model '" + slot->entry.name + "' was unloaded before it was open"));
      break;
    case State::kOpening:  // the opener looks at it
      slot->unwanted = true;
      break;
    case State::kReady:
      slot->unwanted = true;
      close_if_unwanted(*slot);
      break;
    case State::kFailed:
      slot->state = State::kAbsent;
      close_if_unwanted(*slot);
      break;
  }
  return Status();
}

// A load was called off, failed, or brought the model into service.
void ModelCatalog::end_load(Slot& slot, Status outcome) {
  ++slot.loads_ended;
  slot.outcome = std::move(outcome);
  if (slot.outcome.ok()) {
    slot.state = State::kReady;
    slot.last_use = ++uses_;
    close_if_unwanted(slot);
  } else {
    const StatusCode code = slot.outcome.code();
    const bool is_told = slot.unwanted || code == StatusCode::kCancelled;
    slot.state = is_told ? State::kAbsent : State::kFailed;
    slot.unwanted = false;
    slot.failed_ms = options_.now();
    if (slot.runtime && slot.leases == 0) hand_to_opener(slot);
  }
  changed_.notify_all();
}

std::vector<CatalogStatus> ModelCatalog::status() const {
  const Lock lock(mutex_);
  std::vector<CatalogStatus> all;
  for (const std::unique_ptr<Slot>& slot : slots_) {
    CatalogStatus one{.name = slot->entry.name,
                      .aliases = slot->entry.aliases,
                      .path = slot->entry.target.path,
                      .draft_path = slot->entry.draft ? slot->entry.draft->path : "",
                      .offered_draft = slot->entry.offered_draft};
    const RuntimeStatus of = slot->runtime ? slot->runtime->status() : RuntimeStatus{};
    switch (slot->state) {
      case State::kAbsent:
        one.state = ModelState::kAbsent;
        break;
      case State::kQueued:
        one.state = ModelState::kLoading;
        break;
      case State::kOpening:
        one.state = ModelState::kLoading;
        one.progress = of.target.state == ModelState::kLoading ? of.target.progress : 0.0;
        break;
      case State::kReady:
        one.state = of.target.serving ? ModelState::kReady : of.target.state;
        one.progress = of.target.serving ? 1.0 : of.target.progress;
        if (one.state == ModelState::kFailed) one.error = of.target.error;
        break;
      case State::kFailed:
        one.state = ModelState::kFailed;
        one.error = slot->outcome;
        break;
    }
    one.in_use = slot->leases;
    one.estimated_bytes = slot->bytes.value_or(0);
    all.push_back(std::move(one));
  }
  return all;
}

void ModelCatalog::shut_down() {
  std::vector<std::shared_ptr<Runtime>> runtimes;
  {
    const Lock lock(mutex_);
    ending_ = true;
    for (const std::unique_ptr<Slot>& slot : slots_) {
      if (slot->runtime) runtimes.push_back(slot->runtime);
    }
  }
  changed_.notify_all();
  for (const std::shared_ptr<Runtime>& runtime : runtimes) runtime->shut_down();
  const std::lock_guard<std::mutex> joining(joining_);
  if (opener_.joinable()) opener_.join();
}

std::string ModelCatalog::check_integrity() const {
  const Lock lock(mutex_);
  std::size_t opening = 0;
  std::size_t queued = 0;
  for (const std::unique_ptr<Slot>& slot : slots_) {
    const std::string who = "'" + slot->entry.name + "' ";
    const std::ptrdiff_t times = std::count(queue_.begin(), queue_.end(), slot.get());
    if (times != (slot->state == State::kQueued ? 1 : 0)) return who + "is queued wrongly";
    if (slot->leases < 0 || slot->waiting < 0) return who + "was given back twice";
    if (slot->leases > 0 && !slot->runtime) return who + "is leased without a runtime";
    if (slot->state == State::kReady && !slot->runtime) return who + "is ready without a runtime";
    if (slot->state == State::kAbsent && slot->runtime && idle(*slot)) {
      return who + "is absent with a runtime";
    }
    if (slot->state == State::kFailed && slot->outcome.ok()) return who + "failed without a reason";
    if (slot->runtime) {
      const std::string broken = slot->runtime->check_integrity();
      if (!broken.empty()) return who + broken;
    }
    opening += slot->state == State::kOpening ? 1 : 0;
    queued += slot->state == State::kQueued ? 1 : 0;
  }
  if (opening > 1) return "two models are opened at once";
  if (queued != queue_.size()) return "the queue has others";
  if (options_.max_models > 0 && n_open() > static_cast<std::size_t>(options_.max_models)) {
    return "more models are open than may be";
  }
  if (options_.memory_bytes > 0 && open_bytes() > options_.memory_bytes) {
    return "open models take more memory than they may";
  }
  return "";
}

}  // namespace outrider
