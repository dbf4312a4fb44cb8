// The part of Session that is about models: init, and the status.
#include <new>
#include <utility>

#include "api/completion_json.h"
#include "rpcserver/session.h"

namespace outrider::rpcserver {
namespace {

using api::text_or_null;
using json::Json;

// Of the newest load: the seed's 0 (not yet), 1 (there), -1 (failed).
int init_success(ModelState state) {
  if (state == ModelState::kReady) return 1;
  return state == ModelState::kFailed ? -1 : 0;
}

Json draft_json(const RuntimeStatus& status, const Status& refusal) {
  const ModelStatus& draft = status.draft;
  const bool no_target = !status.target.serving && status.target.state != ModelState::kLoading;
  const Status& error = refusal.ok() ? draft.error : refusal;
  return {{"state", model_state_name(refusal.ok() ? draft.state : ModelState::kFailed)},
          {"model", draft.path},
          {"progress", draft.progress},
          {"error", text_or_null(error.message())},
          {"waits_for_target", draft.state == ModelState::kLoading && no_target}};
}

Json speculation_json(const RuntimeStatus& status) {
  Json names = Json::array();
  for (const DrafterStatus& drafter : status.drafters) {
    if (drafter.attached) names.push_back(drafter.name);
  }
  Json speculation = {{"drafters", std::move(names)}};
  const std::optional<Exactness>& exactness = status.exactness;
  speculation["exactness"] = exactness ? Json(exactness->verdict()) : Json();
  speculation["exactness_coverage"] = exactness ? text_or_null(exactness->coverage) : Json();
  speculation["exactness_reason"] = exactness ? text_or_null(exactness->reason) : Json();
  return speculation;
}

}  // namespace

bool Session::has_target() const {
  const RuntimeStatus status = runtime_->status();
  return status.target.serving || status.target.state == ModelState::kLoading;
}

bool Session::init(const char* cmd, bool draft_only, bool wait) {
  std::uint64_t load_number = 0;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    try {
      if (!load(cmd, draft_only).ok()) return false;
    } catch (const std::bad_alloc&) {  // an app that only polls the status must not wait for ever
      (draft_only ? state_.draft_refusal : state_.target_refusal) =
          resource_exhausted("out of memory");
      return false;
    }
    load_number = target_loads_;
  }
  if (!wait) return true;
  (void)runtime_->wait_loaded(/*wait_ms=*/-1);
  const bool ready = runtime_->status().target.state == ModelState::kReady;
  const std::lock_guard<std::mutex> lock(mutex_);
  return ready && load_number == target_loads_;  // else it was another one's
}

// The caller holds mutex_, so that loads and what is known of them stay together.
Status Session::load(const char* cmd, bool draft_only) {
  InitCommand command = parse_command(cmd);
  // Bindings that pass one argument leave the other to chance.
  if (draft_only && command.draft.path.empty() && !has_target()) draft_only = false;
  Status refusal = command.refusal;
  if (refusal.ok() && closed_) refusal = shut_down();
  if (refusal.ok()) {
    refusal = draft_only ? load_draft(std::move(command)) : load_target(std::move(command));
  }
  (draft_only ? state_.draft_refusal : state_.target_refusal) = refusal;
  return refusal;
}

Status Session::load_target(InitCommand command) {
  if (command.target.path.empty()) {
    return refused("model", "is needed, the path of a GGUF file");
  }
  note_loaded(runtime_->status());
  const bool has_draft = !command.draft.path.empty();
  const Status accepted = runtime_->load(ModelRole::kTarget, command.target,
                                         has_draft ? std::optional(command.draft) : std::nullopt);
  if (!accepted.ok()) return accepted.field().empty() ? accepted.about("model") : accepted;
  ++target_loads_;
  if (has_draft) {
    state_.draft_refusal = Status();
    state_.draft_warnings.clear();
  }
  // While another target serves, its name and defaults go on with it.
  if (has_served_) {
    pending_ = std::move(command);
  } else {
    state_.config = std::move(command);
    ++n_configs_;
  }
  return Status();
}

// With the mutex, before what depends on it: nobody tells the session when a load has ended.
void Session::note_loaded(const RuntimeStatus& status) {
  has_served_ = has_served_ || status.target.serving;
  if (!pending_ || status.target.state == ModelState::kLoading) return;
  if (status.target.state == ModelState::kReady) {
    state_.config = std::move(*pending_);
    ++n_configs_;
  }
  pending_.reset();
}

Status Session::load_draft(InitCommand command) {
  ModelOptions options = command.draft;
  if (options.path.empty()) {  // a cmd of its own, where the draft is the model
    options.path = command.target.path;
    options.n_gpu_layers = command.target.n_gpu_layers;
    options.lora = command.target.lora;
  }
  if (options.path.empty()) {
    return invalid_argument("model_draft (or model) is needed, the path of a GGUF file")
        .about("model_draft");
  }
  // Where another target is being loaded, the draft is for that one.
  note_loaded(runtime_->status());
  const InitCommand& config = pending_ ? *pending_ : state_.config;
  if (!command.n_ctx && has_target()) options.n_ctx = config.target.n_ctx;
  const Status accepted = runtime_->load(ModelRole::kDraft, options);
  if (!accepted.ok()) return accepted.field().empty() ? accepted.about("model_draft") : accepted;
  state_.draft_warnings = std::move(command.warnings);
  state_.config.defaults.update(command.defaults);
  if (pending_) pending_->defaults.update(command.defaults);
  return Status();
}

Json Session::status() {
  // Under the lock: what it says must not be older than a load that is accepted meanwhile.
  const std::lock_guard<std::mutex> lock(mutex_);
  const RuntimeStatus status = runtime_->status();
  note_loaded(status);
  return status_json(state_, status);
}

Json status_json(const SessionState& state, const RuntimeStatus& status) {
  const ModelStatus& target = status.target;
  const Status& refusal = state.target_refusal;
  Json warnings = state.config.warnings;
  for (const std::string& text : state.draft_warnings) warnings.push_back(text);
  Json notes = target.notes;
  for (const std::string& text : status.draft.notes) notes.push_back(text);
  return {{"init_success", refusal.ok() ? init_success(target.state) : -1},
          {"model_alias", state.config.alias},
          {"model", state.config.target.path},
          {"loading_progress", target.progress},
          {"error", text_or_null((refusal.ok() ? target.error : refusal).message())},
          {"warnings", std::move(warnings)},
          {"notes", std::move(notes)},
          {"draft", draft_json(status, state.draft_refusal)},
          {"speculation", speculation_json(status)}};
}

}  // namespace outrider::rpcserver
