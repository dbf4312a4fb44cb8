// outrider inspect: what a model is, what it needs, and whether a draft model fits it.
#include <cstdio>
#include <optional>
#include <string>
#include <vector>

#include "backend/vocabulary_side.h"
#include "draft/translated/vocabulary_map.h"
#include "json/json.h"
#include "lab/stats_table.h"
#include "lab/type_costs.h"
#include "llama/base/backend.h"
#include "llama/exactness/exactness_rule.h"
#include "llama/files/model_file.h"
#include "llama/kernels/own_kernels.h"
#include "llama/vocabulary/vocab_match.h"
#include "llama/vocabulary/vocabulary.h"
#include "tools/command.h"
#include "tools/model_options.h"
#include "tools/options.h"
#include "tools/report.h"
#include "tools/terminal.h"
#include "tools/usage.h"

namespace outrider::tools {

using namespace lab;  // NOLINT: what it measures and writes is most of what is said here
namespace {

using json::Json;

constexpr const char* kInspectDetails =
    R"(No weights are read: a file's header and vocabulary are enough. Of a draft model it is measured,
for about a second, what a token takes in each type of weights on this machine.
Memory is weights and the cache of keys and values for --ctx tokens; llama.cpp's working memory
comes on top. Whether a setting is really exact here, the probe of run and compare finds out.)";

// One model, as far as it can be known without running it.
struct Inspected {
  std::shared_ptr<llama::ModelFile> file;
  ModelOptions options;
  llama::LoadPlan plan;
  std::string hint;  // why it may not be exact
  KernelUse kernels;
  std::uint64_t twice_bytes = 0;  // llama::RuleFacts::twice_bytes
};

class InspectCommand : public Command {
 public:
  std::string name() const override { return "inspect"; }
  std::string summary() const override {
    return "say what a model is and needs, and whether a draft model fits it";
  }
  std::string details() const override { return kInspectDetails; }
  void add_options(CLI::App& app) override;
  void check() override;
  int run() override;

 private:
  Result<Inspected> inspect(const ModelOptions& options, const LoadHooks& hooks) const;

  ModelArguments model_;
  OutputArguments output_;
};

void InspectCommand::add_options(CLI::App& app) {
  add_inspected_models(app, model_);
  add_exact_option(app, "Model", model_);
  add_output_options(app, output_);
}

void InspectCommand::check() {
  if (!model_.model) {
    throw UsageError("a model is missing", "usage: outrider inspect TARGET.gguf [DRAFT.gguf]");
  }
}

Result<Inspected> InspectCommand::inspect(const ModelOptions& options,
                                          const LoadHooks& hooks) const {
  // Plain buffers on the processor: the file is only mapped.
  Result<std::shared_ptr<llama::ModelFile>> file =
      llama::ModelFile::load(options.path, /*n_gpu_layers=*/0, /*extra_bufts=*/false, hooks);
  if (!file.ok()) return file.status();
  Result<llama::RuleFacts> facts = llama::read_rule_facts(options);
  if (!facts.ok()) return facts.status();
  Inspected result{.file = std::move(*file), .options = options};
  result.plan = llama::settings_rule(*facts, options);
  result.hint = llama::inexact_hint(*facts, result.plan);
  result.kernels = llama::kernel_use(options.kernels, facts->own_bytes);
  result.twice_bytes = facts->twice_bytes;
  if (result.options.n_ctx == 0) result.options.n_ctx = result.file->facts().n_ctx_train;
  return result;
}

const char* rollback_kind(const llama::ModelFacts& facts) {
  return facts.recurrent || facts.hybrid ? "limited" : "any";
}

std::uint64_t cache_bytes(const Inspected& m) {
  const llama::ContextSettings& c = m.plan.context;
  return m.file->facts().kv_bytes_per_token(c.type_k, c.type_v) *
         static_cast<std::uint64_t>(m.options.n_ctx);
}

Json model_json(const Inspected& m) {
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
          {"vocabulary", f.n_vocab},
          {"chat_template", f.has_chat_template},
          {"rollback", rollback_kind(f)},
          {"kernels", m.kernels.name()},
          {"kernels_reason", m.kernels.own ? Json() : Json(m.kernels.reason)},
          {"memory",
           {{"context", m.options.n_ctx},
            {"weights_bytes", f.size_bytes},
            {"output_packed_bytes", m.twice_bytes},
            {"cache_bytes", cache_bytes(m)},
            {"total_bytes", f.size_bytes + m.twice_bytes + cache_bytes(m)}}},
          {"exactness",
           {{"flash_attention", c.flash_attention},
            {"cache_type_k", c.type_k},
            {"cache_type_v", c.type_v},
            {"repacked_weights", m.plan.extra_bufts},
            {"notes", m.plan.notes},
            {"expected_problem", m.hint.empty() ? Json() : Json(m.hint)}}}};
}

// How a draft's vocabulary stands to the target's.
struct Match {
  const char* kind = "different";
  bool usable = false;
  std::string message;                        // what differs, or why it is refused
  std::optional<VocabularyMap::Share> share;  // when only a part is the same
};

