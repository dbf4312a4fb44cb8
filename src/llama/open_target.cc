#include "llama/open_target.h"

#include <algorithm>
#include <utility>

#include "base/clock.h"
#include "base/on_exit.h"
#include "llama.h"
#include "llama/base/backend.h"
#include "llama/draft_file.h"
#include "llama/exactness/exactness_cache.h"
#include "llama/exactness/exactness_key.h"
#include "llama/files/file_stamps.h"
#include "llama/kernels/compute_threads.h"
#include "llama/open_head.h"
#include "llama/prediction.h"
#include "llama/probe/probe.h"
#include "llama/probe_setup.h"
#include "llama/vocabulary/vocabulary.h"

namespace outrider::llama {
namespace {

class Opener {
 public:
  Opener(const ModelOptions& options, const LoadHooks& hooks, const TargetOptions& target)
      : options_(options),
        hooks_(hooks),
        target_(target),
        cache_(target.cache_folder ? *target.cache_folder : default_cache_folder()),
        widest_(std::min(target.widest, std::max(1, options.n_batch))) {}

  Result<OpenedTarget> open();

 private:
  Status load(const LoadPlan& plan);
  Status create_model(const ModelOptions& options, std::int32_t max_width);
  Status judge(const LoadPlan& plan);
  Status judge_by_probe(const LoadPlan& plan);
  Result<std::string> key_of_verdict(const LoadPlan& in_effect,
                                     const std::vector<std::int32_t>& starts) const;
  bool is_enough(const CachedProbe& known) const;
  ProbePassed passed_of(const std::optional<CachedProbe>& known) const;
  Result<ProbeReport> probe(const LoadPlan& plan, const std::vector<std::int32_t>& starts,
                            const ProbePassed& passed);
  void take(const ProbeReport& report);
  void keep(const std::string& key);
  Status insist(const RuleFacts& facts, const LoadPlan& plan);
  Status limit_to_exact(const RuleFacts& facts, const LoadPlan& plan);
  void add_prediction();
  bool needs_probe() const;
  std::int32_t widest_to_probe() const;
  std::int32_t exact_width() const;
  bool bits_are_rows_alone(const ContextSettings& context) const;

  const ModelOptions& options_;
  const LoadHooks& hooks_;
  const TargetOptions& target_;
  ExactnessCache cache_;
  std::int32_t widest_;
  double budget_ms_ = 0.0;  // of a probe

