#include "lab/make_draft_run.h"

#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <filesystem>
#include <memory>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "backend/llama_loader.h"
#include "base/machine_memory.h"
#include "base/numbers.h"
#include "draft/base/drafter_kind.h"
#include "engine/engine.h"
#include "lab/bench_run.h"
#include "lab/calibration.h"
#include "lab/draft_pieces.h"
#include "lab/draft_verdict.h"
#include "llama/gguf/draft_writer.h"
#include "model/measure_costs.h"
#include "store/part_files.h"

namespace outrider::lab {
namespace {

constexpr std::int64_t kLookMs = 50;  // between two looks at the watcher
constexpr std::uint64_t kSpareBytes = 64 << 20;

std::string base_name(const std::string& path) {
  return std::filesystem::path(path).filename().string();
}

constexpr std::string_view kCandidate = ".candidate.gguf";

// N of "OUTPUT.N.candidate.gguf"; 0 for any other name.
pid_t candidate_process(std::string_view name, std::string_view output) {
  if (!name.starts_with(output) || !name.ends_with(kCandidate)) return 0;
  name.remove_prefix(output.size());
  if (name.size() <= kCandidate.size() || name.front() != '.') return 0;
  name.remove_prefix(1);
  name.remove_suffix(kCandidate.size());
  pid_t process = 0;
  const char* const end = name.data() + name.size();
  const std::from_chars_result read = std::from_chars(name.data(), end, process);
  return read.ec == std::errc() && read.ptr == end && process > 0 ? process : 0;
}

// What killed ones left beside the output: as large as a model, and of no use. What cannot be
// removed stays.
void remove_left_candidates(const std::string& output) {
  namespace fs = std::filesystem;
  const fs::path folder = fs::path(output).parent_path();
  const std::string beside = folder.empty() ? "." : folder.string();
  const std::string name = base_name(output);
  remove_left_parts(beside, [&](std::string_view of) { return candidate_process(of, name) > 0; });
  std::error_code error;
  std::vector<fs::path> left;
  fs::directory_iterator at(beside, error);
  for (; !error && at != fs::directory_iterator(); at.increment(error)) {
    const pid_t process = candidate_process(at->path().filename().string(), name);
    if (process > 0 && ::kill(process, 0) != 0 && errno == ESRCH) left.push_back(at->path());
  }
  for (const fs::path& path : left) fs::remove(path, error);
}

// A candidate's file, beside the output, removed at the end.
class CandidateFile {
 public:
  explicit CandidateFile(const std::string& output)
      : path_(output + "." + std::to_string(::getpid()) + std::string(kCandidate)) {
    remove_left_candidates(output);
  }
  ~CandidateFile() { remove(); }
  CandidateFile(const CandidateFile&) = delete;
  CandidateFile& operator=(const CandidateFile&) = delete;

  const std::string& path() const { return path_; }
  void remove() const {
    std::error_code ignored;
    std::filesystem::remove(path_, ignored);
  }

 private:
  std::string path_;
};

// All that is done for one call.
class MakeDraft {
 public:
  MakeDraft(const Harness& harness, const MakeDraftPlan& plan)
      : harness_(harness), plan_(plan), file_(plan.output) {}
  Result<MakeDraftResult> run();

 private:
  Status prepare();
  Status check_room() const;
  Status check_costs() const;
  Result<DraftCandidate> try_one(const DraftMake& make);
  Result<gguf::DraftRecipe> recipe_of(const DraftMake& make) const;
  Status write(const DraftMake& make, const std::string& path, const std::string& title) const;
  Status check_memory(const ModelOptions& options) const;
  Status open(const DraftMake& make);
  void close();
  Status time_target(LanguageModel& target, std::vector<double>& ms) const;
  Status walk_all(LanguageModel& target, Drafter& draft, const std::string& title, DraftWalk& walk,
                  std::vector<double>& target_ms) const;
  Status walk(DraftCandidate& candidate);
  Status measure_best();
  Status measure(DraftCandidate& candidate);

