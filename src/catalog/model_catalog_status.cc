// What ModelCatalog tells of its models.
#include <algorithm>
#include <iterator>
#include <utility>

#include "base/list_of.h"
#include "base/nearest.h"
#include "catalog/model_catalog.h"

namespace outrider {
namespace {

constexpr std::size_t kNamesShown = 8;

}  // namespace

Status ModelCatalog::no_model(std::string_view name) const {
  if (models_.empty()) return not_found("there are no models here");
  std::vector<std::string> names;
  for (const std::unique_ptr<Model>& model : models_) names.push_back(model->entry.name);
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

// Why its target is gone although nobody unloaded it, where it has not been queued again.
std::optional<Status> ModelCatalog::loss_of(const Model& model) {
  if (model.state != State::kReady || model.runtime->has_target()) return std::nullopt;
  ModelStatus target = model.runtime->status().target;
  if (target.state != ModelState::kFailed) return std::nullopt;
  return std::move(target.error);
}

CatalogStatus ModelCatalog::told(const Model& model) {
  CatalogStatus one{.name = model.entry.name,
                    .aliases = model.entry.aliases,
                    .path = model.target->path,
                    .draft_path = model.entry.draft ? model.entry.draft->path : "",
                    .offered_draft = model.entry.offered_draft};
  RuntimeStatus of = model.runtime ? model.runtime->status() : RuntimeStatus{};
  switch (model.state) {
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
      if (of.target.serving) one.path = std::move(of.target.serving_path);
      break;
    case State::kFailed:
      one.state = ModelState::kFailed;
      one.error = model.outcome;
      break;
  }
  if (model.runtime && model.state == State::kReady) {
    one.notes = std::move(of.target.notes);
    one.notes.insert(one.notes.end(), std::make_move_iterator(of.draft.notes.begin()),
                     std::make_move_iterator(of.draft.notes.end()));
    one.complete = one.state == ModelState::kReady && model.runtime->wait_loaded(0);
    if (of.draft.state == ModelState::kFailed) one.draft_error = of.draft.error;
    for (DrafterStatus& drafter : of.drafters) {
      for (DrafterFileStatus& file : drafter.files) {
        if (file.state == ModelState::kFailed) one.failed_files.push_back(std::move(file));
      }
    }
  }
  one.totals = model.ended;
  one.totals.add(of);
  one.loads_ended = model.loads_ended;
  one.last_load = model.outcome;
  one.n_lost = model.n_lost;
  one.lost = model.lost;
  if (std::optional<Status> lost = loss_of(model)) {
    ++one.n_lost;
    one.lost = *std::move(lost);
  }
  one.reopening = one.state == ModelState::kLoading && model.is_sound;
  one.in_use = model.leases;
  one.waiting = model.waiting;
  one.estimated_bytes = model.bytes.value_or(0);
  return one;
}

std::vector<CatalogStatus> ModelCatalog::status() const {
  const Lock lock(mutex_);
  std::vector<CatalogStatus> all;
  for (const std::unique_ptr<Model>& model : models_) all.push_back(told(*model));
  return all;
}

std::optional<CatalogStatus> ModelCatalog::status_of(std::string_view name) const {
  const Lock lock(mutex_);
  const Model* const model = find(name);
  return model == nullptr ? std::nullopt : std::optional(told(*model));
}

std::string ModelCatalog::check_integrity() const {
  const Lock lock(mutex_);
  std::size_t opening = 0;
  std::size_t queued = 0;
  for (const std::unique_ptr<Model>& model : models_) {
    const std::string who = "'" + model->entry.name + "' ";
    const std::ptrdiff_t times = std::count(queue_.begin(), queue_.end(), model.get());
    if (times != (model->state == State::kQueued ? 1 : 0)) return who + "is queued wrongly";
    if (model->leases < 0 || model->waiting < 0) return who + "was given back twice";
    if (model->leases > 0 && !model->runtime) return who + "is leased without a runtime";
    if (model->state == State::kReady && !model->runtime) return who + "is ready without a runtime";
    if (model->state == State::kAbsent && model->runtime && idle(*model)) {
      return who + "is absent with a runtime";
    }
    if (model->state == State::kFailed && model->outcome.ok()) {
      return who + "failed without a reason";
    }
    if (model->runtime) {
      const std::string broken = model->runtime->check_integrity();
      if (!broken.empty()) return who + broken;
    }
    opening += model->state == State::kOpening ? 1 : 0;
    queued += model->state == State::kQueued ? 1 : 0;
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
