#include "serve/model_loads.h"

#include <cassert>
#include <utility>

namespace outrider {

void ModelLoads::load(ModelRole role, ModelOptions options) {
  options.n_sequences = shared_.options.slots;
  ask(role, std::make_shared<const ModelOptions>(std::move(options)));
}

// Needs no memory.
void ModelLoads::ask(ModelRole role, std::shared_ptr<const ModelOptions> options) {
  Model& model = of(role);
  model.task.ask(next_number_++);
  model.wanted = std::move(options);
  changed(role);
  shared_.load_work.notify_all();
}

Status ModelLoads::cancel(ModelRole role) {
  Model& model = of(role);
  if (!model.task.pending()) {
    return not_found("no " + std::string(model_role_name(role)) + " is being loaded");
  }
  model.task.fail(cancelled("loading was cancelled"));
  changed(role);
  shared_.loaded.notify_all();
  return Status();
}

Status ModelLoads::unload(ModelRole role) {
  Model& model = of(role);
  if (!model.task.pending() && !model.task.serving()) {
    return not_found("no " + std::string(model_role_name(role)) + " is loaded or being loaded");
  }
  const StationPtr& current = stations_.current();
  if (role == ModelRole::kDraft && current) {
    stations_.add({current, std::unique_ptr<Draft>(), "the draft model was unloaded"});
  } else if (role == ModelRole::kTarget && current) {
    take_out_of_service();
  }
  model.task.take_away();
  model.wanted.reset();
  changed(role);
  shared_.decode_work.notify_all();
  shared_.loaded.notify_all();
  return Status();
}

// There is no target for new requests any more, no draft and none of their files. What runs is not
// touched, nor the target's own state.
void ModelLoads::take_out_of_service() {
  stations_.take_out_of_service();
  drafters_.none_attached();
  files_.drop();
  draft_.task.lose();
  if (draft_.task.pending()) return;
  draft_.wanted.reset();
  changed(ModelRole::kDraft);
}

void ModelLoads::interrupt() {
  target_.task.interrupt();
  draft_.task.interrupt();
}

void ModelLoads::end_everything() {
  for (const ModelRole role : {ModelRole::kTarget, ModelRole::kDraft}) {
    if (!of(role).task.pending()) continue;
    of(role).task.fail(RuntimeShared::is_shut_down());
    changed(role);
  }
  shared_.loaded.notify_all();
}

std::optional<ModelRole> ModelLoads::next() const {
  if (target_.task.waiting()) return ModelRole::kTarget;
  if (draft_.task.waiting() && stations_.current()) return ModelRole::kDraft;
  return std::nullopt;
}

ModelLoads::Opening ModelLoads::begin(ModelRole role) {
  return {.options = of(role).wanted, .task = of(role).task.begin()};
}

ModelOptions ModelLoads::target_options(const Opening& opening) const {
  ModelOptions options = *opening.options;
  // After a load that failed, what was wanted is not what is at work.
  const std::shared_ptr<const ModelOptions>& draft =
      draft_follows() ? draft_.serving : draft_.wanted;
  if (options.head.empty() && draft) options.head = draft->path;
  return options;
}

void ModelLoads::note_progress(ModelRole role, const LoadTask::Opening& opening, double fraction) {
  LoadTask& task = of(role).task;
  if (task.is_current(opening) && task.note_progress(fraction)) announce(role);
}

void ModelLoads::serves(Model& model, const Opening& opening, ModelInfo info,
                        std::vector<std::string> notes) {
  model.serving = model.served = opening.options;
  model.serving_load = opening.task.number;
  model.info = std::move(info);
  model.notes = std::move(notes);
  model.task.succeed();
}

void ModelLoads::target_opened(const Opening& opening, StationPtr station) {
  assert(target_.task.is_current(opening.task));
  ModelInfo info = station->target()->info();  // first: from put_in_service on nothing may fail
  std::vector<std::string> notes = station->notes();
  stations_.put_in_service(std::move(station));
  drafters_.note(*stations_.current());  // nobody else has it yet
  files_.ask_again();
  serves(target_, opening, std::move(info), std::move(notes));
  const bool follows = draft_follows();
  if (follows) {
    draft_.task.ask(next_number_++);
    draft_.wanted = draft_.serving;
  }
  draft_.task.stop_serving();
  if (follows) changed(ModelRole::kDraft);
  changed(ModelRole::kTarget);
  shared_.decode_work.notify_all();  // the old one may be at its end
}

void ModelLoads::draft_opened(const Opening& opening, StationChange&& change) {
  assert(draft_.task.is_current(opening.task) && stations_.current() != nullptr);
  const Draft& draft = *std::get<std::unique_ptr<Draft>>(change.what);
  ModelInfo info = draft.info;
  std::vector<std::string> notes = draft.notes;
  change.load = opening.task.number;
  stations_.add(std::move(change));
  serves(draft_, opening, std::move(info), std::move(notes));
  changed(ModelRole::kDraft);
  shared_.decode_work.notify_all();
}

void ModelLoads::draft_waits_again([[maybe_unused]] const Opening& opening) {
  assert(draft_.task.is_current(opening.task) && stations_.current() == nullptr);
  draft_.task.wait_again();
}

void ModelLoads::failed(ModelRole role, const LoadTask::Opening& opening, Status why) {
  if (!of(role).task.is_current(opening)) return;
  of(role).task.fail(std::move(why));
  changed(role);
}

bool ModelLoads::busy() const {
  return target_.task.pending() || draft_.task.opening() ||
         (draft_.task.waiting() && stations_.current() != nullptr);
}

void ModelLoads::target_lost(const Station& station, const Status& why) {
  if (stations_.current().get() != &station) return;
  Status reason = why;  // first: from here on nothing may fail, or nobody would say it again
  const bool had_draft = draft_.task.serving() && !draft_.task.pending();
  std::shared_ptr<const ModelOptions> draft = draft_.serving;
  files_.ask_again();  // they wait for the next target, as the draft does
  take_out_of_service();
  if (had_draft) ask(ModelRole::kDraft, std::move(draft));
  target_.task.lose(std::move(reason));
  changed(ModelRole::kTarget);
  shared_.loaded.notify_all();  // what waits for a target is not worked on any more
}

void ModelLoads::draft_not_installed(std::uint64_t load, Status why) {
  if (!draft_.task.serving() || draft_.serving_load != load) return;
  if (draft_.task.number() == load) {
    draft_.task.lose(std::move(why));
  } else {  // the state is that of a newer load
    draft_.task.stop_serving();
  }
  changed(ModelRole::kDraft);
}

// Keeps what belongs to the model at work consistent with serving(), and tells.
void ModelLoads::changed(ModelRole role) {
  Model& model = of(role);
  if (!model.task.serving()) {
    model.serving.reset();
    model.info.reset();
    model.notes.clear();
  }
  announce(role);
}

void ModelLoads::announce(ModelRole role) {
  shared_.events.tell(
      [&] { return RuntimeEvent{.model = ModelEvent{.role = role, .status = status(role)}}; });
}

ModelStatus ModelLoads::status(ModelRole role) const {
  const Model& model = of(role);
  return {.state = model.task.model_state(),
          .path = model.wanted ? model.wanted->path : "",
          .progress = model.task.progress(),
          .error = model.task.error(),
          .serving = model.task.serving(),
          .serving_path = model.task.serving() ? model.serving->path : "",
          .info = model.info,
          .notes = model.notes};
}

Status ModelLoads::no_target() const {
  const ModelState state = target_.task.model_state();
  if (state == ModelState::kLoading) {
    return not_found("the model '" + target_.wanted->path +
                     "' is still loading; wait until it is ready");
  }
  if (state == ModelState::kFailed) {
    return not_found("the model could not be loaded: " + target_.task.error().message());
  }
  return not_found("no model is loaded; load a target first");
}

std::string ModelLoads::check_integrity() const {
  for (const ModelRole role : {ModelRole::kTarget, ModelRole::kDraft}) {
    const Model& model = of(role);
    const std::string whose = std::string(model_role_name(role)) + ": ";
    const std::string broken = model.task.check_integrity();
    if (!broken.empty()) return whose + broken;
    if (model.task.serving() && model.serving == nullptr) return whose + "nobody knows which";
    if (model.task.pending() && model.wanted == nullptr) return whose + "nobody knows which";
  }
  if (target_.task.serving() != (stations_.current() != nullptr)) {
    return "the target is said to be at work without a station, or the other way round";
  }
  return "";
}

}  // namespace outrider