Match match_of(const llama::LlamaVocabulary& target, const llama::LlamaVocabulary& draft) {
  const llama::VocabularyMatch match = llama::match_vocabularies(target, draft);
  if (match.kind == llama::VocabularyMatch::Kind::kIdentical) return {"identical", true, "", {}};
  if (match.usable()) return {"padded", true, match.message, {}};
  const Result<VocabularyMap> map = VocabularyMap::create(side_of(target), side_of(draft), {});
  if (!map.ok()) return {"different", false, map.status().message() + "; " + match.message, {}};
  return {"partly shared", true, map->share().text() + "; " + match.message, map->share()};
}

Json match_json(const Match& match) {
  Json share;
  if (match.share) {
    share = {{"tokens", match.share->shared},
             {"of", match.share->target_size},
             {"of_sample", match.share->of_sample()}};
  }
  return {{"kind", match.kind},
          {"usable", match.usable},
          {"message", match.message.empty() ? Json() : Json(match.message)},
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

std::string model_table(const std::string& role, const Inspected& m, bool needs_exactness) {
  const llama::ModelFacts& f = m.file->facts();
  const llama::ContextSettings& c = m.plan.context;
  std::string table = role + " " + one_line(f.path) + "\n";
  table += row("model", (f.name.empty() ? "" : f.name + ", ") + f.architecture + ", " +
                            parameters_text(f.n_params) + " parameters, " + f.ftype_name);
  table += row("shape", std::to_string(f.n_layer) + " layers of " + std::to_string(f.n_embd) +
                            ", context trained " + std::to_string(f.n_ctx_train) +
                            (f.n_swa > 0 ? ", sliding window " + std::to_string(f.n_swa) : ""));
  table += row("vocabulary", std::to_string(f.n_vocab) + " tokens, " +
                                 (f.has_chat_template ? "with" : "without") + " a chat template");
  table +=
      row("rollback", f.recurrent || f.hybrid
                          ? "limited: recurrent layers; snapshots or saved copies of their state, "
                            "found out when the model is opened"
                          : "any number of tokens");
  table +=
      row("memory",
          size_text(f.size_bytes) + " weights + " +
              (m.twice_bytes > 0 ? size_text(m.twice_bytes) + " output matrix once more + " : "") +
              size_text(cache_bytes(m)) + " cache for " + std::to_string(m.options.n_ctx) +
              " tokens = " + size_text(f.size_bytes + m.twice_bytes + cache_bytes(m)));
  table += row("settings", std::string("flash attention ") + (c.flash_attention ? "on" : "off") +
                               ", keys " + c.type_k + ", values " + c.type_v + ", weights " +
                               (m.plan.extra_bufts ? "packed where it can be" : "as in the file"));
  table += row("kernels", kernels_text(m.kernels));
  for (const std::string& note : m.plan.notes) table += row("", note);
  if (!needs_exactness) return table;
  table += row("exactness", m.hint.empty() ? "nothing is known against it; run and compare probe it"
                                           : "not expected: " + m.hint);
  return table;
}

int InspectCommand::run() {
  Terminal terminal(output_);
  const LoadHooks hooks = terminal.load_hooks("reading");
  Result<Inspected> target = inspect(target_options(model_), hooks);
  terminal.progress.clear();
  if (!target.ok()) return fail(target.status(), terminal.signals);
  Json result = {{"target", model_json(*target)}, {"machine_memory_bytes", llama::memory_limit()}};
  std::string table = model_table("target", *target, /*needs_exactness=*/true);
  if (model_.draft_model) {
    // A draft's numbers need not be exact, so it gets the fastest settings (llama::open_draft).
    ModelOptions fastest = draft_options(model_);
    fastest.exact = ExactMode::kOff;
    Result<Inspected> draft = inspect(fastest, hooks);
    terminal.progress.clear();
    if (!draft.ok()) return fail(draft.status(), terminal.signals);
    const Match match = match_of(target->file->vocabulary(), draft->file->vocabulary());
    result["draft"] = model_json(*draft);
    TypeCosts types;
    if (draft->kernels.own) {
      Result<TypeCosts> measured = measure_type_costs(draft->options.path, llama::physical_cores());
      if (measured.ok()) {
        types = *std::move(measured);
      } else {
        print_warning("types of weights were not measured: " + measured.status().message());
      }
    }
    result["draft"]["weight_types"] = type_costs_json(types);
    result["vocabulary_match"] = match_json(match);
    table += model_table("draft", *draft, /*needs_exactness=*/false);
    if (!types.types.empty()) table += row("cheapest type", cheapest_text(types));
    table += "pair\n" +
             row("vocabularies", match.kind + (match.message.empty() ? "" : ": " + match.message)) +
             row("draft usable", match.usable ? "yes" : "no");
  }
  return print_result(output_.json ? json::encode(result) + "\n" : table);
}

}  // namespace

std::unique_ptr<Command> make_inspect_command() { return std::make_unique<InspectCommand>(); }

}  // namespace outrider::tools
