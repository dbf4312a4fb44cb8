#include "api/status_json.h"

#include "api/completion_json.h"
#include "base/build_commit.h"
#include "draft/drafter_table.h"

namespace outrider::api {
namespace {

using json::Json;

Json info_json(const std::optional<ModelInfo>& info) {
  if (!info) return {};
  Json object = {{"path", info->path},
                 {"architecture", text_or_null(info->architecture)},
                 {"name", text_or_null(info->name)},
                 {"description", text_or_null(info->description)},
                 {"n_params", info->n_params},
                 {"size_bytes", info->size_bytes},
                 {"n_ctx_train", info->n_ctx_train},
                 {"has_chat_template", info->has_chat_template},
                 {"chat_tools", info->chat_tools},
                 {"chat_reasoning", info->chat_reasoning}};
  add_kernels(info->kernels, &object);
  object["packed_bytes"] = info->kernels.packed_bytes;
  return object;
}

Json exactness_json(const std::optional<Exactness>& exactness) {
  if (!exactness) return {};
  return {{"verdict", exactness->verdict()},
          {"coverage", text_or_null(exactness->coverage)},
          {"reason", text_or_null(exactness->reason)}};
}

Json memory_json(const std::optional<MemoryStatus>& memory) {
  if (!memory) return {};
  return {{"max_tokens", memory->max_tokens},
          {"namespaces", memory->namespaces},
          {"tokens", memory->tokens},
          {"memory_bytes", memory->memory_bytes}};
}

// `kind`: null for an embedder's own, which needs no model.
std::string kind_name(const DrafterKind* kind) {
  if (kind == nullptr || kind->model == NeededModel::kNone) return "lookup";
  return kind->from == GuessesFrom::kHidden ? "head" : "model";
}

bool remembers(const DrafterKind* kind) {
  return kind != nullptr && kind->lookup != nullptr && kind->lookup->remembers;
}

}  // namespace

Json model_status_json(const ModelStatus& status) {
  return {{"state", std::string(model_state_name(status.state))},
          {"path", text_or_null(status.path)},
          {"progress", status.progress},
          {"error", error_or_null(status.error)},
          {"serving", status.serving},
          {"serving_path", text_or_null(status.serving_path)},
          {"info", info_json(status.info)},
          {"notes", status.notes}};
}

Json status_json(const RuntimeStatus& status) {
  return {{"version", OUTRIDER_VERSION},
          {"commit", text_or_null(std::string(build_commit()))},
          {"target", model_status_json(status.target)},
          {"draft", model_status_json(status.draft)},
          {"exactness", exactness_json(status.exactness)},
          {"n_ctx", status.n_ctx},
          {"slots", status.slots},
          {"running", status.running},
          {"queued", status.queued},
          {"drafters", drafters_json(status)},
          {"not_kept", status.not_kept}};
}

Json stats_json(const RuntimeStatus& s) {
  Json drafters = Json::object();
  for (const DrafterStatus& d : s.drafters) drafters[d.name] = drafter_stats_json(d.totals);
  return {{"started", s.started},
          {"finished", s.finished},
          {"running", s.running},
          {"queued", s.queued},
          {"prompt_tokens", s.prompt_tokens},
          {"cached_tokens", s.cached_tokens},
          {"generated_tokens", s.generated_tokens},
          {"steps", s.steps},
          {"drafted_tokens", s.drafted_tokens},
          {"accepted_tokens", s.accepted_tokens},
          {"acceptance_rate", ratio(s.accepted_tokens, s.drafted_tokens)},
          {"tokens_per_step", ratio(s.emitted_tokens, s.steps)},
          {"drafters", std::move(drafters)}};
}

Json drafter_file_json(const DrafterFileStatus& status) {
  return {{"path", status.file.path},
          {"tier", text_or_null(status.file.tier)},
          {"option", std::string(file_option_of(status.file).name)},
          {"state", std::string(model_state_name(status.state))},
          {"attached", status.serving},
          {"error", error_or_null(status.error)},
          {"file_bytes", status.file_bytes},
          {"memory_bytes", status.memory_bytes}};
}

Json drafters_json(const RuntimeStatus& status) {
  Json list = Json::array();
  for (const DrafterStatus& d : status.drafters) {
    const DrafterKind* const kind = find_drafter_kind(d.name);
    Json files = Json::array();
    for (const DrafterFileStatus& file : d.files) files.push_back(drafter_file_json(file));
    list.push_back({{"name", d.name},
                    {"kind", kind_name(kind)},
                    {"state", std::string(model_state_name(d.state))},
                    {"attached", d.attached},
                    {"path", text_or_null(d.path)},
                    {"error", error_or_null(d.error)},
                    {"memory_bytes", d.memory_bytes},
                    {"files", std::move(files)}});
    if (remembers(kind)) list.back()["remembered"] = memory_json(d.memory);
  }
  return list;
}

Json costs_json(const std::vector<CostPoint>& costs) {
  Json list = Json::array();
  for (const CostPoint& point : costs) {
    list.push_back({{"width", point.width}, {"ms", point.ms}});
  }
  return list;
}

}  // namespace outrider::api
