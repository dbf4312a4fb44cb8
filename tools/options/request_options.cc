#include "tools/options/request_options.h"

#include <algorithm>

#include "draft/drafter_table.h"
#include "input/prompt_file.h"
#include "llama/files/gguf_header.h"
#include "llama/grammar/gbnf.h"
#include "llama/schema/json_schema.h"
#include "request/draft_defaults.h"
#include "tools/options/config.h"
#include "tools/options/field_options.h"
#include "tools/options/needs.h"
#include "tools/options/usage.h"

namespace outrider::tools {
namespace {

// Those whose values come from files, or are written otherwise than in JSON.
void add_by_hand(OptionGroup& group, RequestArguments& a) {
  group.add_texts(
      "--dry-sequence-breaker", a.dry_breakers, "TEXT",
      "DRY: what ends a repetition, instead of newline, ':', '\"' and '*'; may be given "
      "several times; none: nothing");
  group.add_texts("--logit-bias", a.logit_bias, "ID(+/-)BIAS",
                  "added to a token's logit, such as 15043+1 or 15043-inf; may be given several "
                  "times");
  group.add_text("--grammar", a.grammar_file, "FILE",
                 "the text keeps to the grammar in this file (GBNF, from its rule 'root')");
  group.add_text("--json-schema", a.schema_file, "FILE",
                 "the text is JSON by the schema in this file");
}

// Of mirostat and what it excludes, the nearer layer wins; of one layer, both are an error.
void check_mirostat(const CLI::App& app, SamplingOptions& o) {
  if (o.mirostat == 0) return;
  std::vector<const Field<SamplingOptions>*> excluded;
  for (const Field<SamplingOptions>& field : sampling_fields()) {
    const bool is_excluded =
        !field.replaced_by.empty() || (field.name == "temp" && !(o.temperature > 0.0f));
    if (is_excluded && app.count(option_name(field.name)) > 0) excluded.push_back(&field);
  }
  const auto layer = [&app](std::string_view field) {
    return layer_of(app, option_name(field).substr(2));
  };
  const Layer of_mirostat = layer("mirostat");
  if (std::any_of(excluded.begin(), excluded.end(), [&](const Field<SamplingOptions>* field) {
        return layer(field->name) > of_mirostat;
      })) {
    o.mirostat = 0;
    return;
  }
  for (const Field<SamplingOptions>* const field : excluded) {
    if (layer(field->name) < of_mirostat) {
      put_back(*field, o);
    } else if (!field->replaced_by.empty()) {  // temp has a message of its own
      throw UsageError(option_name(field->name) + " " + cannot_be_used_with_mirostat(o.mirostat));
    }
  }
}

void check_sampling(RequestArguments& a) {
  SamplingOptions& o = a.request.sampling;
  check_mirostat(*a.app, o);
  // Left over where what a file says of the grammar was replaced.
  if (!a.grammar_file && !a.schema_file && !was_typed(*a.app, "grammar-trigger")) {
    o.grammar_triggers.clear();
  }
  o.logit_bias.clear();
  for (const std::string& text : a.logit_bias) {
    const std::optional<LogitBias> bias = parse_logit_bias(text);
    if (!bias) {
      throw UsageError("--logit-bias is '" + text +
                       "', but must be a token's id, + or -, and a number, such as 15043+1 or "
                       "15043-inf");
    }
    o.logit_bias.push_back(*bias);
  }
  if (!a.dry_breakers.empty()) o.dry_sequence_breakers.clear();
  for (const std::string& breaker : a.dry_breakers) {  // as llama.cpp: "none" undoes those before
    if (breaker == "none") {
      o.dry_sequence_breakers.clear();
    } else {
      o.dry_sequence_breakers.push_back(breaker);
    }
  }
}

// Ok when it can be used.
Status check_constraint_text(const SamplingOptions& o) {
  if (!o.grammar.empty()) return llama::check_gbnf(o.grammar).status();
  OUTRIDER_ASSIGN_OR_RETURN(const std::string grammar,
                            llama::grammar_from_json_schema(o.json_schema));
  return llama::check_gbnf(grammar, llama::kMadeGbnfLimits).status();
}

// Whether that can be told before the target is opened, or downloaded.
bool has_no_own_head(const ModelArguments& model) {
  if (model.target.mtp == HeadChoice::kOff) return true;
  if (!model.model) return false;
  const Result<llama::GgufHeader> header = llama::read_gguf_header(*model.model);
  return header.ok() && header->n_prediction == 0;
}

std::string drafter_text(const CompletionRequest& request) {
  return value_text(field_named(speculation_fields(), "drafter"), request);
}

}  // namespace

void add_request_options(CLI::App& app, RequestArguments& a,
                         std::vector<std::string_view> without) {
  a.app = &app;
  without.insert(without.end(), {"grammar", "dry_sequence_breaker"});  // by hand
  OptionGroup sampling(app, "Sampling");
  add_fields(sampling, output_fields(), a.request, without);
  add_fields(sampling, sampling_fields(), a.request.sampling, without);
  add_by_hand(sampling, a);
  OptionGroup speculation(app, "Speculation");
  add_fields(speculation, speculation_fields(), a.request, without);
  add_fields(speculation, shape_fields(), a.request.draft, without);
  add_drafter_files(speculation, a.files);
}

void check_request(RequestArguments& a, const ModelArguments& model,
                   std::optional<DrafterPlan> automatic) {
  check_sampling(a);
  CompletionRequest checked = a.request;  // the files are read later
  if (a.grammar_file) checked.sampling.grammar = "root";
  if (a.schema_file) checked.sampling.json_schema = "{}";
  require_ok(validate_settings(checked));
  a.request.drafters_by_default = true;
  const CompletionRequest& r = a.request;
  require_ok(check_rule(r, model.target.exact));
  const bool named = r.speculative && !r.drafters.empty();
  const DrafterFile* const typed = typed_file(*a.app, a.files);
  if (r.speculative && !named && r.width == 1 && typed != nullptr) {
    throw UsageError(file_option(*typed) + " is given, but --width is 1, which is plain decoding",
                     "leave one of them out");
  }
  const DrafterPlan plan = named ? r.drafters : automatic ? *automatic : chosen_drafters(a, model);
  // --drafter none was said, so that a call can be compared with itself.
  if (r.speculative) check_drafter_files(*a.app, a.files, plan, drafter_text(r));
  if (named && mentions_draft(plan) && !has_draft(model)) {
    throw UsageError("--drafter is '" + drafter_text(r) + "', but there is no " +
                         (plan.mentions(kDraftModelName) ? "draft model" : "file of that head"),
                     "give one with -d FILE, a GGUF file");
  }
}

Status check_lone_head(const CompletionRequest& r, const Target& target) {
  if (r.drafters.chains.size() != 1 || r.drafters.chains.front().size() != 1) return Status();
  CompletionRequest named = r;
  named.drafters_by_default = false;
  return check_own_head(named, target.no_head_reason());
}

std::string no_template_warning(const Target& target) {
  const ModelInfo& info = target.info();
  if (info.has_chat_template) return "";
  return "'" + info.path +
         "' carries no chat template: conversations are written in ChatML, which it may not know";
}

std::optional<DrafterPlan> asked_drafters(const RequestArguments& a, const ModelArguments& model) {
  const CompletionRequest& r = a.request;
  if (!r.speculative || r.width == 1) return std::nullopt;
  DrafterPlan plan = chosen_drafters(a, model);
  // Reading a header takes a moment, and only this option makes a difference between prediction
  // layers and who guesses beside them.
  if (r.drafters.empty() && a.app->count("--split-p") > 0 && has_no_own_head(model)) {
    std::erase_if(plan.chains, [](const std::vector<std::string>& chain) {
      return needed_model(chain.front()) == NeededModel::kTarget;
    });
  }
  return plan;
}

Status read_constraint(RequestArguments& a) {
  if (!a.grammar_file && !a.schema_file) return Status();
  const std::string option = a.grammar_file ? "--grammar" : "--json-schema";
  const std::string& path = a.grammar_file ? *a.grammar_file : *a.schema_file;
  SamplingOptions& o = a.request.sampling;
  const Result<std::string> text = read_all(path);
  if (!text.ok()) return text.status().with_context(option);
  (a.grammar_file ? o.grammar : o.json_schema) = *text;
  // An empty text would mean no constraint.
  const Status status =
      text->empty() ? invalid_argument("the file is empty") : check_constraint_text(o);
  if (!status.ok()) throw UsageError(option + " '" + path + "': " + status.message());
  return Status();
}

std::vector<std::string> files_read(const RequestArguments& a, const ModelArguments& model) {
  std::vector<std::string> files = model_files(model);
  for (const DrafterFile& file : a.files) files.push_back(file.path);
  for (const auto& file : {a.grammar_file, a.schema_file}) {
    if (file) files.push_back(*file);
  }
  return files;
}

DrafterPlan chosen_drafters(const RequestArguments& a, const ModelArguments& model,
                            const Target* target) {
  const CompletionRequest& r = a.request;
  if (!r.speculative || r.width == 1) return {};
  if (!r.drafters.empty()) return r.drafters;
  std::vector<std::string_view> with_files;
  for (const DrafterFile& file : a.files) with_files.emplace_back(file.drafter);
  DrafterPlan plan = automatic_drafters(r.rule, with_files);
  const bool no_head = target != nullptr && !target->no_head_reason().empty();
  std::erase_if(plan.chains, [&](const std::vector<std::string>& chain) {  // of one drafter each
    const NeededModel file = needed_model(chain.front());
    if (file == NeededModel::kTarget) return no_head;
    return file == NeededModel::kDraft && !(has_draft(model) && chain.front() == model.draft_name);
  });
  return plan;
}

}  // namespace outrider::tools