  std::string files_;  // their stamps before any was opened
  RuleFacts facts_;
  PredictionPlan prediction_;
  OpenedTarget opened_;
  ProbeReport report_;  // of the plan that is loaded
};

Result<OpenedTarget> Opener::open() {
  if (target_.widest < 1) {
    return invalid_argument("the width is " + std::to_string(target_.widest) +
                            ", but must be at least 1");
  }
  OUTRIDER_ASSIGN_OR_RETURN(budget_ms_, probe_budget_ms(options_.exact, target_.probe_budget_ms));
  files_ = file_stamps(options_.path, options_.lora);
  OUTRIDER_ASSIGN_OR_RETURN(const GgufHeader header, read_gguf_header(options_.path));
  const Result<RuleFacts> facts = read_rule_facts(options_, header);
  if (!facts.ok()) return facts.status();
  facts_ = *facts;
  LoadPlan plan = settings_rule(*facts, options_);
  plan.context.hidden = states_for_head(options_);
  prediction_ = plan_prediction(options_, plan.context.hidden, header);
  plan.context.hidden.last = prediction_.wanted;
  OUTRIDER_RETURN_IF_ERROR(load(plan));
  if (needs_probe()) {
    OUTRIDER_RETURN_IF_ERROR(judge(plan));
    if (options_.exact == ExactMode::kOn) OUTRIDER_RETURN_IF_ERROR(insist(*facts, plan));
  } else {
    opened_.exactness = {.kind = Exactness::Kind::kExact,
                         .width = 1,
                         .coverage = "not probed: every step is a single step",
                         .reason = ""};
  }
  // Wider than what may be asked for need not have been compared.
  if (opened_.exactness.kind == Exactness::Kind::kUpToWidth && !report_.complete &&
      report_.everywhere >= widest_ && report_.everywhere >= 2) {
    opened_.exactness.kind = Exactness::Kind::kExact;
    opened_.exactness.reason.clear();
  }
  // Not before: what depends on the number of threads is not seen by a probe on fewer of them.
  if (opened_.exactness.kind == Exactness::Kind::kExact &&
      bits_are_rows_alone(opened_.model->settings())) {
    opened_.model->compute_on(threads::Cores::kLeft);
  }
  opened_.settings = opened_.model->settings();
  opened_.notes = opened_.model->notes();
  add_prediction();
  if (opened_.exactness.kind != Exactness::Kind::kExact) {  // what the choices cost, if anything
    opened_.notes.insert(opened_.notes.begin(), plan.notes.begin(), plan.notes.end());
  }
  if (!plan.plain_reason.empty()) opened_.notes.push_back(plan.plain_reason);
  Exactness& exactness = opened_.exactness;
  if (exactness.kind != Exactness::Kind::kExact) {
    LoadPlan in_effect = plan;
    in_effect.extra_bufts = opened_.extra_bufts;
    in_effect.context = opened_.settings;
    const std::string hint = inexact_hint(*facts, in_effect);
    if (!hint.empty()) exactness.reason += (exactness.reason.empty() ? "" : ": ") + hint;
  }
  return std::move(opened_);
}

// Where they fail, the model works without them.
void Opener::add_prediction() {
  if (prediction_.wanted && target_.speculation) {
    Result<std::vector<std::unique_ptr<LlamaModel>>> made =
        open_prediction(*opened_.model, options_);
    if (made.ok()) opened_.prediction = std::move(*made);
    prediction_.fails(made.status());
  }
  opened_.no_prediction_reason = prediction_.why_not;
  if (!prediction_.note.empty()) opened_.notes.push_back(prediction_.note);
}

bool Opener::needs_probe() const {
  return options_.exact == ExactMode::kOn || options_.n_sequences > 1 ||
         (target_.speculation && widest_ > 1);
}

// What kOn decides must not depend on whether this run speculates, so it asks for widths that are
// not needed.
std::int32_t Opener::widest_to_probe() const {
  const std::int32_t usual = options_.exact == ExactMode::kOn ? std::min(16, options_.n_batch) : 2;
  const std::int32_t wished = std::max({2, usual, widest_});
  // Those with recurrent layers are probed in the context that they run in (see probe).
  const Capabilities& capabilities = opened_.model->capabilities();
  return capabilities.rollback == Rollback::kAny ? wished
                                                 : std::min(wished, capabilities.max_width);
}

Status Opener::load(const LoadPlan& plan) {
  opened_.model.reset();  // before its successor: two of them may not fit into memory
  opened_.file.reset();
  FileOptions how = file_options(options_, plan.extra_bufts);
  how.prediction = prediction_.wanted && target_.speculation;
  Result<std::shared_ptr<ModelFile>> file = ModelFile::load(options_.path, how, hooks_);
  if (!file.ok()) return file.status();
  opened_.file = std::move(*file);
  opened_.extra_bufts = plan.extra_bufts;
  opened_.settings = plan.context;
  return create_model(options_, widest_);
}

Status Opener::create_model(const ModelOptions& options, std::int32_t max_width) {
  opened_.model.reset();
  ContextSettings settings = opened_.settings;
  settings.max_width = max_width;
  Result<std::unique_ptr<LlamaModel>> model = LlamaModel::create(opened_.file, options, settings);
  if (!model.ok()) return model.status();
  opened_.model = std::move(*model);
  return Status();
}

// Sets report_ and the verdict.
Status Opener::judge(const LoadPlan& plan) {
  OUTRIDER_RETURN_IF_ERROR(judge_by_probe(plan));
  // The probe's few steps would not show it: llama.cpp cuts a ragged batch of a hybrid model into
  // equal pieces and fills freed cells of its attention out of order (59 of 1,718 rows of lfm2).
  Exactness& exactness = opened_.exactness;
  if (!opened_.file->facts().hybrid || options_.n_sequences == 1) return Status();
  if (exactness.kind == Exactness::Kind::kDistributional) return Status();
  exactness.kind = Exactness::Kind::kDistributional;
  exactness.width = 1;
  exactness.reason =
      "several sequences at once of a model with attention and recurrent layers are not computed "
      "in "
      "the order of single steps; one sequence at a time is";
  return Status();
}

// Error: the verdict cannot be kept, and none that was kept is this one.
Result<std::string> Opener::key_of_verdict(const LoadPlan& in_effect,
                                           const std::vector<std::int32_t>& starts) const {
  // Nobody tells what a worker computes with, so what was seen holds for this connection only.
  if (!options_.workers.empty()) return unsupported("verdicts with workers are not kept");
  Result<std::string> key =
      exactness_key(*opened_.file, options_, in_effect, opened_.model->n_threads(), starts);
  // The key has the content of what lies there now.
  if (file_stamps(options_.path, options_.lora) != files_) {
    return unsupported("'" + options_.path + "' was changed while it was opened");
  }
  return key;
}

// From the cache or by a probe.
Status Opener::judge_by_probe(const LoadPlan& plan) {
  const LlamaModel& model = *opened_.model;
  if (model.capabilities().rollback == Rollback::kNone) {
    report_ = ProbeReport();
    opened_.exactness = {.kind = Exactness::Kind::kUpToWidth,
                         .width = 1,
                         .coverage = "not probed: the model takes one token at a time",
                         .reason = model.capabilities().rollback_reason};
    return Status();
  }
  LoadPlan in_effect = plan;  // a cache type may have been replaced
  in_effect.context = model.settings();
  const std::vector<std::int32_t> starts = probe_starts(model.settings().n_cells);
  const Result<std::string> key = key_of_verdict(in_effect, starts);
  std::optional<CachedProbe> known;
  if (key.ok()) known = cache_.load(*key);
  if (known && is_enough(*known)) {
    take(known->report);
    opened_.exactness.coverage += ", cached";
    opened_.probe_cached = true;
    return Status();
  }
  const std::int64_t fewer = graphs_on_fewer_threads();
  const Result<ProbeReport> report = probe(in_effect, starts, passed_of(known));
  opened_.probe_cached = false;
  if (report.status().code() == StatusCode::kCancelled) {
    return cancelled("opening '" + options_.path + "' was cancelled");
  }
  if (!report.ok()) {
    report_ = ProbeReport();
    opened_.exactness = {.kind = Exactness::Kind::kDistributional,
                         .width = 1,
                         .coverage = "nothing was compared",
                         .reason = "the probe failed: " + report.status().message()};
    return Status();
  }
  take(*report);
  if (key.ok() && may_keep_verdict(fewer, graphs_on_fewer_threads())) keep(*key);
  return Status();
}

// Whether a kept verdict answers what is asked for now.
bool Opener::is_enough(const CachedProbe& known) const {
  return known.answers(widest_to_probe(), budget_ms_) &&
         (options_.exact != ExactMode::kOn || known.report.everywhere > 1);
}

// What need not be compared again. What a unit compares depends on the widest width.
ProbePassed Opener::passed_of(const std::optional<CachedProbe>& known) const {
  if (!known || known->widest != widest_to_probe()) return ProbePassed();
  if (known->report.passed.empty()) return ProbePassed();
  return {.units = known->report.passed,
          .rows = known->report.rows,
          .elapsed_ms = known->report.elapsed_ms};
}

void Opener::take(const ProbeReport& report) {
  report_ = report;
  opened_.exactness = report.exactness;
  opened_.longest_piece = report.longest_piece;
}

// Unless more is kept: by another process meanwhile, or by a load that asked for more before.
void Opener::keep(const std::string& key) {
  const CachedProbe probed{.report = report_, .widest = widest_to_probe(), .budget_ms = budget_ms_};
  const std::optional<CachedProbe> known = cache_.load(key);
  if (known && known->says_more_than(probed)) return;
  const Status stored = cache_.store(key, probed);
  if (!stored.ok() && hooks_.log) hooks_.log(LogLevel::kWarning, stored.message());
}

Result<ProbeReport> Opener::probe(const LoadPlan& plan, const std::vector<std::int32_t>& starts,
                                  const ProbePassed& passed) {
  const Stopwatch watch;
  const OnExit count([&] { opened_.probe_seconds += watch.elapsed_ms() / 1000.0; });
  const std::int32_t widest = widest_to_probe();
  const llama_vocab* vocab = opened_.file->vocabulary().handle();
  ProbeOptions options;
  options.widest = widest;
  options.budget_ms = budget_ms_;
  options.passed = passed;
  options.insist = options_.exact == ExactMode::kOn;
  options.same_for_all_widths = bits_are_rows_alone(plan.context);
  options.starts = starts;
  options.usable = [vocab](Token token) { return is_text(vocab, token); };
  options.progress = target_.probe_progress;
  options.cancel = hooks_.cancel;
  // Recurrent layers cannot be deepened.
  if (opened_.model->capabilities().rollback != Rollback::kAny) {
    return probe_exactness(*opened_.model, options);
  }
  ModelOptions small = options_;
  ContextSettings settings = plan.context;
  make_probe_context(widest, starts.back(), &small, &settings);
  Result<std::unique_ptr<LlamaModel>> made = LlamaModel::create(opened_.file, small, settings);
  if (!made.ok()) return made.status();
  LlamaModel& model = **made;
  options.deepen = [&model](std::int32_t cells) { return model.deepen(cells); };
  return probe_exactness(model, options);
}

// Whether a row's bits depend on nothing but the row, not even on the number of threads. What
// adapters add is multiplied by llama.cpp's kernels.
bool Opener::bits_are_rows_alone(const ContextSettings& context) const {
  return options_.lora.empty() && facts_.is_own_throughout(context);
}

// The widest width that may be used when exactness is insisted on: compared at every start.
std::int32_t Opener::exact_width() const {
  return opened_.exactness.kind == Exactness::Kind::kDistributional
             ? 1
             : std::min(opened_.exactness.width, report_.everywhere);
}

Status Opener::insist(const RuleFacts& facts, const LoadPlan& plan) {
  if (opened_.model->capabilities().rollback == Rollback::kNone) return Status();  // single steps
  LoadPlan loaded = plan;
  const std::int32_t first_width = exact_width();
  if (opened_.exactness.kind != Exactness::Kind::kExact && first_width < widest_) {
    const LoadPlan strict = strictest_plan(facts, options_, plan);
    if (!(strict == plan)) {
      facts_.own_attention = false;  // or there would be nothing to look for
      OUTRIDER_RETURN_IF_ERROR(load(strict));
      OUTRIDER_RETURN_IF_ERROR(judge(strict));
      loaded = strict;
      if (exact_width() < first_width) {
        OUTRIDER_RETURN_IF_ERROR(load(plan));
        OUTRIDER_RETURN_IF_ERROR(judge(plan));
        loaded = plan;
      }
    }
  }
  return limit_to_exact(facts, loaded);
}

Status Opener::limit_to_exact(const RuleFacts& facts, const LoadPlan& plan) {
  const std::int32_t width = std::min(exact_width(), widest_);
  const bool single_steps = widest_ == 1 || opened_.model->capabilities().max_width == 1;
  const bool differs = opened_.exactness.kind != Exactness::Kind::kExact;
  std::string what;
  if (width < 2 && !single_steps) {
    what = report_.rows > 0 && report_.everywhere >= 2
               ? "other requests in a batch change the bits of a single step"
               : "a batch of 2 tokens does not give the bits of single steps";
  } else if (differs && options_.n_sequences > std::max(1, width)) {
    what = "batches are exact up to " + std::to_string(std::max(1, width)) +
           " tokens, too few for " + std::to_string(options_.n_sequences) + " sequences at once";
  }
  if (!what.empty()) {
    const std::string& reason = opened_.exactness.reason;
    const std::string hint = inexact_hint(facts, plan);
    return unsupported("'" + options_.path + "' cannot be run with exact=on: " + what +
                       (reason.empty() ? "" : " (" + reason + ")") +
                       (hint.empty() ? "" : "; " + hint) +
                       "; exact=auto runs it and reports what holds");
  }
  // Where a wider batch differs, so does a prompt's piece. The same without speculation: the state
  // that a prompt leaves must not depend on it.
  ModelOptions narrowed = options_;
  if (differs && exact_width() >= 2) {
    narrowed.n_batch = std::min(options_.n_batch, std::max(exact_width(), options_.n_sequences));
  }
  if (narrowed.n_batch == options_.n_batch && (width >= widest_ || single_steps)) return Status();
  if (exact_width() >= 2) opened_.exactness.width = exact_width();
  return create_model(narrowed, single_steps ? 1 : width);
}

}  // namespace

Result<OpenedTarget> open_target(const ModelOptions& options, const LoadHooks& hooks,
                                 const TargetOptions& target) {
  return Opener(options, hooks, target).open();
}

Result<std::unique_ptr<LlamaModel>> open_draft(const ModelOptions& options,
                                               const LoadHooks& hooks) {
  OUTRIDER_ASSIGN_OR_RETURN(DraftFile draft, load_draft_file(options, /*target=*/nullptr, hooks));
  return LlamaModel::create(std::move(draft.file), draft.options, draft.context);
}

}  // namespace outrider::llama
