#include "lab/inspection.h"

#include <cstdio>
#include <utility>

#include "backend/vocabulary_side.h"
#include "base/one_line.h"
#include "draft/drafter_table.h"
#include "draft/model/draft_model.h"
#include "llama/base/backend.h"
#include "llama/files/gguf_family.h"
#include "llama/files/gguf_header.h"
#include "llama/gguf/draft_writer.h"
#include "llama/heads/head_file.h"
#include "llama/heads/hidden_states.h"
#include "llama/vocabulary/vocab_match.h"
#include "llama/vocabulary/vocabulary.h"
#include "run/stats_table.h"

namespace outrider::lab {
namespace {

using json::Json;

Result<InspectedModel> inspect_model(const ModelOptions& options, const LoadHooks& hooks,
                                     bool is_head = false) {
  // Plain buffers on the processor: the file is only mapped.
  llama::FileOptions how;
  how.n_gpu_layers = 0;
  how.extra_bufts = false;
  how.head = is_head;
  Result<std::shared_ptr<llama::ModelFile>> file = llama::ModelFile::load(options.path, how, hooks);
  if (!file.ok()) return file.status();
  OUTRIDER_ASSIGN_OR_RETURN(const llama::GgufHeader header, llama::read_gguf_header(options.path));
  Result<llama::RuleFacts> facts = llama::read_rule_facts(options, header);
  if (!facts.ok()) return facts.status();
  InspectedModel result{.file = std::move(*file), .options = options};
  result.plan = llama::settings_rule(*facts, options);
  std::string ignored;  // a type that does not fit the model's heads becomes f16
  if (result.file->supports_cache_type(result.plan.context.type_v, /*for_k=*/false, &ignored)) {
    OUTRIDER_RETURN_IF_ERROR(llama::check_value_cache(result.plan.context));
  }
  result.hint = llama::inexact_hint(*facts, result.plan);
  result.kernels = llama::kernel_use(options.kernels, result.plan.extra_bufts, facts->own_bytes);
  result.twice_bytes = result.kernels.own ? facts->twice_bytes : 0;
  result.n_prediction = header.n_prediction;
  result.prediction_bytes = header.prediction_bytes;
  if (!llama::has_prediction_layers(header.architecture)) {
    result.prediction_problem =
        "llama.cpp does not evaluate those of the architecture " + header.architecture;
  }
  const llama::ModelFacts& of = result.file->facts();
  const bool cut = of.position_table && result.options.n_ctx > of.n_ctx_train;
  if (result.options.n_ctx == 0 || cut) result.options.n_ctx = of.n_ctx_train;
  return result;
}

const char* rollback_kind(const llama::ModelFacts& facts) {
  return facts.recurrent || facts.hybrid ? "limited" : "any";
}

Json prediction_json(const InspectedModel& m) {
  if (m.n_prediction == 0) return Json();
  return {{"count", m.n_prediction},
          {"bytes", m.prediction_bytes},
          {"problem", m.prediction_problem.empty() ? Json() : Json(m.prediction_problem)}};
}

// What `make-draft` noted in the file (llama/gguf/draft_writer.h): null when it did not make it.
Json made_json(const llama::ModelFile& file) {
  Json made;
  for (const char* const key : {"source", "target", "made", "tokens", "layers"}) {
    const std::optional<std::string> value = file.metadata(gguf::kDraftKeys + std::string(key));
    if (value) made[key] = *value;
  }
  return made;
}

// The same for people; empty when it did not.
std::string made_text(const llama::ModelFile& file) {
  const auto noted = [&file](const std::string& key) {
    return file.metadata(gguf::kDraftKeys + key).value_or("");
  };
  if (noted("source").empty()) return "";
  std::string text =
      "by make-draft of " + noted("source") + " for " + noted("target") + ": " + noted("made");
  if (!noted("tokens").empty()) text += "; tokens " + noted("tokens");
  if (!noted("layers").empty()) text += "; layers " + noted("layers");
  return text;
}

// For people: what is said of a model's settings.
std::vector<std::string> notes_of(const llama::LoadPlan& plan) {
  std::vector<std::string> notes = plan.notes;
  if (!plan.plain_reason.empty()) notes.push_back(plan.plain_reason);
  return notes;
}

Json model_json(const InspectedModel& m) {
  const llama::ModelFacts& f = m.file->facts();
  const llama::ContextSettings& c = m.plan.context;
  return {{"path", f.path},
          {"architecture", f.architecture},
          {"name", f.name},
          {"description", f.description},
          {"type", f.ftype_name},
          {"parameters", f.n_params},
          {"layers", f.n_layer},
          {"embedding", f.n_embd},
          {"context_trained", f.n_ctx_train},
          {"sliding_window", f.n_swa},
          {"prediction_layers", prediction_json(m)},
          {"vocabulary", f.n_vocab},
          {"chat_template", f.has_chat_template},
          {"chat_tools", f.chat_tools},
          {"chat_reasoning", f.chat_reasoning},
          {"made", made_json(*m.file)},
          {"rollback", rollback_kind(f)},
          {"kernels", m.kernels.name()},
          {"kernels_reason", m.kernels.own ? Json() : Json(m.kernels.reason)},
          {"memory",
           {{"context", m.options.n_ctx},
            {"weights_bytes", f.size_bytes},
            {"output_packed_bytes", m.twice_bytes},
            {"cache_bytes", m.cache_bytes()},
            {"total_bytes", m.total_bytes()}}},
          {"exactness",
           {{"flash_attention", c.flash_attention},
            {"cache_type_k", c.type_k},
            {"cache_type_v", c.type_v},
            {"repacked_weights", m.plan.extra_bufts},
            {"notes", notes_of(m.plan)},
            {"expected_problem", m.hint.empty() ? Json() : Json(m.hint)}}}};
}

VocabularyFit compare_vocabularies(const llama::LlamaVocabulary& target,
                                   const llama::LlamaVocabulary& draft) {
  const llama::VocabularyMatch match = llama::match_vocabularies(target, draft);
  if (match.kind == llama::VocabularyMatch::Kind::kIdentical) return {"identical", true, "", {}};
  if (match.usable()) return {"padded", true, match.message, {}};
  const Result<VocabularyMap> map = VocabularyMap::create(side_of(target), side_of(draft), {});
  if (!map.ok()) return {"different", false, map.status().message() + "; " + match.message, {}};
  return {"partly shared", true, map->share().text() + "; " + match.message, map->share()};
}

VocabularyFit fit_of(const llama::ModelFile& target, const llama::ModelFile& draft) {
  VocabularyFit fit = compare_vocabularies(target.vocabulary(), draft.vocabulary());
  const Status can_draft = llama::check_can_draft(draft.facts().path, draft.facts().architecture);
  if (can_draft.ok()) return fit;
  fit.usable = false;
  fit.message += (fit.message.empty() ? "" : "; ") + can_draft.message();
  return fit;
}

// Of a file that is a trained head; where it does not fit it cannot be looked at as a model.
Result<std::optional<InspectedDraft::Head>> inspect_head(const std::string& path,
                                                         const llama::ModelFacts& target) {
  const Result<llama::HeadFile> file = llama::read_head_file(path);
  if (!file.ok()) return file.status();
  if (file->kind == llama::HeadKind::kNone) return std::optional<InspectedDraft::Head>();
  OUTRIDER_RETURN_IF_ERROR(llama::check_head(*file, {.path = target.path,
                                                     .architecture = target.architecture,
                                                     .n_layer = target.n_layer,
                                                     .n_embd = target.n_embd,
                                                     .n_vocab = target.n_vocab}));
  const bool all = file->target_ids.empty();
  return std::optional<InspectedDraft::Head>(
      {.kind = llama::head_kind_name(file->kind),
       .drafter = std::string(draft_name(file->architecture)),
       .layers = file->layers,
       .n_tokens = all ? file->n_vocab : static_cast<std::int32_t>(file->target_ids.size())});
}

Json head_json(const InspectedDraft& draft) {
  if (!draft.head) return Json();
  return {{"kind", draft.head->kind},
          {"drafter", draft.head->drafter},
          {"layers", draft.head->layers},
          {"tokens", draft.head->n_tokens}};
}

std::string head_text(const InspectedDraft::Head& head) {
  std::string text =
      head.kind + ", the drafter " + head.drafter + ": reads what the target's layers";
  for (const std::int32_t layer : head.layers) text += " " + std::to_string(layer);
  return text + " read, guesses " + std::to_string(head.n_tokens) + " of the target's tokens";
}

Json fit_json(const VocabularyFit& fit) {
  Json share;
  if (fit.share) {
    share = {{"tokens", fit.share->shared},
             {"of", fit.share->target_size},
             {"of_sample", fit.share->of_sample()}};
  }
  return {{"kind", fit.kind},
          {"usable", fit.usable},
          {"message", fit.message.empty() ? Json() : Json(fit.message)},
          {"share", std::move(share)}};
}

std::string size_text(std::uint64_t bytes) {
  char text[64];
  const double mib = static_cast<double>(bytes) / (1 << 20);
  std::snprintf(text, sizeof(text), mib < 1024.0 ? "%.1f MiB" : "%.2f GiB",
                mib < 1024.0 ? mib : mib / 1024.0);
  return text;
}

std::string row(const std::string& label, const std::string& value) {
  std::string line = "  " + label;
  line.resize(16, ' ');
  return line + one_line(value) + "\n";
}

std::string parameters_text(std::uint64_t n) {
  char text[64];
  std::snprintf(text, sizeof(text), n < 1000000000 ? "%.1f million" : "%.2f billion",
                static_cast<double>(n) / (n < 1000000000 ? 1e6 : 1e9));
  return text;
}

std::string model_table(const std::string& role, const InspectedModel& m, bool needs_exactness) {
  const llama::ModelFacts& f = m.file->facts();
  const llama::ContextSettings& c = m.plan.context;
  std::string table = role + " " + one_line(f.path) + "\n";
  table += row("model", (f.name.empty() ? "" : f.name + ", ") + f.architecture + ", " +
                            parameters_text(f.n_params) + " parameters, " + f.ftype_name);
  const std::string made = made_text(*m.file);
  if (!made.empty()) table += row("made", made);
  table += row("shape", std::to_string(f.n_layer) + " layers of " + std::to_string(f.n_embd) +
                            ", context trained " + std::to_string(f.n_ctx_train) +
                            (f.n_swa > 0 ? ", sliding window " + std::to_string(f.n_swa) : ""));
  if (m.n_prediction > 0) {
    table +=
        row("heads", std::to_string(m.n_prediction) + " prediction layers (MTP), " +
                         size_text(m.prediction_bytes) + ": " +
                         (m.prediction_problem.empty() ? "the drafter " + std::string(kMtpKind.name)
                                                       : m.prediction_problem));
  }
  table += row("vocabulary",
               std::to_string(f.n_vocab) + " tokens, " +
                   (f.has_chat_template ? "with a chat template"
                                        : "without a chat template (ChatML is used)") +
                   (f.chat_tools ? ", tools" : "") + (f.chat_reasoning ? ", reasoning" : ""));
  table +=
      row("rollback", f.recurrent || f.hybrid
                          ? "limited: recurrent layers; snapshots or saved copies of their state, "
                            "found out when the model is opened; a conversation whose earlier "
                            "part was changed is read again from its start"
                          : "any number of tokens");
  table +=
      row("memory",
          size_text(f.size_bytes) + " weights + " +
              (m.twice_bytes > 0 ? size_text(m.twice_bytes) + " output matrix once more + " : "") +
              size_text(m.cache_bytes()) + " cache for " + std::to_string(m.options.n_ctx) +
              " tokens = " + size_text(m.total_bytes()));
  table += row("settings", std::string("flash attention ") + (c.flash_attention ? "on" : "off") +
                               ", keys " + c.type_k + ", values " + c.type_v + ", weights " +
                               (m.plan.extra_bufts ? "packed where it can be" : "as in the file"));
  table += row("kernels", kernels_text(m.kernels));
  for (const std::string& note : notes_of(m.plan)) table += row("", note);
  if (!needs_exactness) return table;
  // Who asks for it wants to know what `run` would say, which the probe decides.
  const char* const expected = m.options.exact == ExactMode::kOn
                                   ? "not expected, and with exact=on an error then: "
                                   : "not expected: ";
  table += row("exactness", m.hint.empty() ? "nothing is known against it; run and compare probe it"
                                           : expected + m.hint);
  return table;
}

}  // namespace

std::uint64_t InspectedModel::cache_bytes() const {
  const llama::ContextSettings& c = plan.context;
  return file->facts().kv_bytes_per_token(c.type_k, c.type_v) *
             static_cast<std::uint64_t>(options.n_ctx) +
         file->facts().states.bytes(options.n_sequences);
}

std::uint64_t InspectedModel::total_bytes() const {
  return file->facts().size_bytes + twice_bytes + cache_bytes();
}

Result<Inspection> inspect(const ModelOptions& target, const LoadHooks& hooks) {
  Result<InspectedModel> model = inspect_model(target, hooks);
  if (!model.ok()) return model.status();
  return Inspection{.target = *std::move(model), .draft = std::nullopt};
}

Status inspect_draft(const ModelOptions& draft, const LoadHooks& hooks, Inspection& inspection) {
  const llama::ModelFile& target = *inspection.target.file;
  OUTRIDER_ASSIGN_OR_RETURN(std::optional<InspectedDraft::Head> head,
                            inspect_head(draft.path, target.facts()));
  // A draft's numbers need not be exact, so it gets the fastest settings (llama::open_draft).
  ModelOptions fastest = draft;
  fastest.exact = ExactMode::kOff;
  OUTRIDER_ASSIGN_OR_RETURN(InspectedModel model, inspect_model(fastest, hooks, head.has_value()));
  model.n_prediction = 0;  // those of a draft model do not guess
  InspectedDraft& inspected = inspection.draft.emplace(InspectedDraft{.model = std::move(model)});
  inspected.head = std::move(head);
  inspected.fit = fit_of(target, *inspected.model.file);
  if (!inspected.model.kernels.own) return Status();
  Result<TypeCosts> types =
      measure_type_costs(inspected.model.options.path, llama::physical_cores());
  inspected.types_status = types.status();
  if (types.ok()) inspected.types = *std::move(types);
  return Status();
}

Json inspection_json(const Inspection& inspection) {
  Json result = {{"target", model_json(inspection.target)},
                 {"machine_memory_bytes", llama::memory_limit()}};
  if (!inspection.draft) return result;
  result["draft"] = model_json(inspection.draft->model);
  result["draft"]["head"] = head_json(*inspection.draft);
  result["draft"]["weight_types"] = type_costs_json(inspection.draft->types);
  result["vocabulary_match"] = fit_json(inspection.draft->fit);
  return result;
}

std::string inspection_table(const Inspection& inspection) {
  std::string table = model_table("target", inspection.target, /*needs_exactness=*/true);
  if (!inspection.draft) return table;
  const InspectedModel& model = inspection.draft->model;
  const VocabularyFit& fit = inspection.draft->fit;
  const TypeCosts& types = inspection.draft->types;
  table += model_table("draft", model, /*needs_exactness=*/false);
  if (inspection.draft->head) table += row("head", head_text(*inspection.draft->head));
  if (!types.types.empty()) table += row("cheapest type", cheapest_text(types));
  return table + "pair\n" +
         row("vocabularies", fit.kind + (fit.message.empty() ? "" : ": " + fit.message)) +
         row("draft usable", fit.usable ? "yes" : "no");
}

}  // namespace outrider::lab