  const Harness& harness_;
  const MakeDraftPlan& plan_;
  CandidateFile file_;
  gguf::DraftSource source_;
  DraftSample sample_;
  std::unique_ptr<DraftTokens> tokens_;  // null: the vocabulary cannot be cut
  DraftSearch search_;
  MakeDraftResult result_;
};

Status MakeDraft::check_room() const {
  std::error_code error;
  const std::filesystem::path folder = std::filesystem::absolute(plan_.output).parent_path();
  const std::filesystem::space_info space = std::filesystem::space(folder, error);
  if (error || space.available >= source_.bytes + kSpareBytes) return Status();
  return resource_exhausted("'" + folder.string() + "' has " +
                            std::to_string(space.available >> 20) + " MiB left, but a draft of '" +
                            plan_.source + "' may take " + std::to_string(source_.bytes >> 20) +
                            "; choose another folder with -o");
}

// A curve of one width would be made up for the others: in proportion, so that no draft pays.
Status MakeDraft::check_costs() const {
  bool measured = false;
  OUTRIDER_RETURN_IF_ERROR(harness_.runtime.with_idle_target([&](LanguageModel&, const Engine& e) {
    measured = e.planner().target_cost().widths_noted() > 1;
  }));
  if (measured) return Status();
  const std::string& reason = harness_.target.capabilities().rollback_reason;
  return unsupported("no draft can be chosen for '" + base_name(plan_.target.path) +
                     "': what its passes of several tokens take could not be measured" +
                     (reason.empty() ? "" : ": " + reason));
}

Status MakeDraft::prepare() {
  OUTRIDER_ASSIGN_OR_RETURN(source_, read_source(plan_.source));
  OUTRIDER_RETURN_IF_ERROR(check_room());
  OUTRIDER_RETURN_IF_ERROR(check_costs());
  Result<DraftSample> sample = write_sample(harness_, plan_.sample);
  if (!sample.ok()) return sample.status();
  sample_ = *std::move(sample);
  result_.walked_tokens = sample_.walked_tokens;
  if (source_.cuts_tokens.ok()) {
    Result<std::unique_ptr<DraftTokens>> tokens =
        DraftTokens::create(plan_.source, sample_.texts, harness_.watcher);
    if (!tokens.ok()) return tokens.status();
    tokens_ = *std::move(tokens);
  }
  Result<DraftSearch> search = search_space(plan_, source_, tokens_.get(), result_.notes);
  if (!search.ok()) return search.status();
  search_ = *std::move(search);
  return Status();
}

Result<gguf::DraftRecipe> MakeDraft::recipe_of(const DraftMake& make) const {
  gguf::DraftRecipe recipe{.type = make.type};
  recipe.notes = {{"source", base_name(plan_.source)},
                  {"target", base_name(plan_.target.path)},
                  {"made", make_text(make)}};
  if (make.n_tokens > 0) {
    recipe.tokens = tokens_->chosen(make.n_tokens);
    recipe.notes.emplace_back(
        "tokens", std::to_string(recipe.tokens.size()) + " of " + std::to_string(source_.n_tokens));
  }
  if (make.n_left_out > 0) {
    for (std::int32_t layer = 0; layer < source_.n_layers; ++layer) {
      const std::int32_t behind = layer - make.first_left_out;
      if (behind < 0 || behind >= make.n_left_out) recipe.layers.push_back(layer);
    }
    recipe.notes.emplace_back(
        "layers", std::to_string(recipe.layers.size()) + " of " + std::to_string(source_.n_layers));
  }
  return recipe;
}

Status MakeDraft::write(const DraftMake& make, const std::string& path,
                        const std::string& title) const {
  const Result<gguf::DraftRecipe> recipe = recipe_of(make);
  if (!recipe.ok()) return recipe.status();
  return gguf::write_draft(
      plan_.source, path, *recipe,
      {.n_threads = used_threads(plan_.draft),
       .cancel = harness_.watcher.interrupt,
       .progress = [&](double done) { harness_.watcher.update("writing " + title, done); }});
}

// Whether the machine has memory for it beside the target: else the kernel would end the process.
Status MakeDraft::check_memory(const ModelOptions& options) const {
  const Result<std::uint64_t> needed = LlamaLoader().estimate_memory(options);
  const std::uint64_t free = plan_.free_memory ? plan_.free_memory() : free_memory();
  if (!needed.ok() || free == 0 || *needed <= free) return Status();  // loading says what is wrong
  return unsupported("it needs " + gibibytes(*needed) + " of memory beside the target, and " +
                     gibibytes(free) + " are free");
}

// Writes the candidate and loads it beside the target. Without a change the source is it: a copy
// would take minutes and a disk. Errors: write()'s; kUnsupported where memory is short, which
// another candidate may take less of.
Status MakeDraft::open(const DraftMake& make) {
  close();
  ModelOptions options = plan_.draft;
  options.path = make == DraftMake() ? plan_.source : file_.path();
  if (make != DraftMake()) {
    OUTRIDER_RETURN_IF_ERROR(write(make, file_.path(), make_text(make)));
  }
  OUTRIDER_RETURN_IF_ERROR(check_memory(options));
  Runtime& runtime = harness_.runtime;
  OUTRIDER_RETURN_IF_ERROR(runtime.load(ModelRole::kDraft, options));
  bool ending = false;
  while (!runtime.wait_loaded(kLookMs)) {
    if (!harness_.watcher.interrupted() || ending) continue;
    (void)runtime.cancel_load(ModelRole::kDraft);  // not found: it is done already
    ending = true;
  }
  if (harness_.watcher.interrupted()) return cancelled("interrupted");
  const Status loaded = runtime.status().draft.error;
  if (loaded.code() == StatusCode::kResourceExhausted) return unsupported(loaded.message());
  return loaded;
}

void MakeDraft::close() {
  (void)harness_.runtime.unload(ModelRole::kDraft, /*at_once=*/true);  // not found: there is none
  file_.remove();
}

// Adds what single steps of the target take at this moment. The same programs slow the draft's
// passes, so the two are compared and not their times: the curve may be of a quieter hour.
Status MakeDraft::time_target(LanguageModel& target, std::vector<double>& ms) const {
  MeasureOptions options;
  options.widths = {1, 1};  // one width alone has nothing to be compared with
  options.depth = 16;
  options.rounds = 2;
  options.now_ms = plan_.now_ms;
  options.cancel = harness_.watcher.interrupt;
  const Result<std::vector<CostSamples>> samples = measure_cost_samples(target, options);
  if (!samples.ok()) return samples.status();
  for (const CostSamples& of_width : *samples) {
    ms.insert(ms.end(), of_width.ms.begin(), of_width.ms.end());
  }
  return Status();
}

// Along all texts, with the draft that is open.
Status MakeDraft::walk_all(LanguageModel& target, Drafter& draft, const std::string& title,
                           DraftWalk& walk, std::vector<double>& target_ms) const {
  const double n = static_cast<double>(sample_.walked.size());
  for (std::size_t i = 0; i < sample_.walked.size(); ++i) {
    harness_.watcher.update(title, static_cast<double>(i) / n);
    OUTRIDER_RETURN_IF_ERROR(time_target(target, target_ms));
    Result<std::unique_ptr<Sampler>> sampler = harness_.target.make_sampler(plan_.sample.sampling);
    if (!sampler.ok()) return sampler.status();
    OUTRIDER_RETURN_IF_ERROR(
        walk_text(sample_.walked[i], draft, **sampler,
                  {.interrupt = harness_.watcher.interrupt, .now_ms = plan_.now_ms}, walk));
  }
  if (!walk.times.first_ms.empty()) return Status();
  return invalid_argument(
      "the sample's texts are too short for a draft's passes to be timed: one that is always right "
      "is asked once; take longer texts (--tokens 48 or more)");
}

Status MakeDraft::walk(DraftCandidate& candidate) {
  Status status;
  const auto work = [&](LanguageModel& target, const Engine& engine) {
    Drafter* const draft = engine.drafters().front();  // the draft model's place
    const CostCurve& costs = engine.planner().target_cost();
    if (draft == nullptr || costs.widths_noted() < 2) {
      status = internal_error("the draft model is not attached, or no steps were measured");
      return;
    }
    DraftWalk walk;
    std::vector<double> target_ms;
    draft->set_interrupt(harness_.watcher.interrupt);
    status = walk_all(target, *draft, "trying " + make_text(candidate.make), walk, target_ms);
    draft->set_interrupt(nullptr);
    if (!status.ok()) return;
    const double slower = target_ms.empty() ? 1.0 : summarise(target_ms).ms / costs.ms(1);
    const std::vector<double>& further = walk.times.further_ms;
    candidate.first_chance = walk.first_chance();
    candidate.first_ms = summarise(walk.times.first_ms).ms / slower;
    candidate.further_ms = further.empty() ? candidate.first_ms : summarise(further).ms / slower;
    candidate.processor_ms = walk.processor_ms / static_cast<double>(walk.passes);
    candidate.prediction =
        predict_draft(costs, walk.chances(), candidate.first_ms, candidate.further_ms,
                      target.capabilities().rollback == Rollback::kSaved);
  };
  OUTRIDER_RETURN_IF_ERROR(harness_.runtime.with_idle_target(work));
  return status;
}

// Whether the whole search must end with it.
bool is_final(const Status& status) {
  return status.code() == StatusCode::kCancelled || status.code() == StatusCode::kResourceExhausted;
}

Result<DraftCandidate> MakeDraft::try_one(const DraftMake& make) {
  DraftCandidate candidate{.make = make};
  candidate.status = open(make);
  std::error_code error;
  candidate.bytes =
      make == DraftMake() ? source_.bytes : std::filesystem::file_size(file_.path(), error);
  if (candidate.status.ok()) candidate.status = walk(candidate);
  close();
  if (harness_.watcher.interrupted()) return cancelled("interrupted");
  if (is_final(candidate.status)) return candidate.status;
  return candidate;
}

// As `bench` does it, on the prompts of the texts that were walked.
Status MakeDraft::measure(DraftCandidate& candidate) {
  candidate.status = open(candidate.make);
  if (is_final(candidate.status)) return candidate.status;
  if (!candidate.status.ok()) return Status();
  BenchPlan bench{.prompts = sample_.prompts, .categories = {""}, .model = plan_.target};
  bench.request.sampling = plan_.sample.sampling;
  bench.request.seed = plan_.sample.seed;
  bench.request.max_tokens = plan_.sample.max_tokens;
  bench.request.drafters.chains = {{std::string(kDraftModelName)}};
  const BenchRun run = run_bench(harness_, bench);
  close();
  if (harness_.watcher.interrupted()) return cancelled("interrupted");
  if (!run.failure.ok()) return run.failure;
  const BenchGroup& all = run.result.overall;
  candidate.measured = {.speedup = all.speedup.value_or(0.0),
                        .interval = all.interval,
                        .processor_speedup = all.processor_speedup().value_or(0.0),
                        .identical = all.identical == all.pairs};
  return Status();
}

Status MakeDraft::measure_best() {
  std::int32_t left = plan_.most_measured;
  for (const std::size_t i : best_drafts(result_.candidates)) {
    DraftCandidate& candidate = result_.candidates[i];
    if (left <= 0 || !candidate.prediction.pays()) break;
    OUTRIDER_RETURN_IF_ERROR(measure(candidate));
    if (candidate.measured) --left;
  }
  return Status();
}

Result<MakeDraftResult> MakeDraft::run() {
  result_.target = plan_.target.path;
  result_.source = plan_.source;
  result_.output = plan_.output;
  result_.command = plan_.command;
  result_.kernels = harness_.target.info().kernels;
  result_.machine = this_machine();
  OUTRIDER_RETURN_IF_ERROR(prepare());
  Result<std::vector<DraftCandidate>> candidates =
      search_drafts(search_, [this](const DraftMake& make) { return try_one(make); });
  if (!candidates.ok()) return candidates.status();
  result_.candidates = *std::move(candidates);
  const Status measured = measure_best();
  close();
  if (!measured.ok()) return measured;
  DraftVerdict choice = choose_draft(result_.candidates, {.is_measured = plan_.most_measured > 0,
                                                          .source = plan_.source,
                                                          .target = plan_.target.path});
  result_.chosen = choice.chosen;
  result_.verdict = std::move(choice.verdict);
  if (result_.chosen) {
    OUTRIDER_RETURN_IF_ERROR(
        write(result_.candidates[*result_.chosen].make, plan_.output, base_name(plan_.output)));
  }
  return std::move(result_);
}

}  // namespace

Result<MakeDraftResult> make_draft(const Harness& harness, const MakeDraftPlan& plan) {
  return MakeDraft(harness, plan).run();
}

}  // namespace outrider::lab
