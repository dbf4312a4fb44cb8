#include "lab/bench_run.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "engine/engine.h"
#include "lab/oracle.h"
#include "machine/fastest_run.h"
#include "request/draft_defaults.h"

namespace outrider::lab {
namespace {

// How often, where it is not said. With fewer than four, Student's t is large (12.7, 4.3), and a
// narrow interval mostly chance.
constexpr std::int32_t kLeastRepetitions = 4;
constexpr std::int32_t kMostRepetitions = 10;
constexpr std::int32_t kWarmUpTokens = 16;

BenchSetting setting_of(const Harness& harness, const BenchPlan& plan) {
  const Target& target = harness.target;
  const CompletionRequest& r = plan.request;
  const Exactness held = exactness_of({.enabled = true, .rule = r.rule}, target.exactness());
  BenchSetting setting{.categories = plan.categories,
                       .target = target.info().path,
                       .target_description = target.info().description,
                       .drafter = to_string(r.drafters),
                       .width = r.width == kAutoWidth ? "auto" : std::to_string(r.width),
                       .rule = std::string(traits_of(r.rule).name),
                       .exactness = held.verdict(),
                       .exactness_coverage = held.coverage,
                       .kernels = target.info().kernels,
                       .temperature = r.sampling.temperature,
                       .seed = static_cast<std::uint64_t>(r.seed),
                       .max_tokens = r.max_tokens,
                       .threads = used_threads(plan.model),
                       .repetitions = plan.repeat > 0 ? plan.repeat : kLeastRepetitions,
                       .until = plan.until,
                       .prompts = static_cast<std::int64_t>(plan.prompts.size()),
                       .command = plan.command,
                       .machine = this_machine()};
  const std::optional<ModelInfo> draft = harness.runtime.status().draft.info;
  if (draft) setting.draft = draft->path;
  return setting;
}

// What a guess of the drafter took in the run, without the steps that read prompts. What these took
// is known of all drafters together: it is divided as all of their time is.
double guess_ms(const SpeculationStats& stats, const DrafterStats& own) {
  const double all_ms = stats.draft_ms + stats.draft_prompt_ms;
  const double share = all_ms > 0.0 ? stats.draft_ms / all_ms : 0.0;
  return own.draft_ms * share / static_cast<double>(std::max<std::int64_t>(1, own.drafted));
}

// Those that the run had, with what their guesses take.
std::vector<OracleDrafter> drafters_of(const Engine& engine, const SpeculationStats& stats) {
  std::vector<OracleDrafter> chosen;
  for (std::size_t i = 0; i < engine.drafters().size(); ++i) {
    Drafter* const drafter = engine.drafters()[i];
    if (drafter == nullptr || drafter->wants_rows()) continue;  // an oracle has no rows,
    if (drafter->wants_hidden()) continue;                      // and no hidden states
    const auto own = std::find_if(stats.drafters.begin(), stats.drafters.end(),
                                  [&](const DrafterStats& d) { return d.name == drafter->name(); });
    if (own == stats.drafters.end()) continue;
    const Planner& planner = engine.planner();
    OracleDrafter with{.drafter = drafter,
                       .first_ms = planner.pass_ms(i, /*first=*/true, /*sharing=*/1),
                       .further_ms = planner.pass_ms(i, /*first=*/false, /*sharing=*/1)};
    // The planner has seen no passes where widths are fixed; what it expects of them is by the
    // sizes of files.
    if (planner.experience(i).first_passes.empty()) {
      with.first_ms = with.further_ms = guess_ms(stats, *own);
    }
    if (!(with.further_ms > 0.0)) with.further_ms = with.first_ms;
    chosen.push_back(with);
  }
  return chosen;
}

class Bench {
 public:
  Bench(const Harness& harness, const BenchPlan& plan)
      : harness_(harness), plan_(plan), setting_(setting_of(harness, plan)) {}
  BenchRun run();

 private:
  Status measure();
  Status measure_pair(std::size_t prompt, std::int32_t repetition, bool counts);
  Result<Completion> generate_text(std::size_t prompt, std::int32_t repetition, bool speculative,
                                   std::int32_t max_tokens) const;
  Status ask_oracles();
  Result<OracleTimes> ask_oracle(const BenchPair& pair, Sampler& sampler) const;
  Status add_costs(BenchResult& result) const;

  const Harness& harness_;
  const BenchPlan& plan_;
  BenchSetting setting_;
  std::vector<BenchPair> pairs_;
};

Result<Completion> Bench::generate_text(std::size_t prompt, std::int32_t repetition,
                                        bool speculative, std::int32_t max_tokens) const {
  const std::vector<Token>& tokens = plan_.prompts[prompt].tokens;
  CompletionRequest request = plan_.request;
  request.prompt.assign(tokens.begin(), tokens.end());
  request.seed += repetition;
  request.max_tokens = max_tokens;
  request.speculative = speculative;
  return complete(harness_, std::move(request));
}

Status Bench::measure_pair(std::size_t prompt, std::int32_t repetition, bool counts) {
  const std::int32_t n = plan_.request.max_tokens;
  const std::int32_t max_tokens = counts ? n : (n < 0 ? kWarmUpTokens : std::min(n, kWarmUpTokens));
  const std::size_t first = prompt + static_cast<std::size_t>(repetition);
  std::optional<Completion> texts[2];  // plain, speculative
  double cpu_ms[2] = {0.0, 0.0};
  for (const std::size_t i : {first % 2, (first + 1) % 2}) {
    const double before = processor_ms();
    Result<Completion> text = generate_text(prompt, repetition, /*speculative=*/i == 1, max_tokens);
    cpu_ms[i] = processor_ms() - before;
    if (!text.ok()) return text.status();
    texts[i] = std::move(*text);
  }
  const SpeculationStats& stats = texts[1]->speculation;
  if (!stats.enabled && !stats.reason.empty()) {
    return unsupported("there is nothing to measure, speculation is off: " + stats.reason);
  }
  if (!counts) return Status();
  const std::ptrdiff_t category =
      std::find(plan_.categories.begin(), plan_.categories.end(), plan_.prompts[prompt].category) -
      plan_.categories.begin();
  pairs_.push_back({.category = static_cast<std::size_t>(category),
                    .repetition = repetition,
                    .identical = texts[0]->tokens == texts[1]->tokens,
                    .plain = texts[0]->timings,
                    .speculative = texts[1]->timings,
                    .plain_steps = texts[0]->speculation,
                    .speculative_steps = stats,
                    .prompt = prompt});
  // Of a target elsewhere this process sees nothing.
  if (!plan_.model.isolate && plan_.model.workers.empty()) {
    pairs_.back().processor = {.plain_ms = cpu_ms[0], .speculative_ms = cpu_ms[1]};
  }
  if (plan_.oracle && repetition == 0) pairs_.back().said = std::move(texts[1]->tokens);
  return Status();
}

Status Bench::measure() {
  const std::size_t n_prompts = plan_.prompts.size();
  const auto pair = [this](std::size_t prompt, std::int32_t repetition, bool counts) {
    return measure_pair(prompt, repetition, counts)
        .with_context("prompt " + plan_.prompts[prompt].id);
  };
  const std::size_t n_warm = std::min(static_cast<std::size_t>(plan_.warm_up), n_prompts);
  for (std::size_t i = 0; i < n_warm; ++i) {
    harness_.watcher.update("warming up", static_cast<double>(i) / static_cast<double>(n_warm));
    OUTRIDER_RETURN_IF_ERROR(pair(i, 0, /*counts=*/false));
  }
  std::int32_t& n = setting_.repetitions;
  for (std::int32_t r = 0; r < n; ++r) {
    const double all = static_cast<double>(n_prompts) * n;
    for (std::size_t i = 0; i < n_prompts; ++i) {
      harness_.watcher.update("repetition " + std::to_string(r + 1) + " of " + std::to_string(n) +
                                  ", prompt " + std::to_string(i + 1) + " of " +
                                  std::to_string(n_prompts),
                              static_cast<double>(pairs_.size()) / all);
      OUTRIDER_RETURN_IF_ERROR(pair(i, r, /*counts=*/true));
    }
    const bool more = plan_.repeat == 0 && r + 1 == n && n < kMostRepetitions;
    if (more && !sum_up(setting_, pairs_, /*interrupted=*/false).is_sure()) ++n;
  }
  return Status();
}

// What the run took, and what an oracle would have, both by what steps and guesses cost in the
// runtime by now. Its drafters are used and know no text afterwards.
Result<OracleTimes> Bench::ask_oracle(const BenchPair& pair, Sampler& sampler) const {
  DraftShape shape = plan_.request.draft;
  fill_branches(shape, plan_.request.rule, plan_.request.width);
  const SpeculationStats& stats = pair.speculative_steps;
  OracleTimes times{.taken_ms = stats.draft_ms};
  Result<double> ms = 0.0;
  const auto work = [&](LanguageModel& /*target*/, const Engine& engine) {
    const CostCurve& costs = engine.planner().target_cost();
    for (std::size_t width = 1; width < stats.steps_by_width.size(); ++width) {
      times.taken_ms += static_cast<double>(stats.steps_by_width[width]) *
                        costs.ms(static_cast<std::int32_t>(width));
    }
    times.taken_ms -= costs.ms(stats.first_width);  // it is no part of draft_ms either
    const std::int64_t after_first = pair.speculative.predicted_after_first;
    ms =
        oracle_ms(plan_.prompts[pair.prompt].tokens, pair.said, sampler, drafters_of(engine, stats),
                  {.seed = setting_.seed,
                   .shape = shape,
                   .begun = pair.said.size() - static_cast<std::size_t>(after_first),
                   .width = harness_.target.capabilities().max_width,
                   .step_ms = [&costs](std::int32_t width) { return costs.ms(width); },
                   .interrupt = harness_.watcher.interrupt});
  };
  OUTRIDER_RETURN_IF_ERROR(harness_.runtime.with_idle_target(work));
  if (!ms.ok()) return ms.status();
  times.oracle_ms = *ms;
  return times;
}

Status Bench::ask_oracles() {
  for (std::size_t i = 0; i < pairs_.size(); ++i) {
    if (pairs_[i].repetition != 0) continue;
    harness_.watcher.update("asking an oracle",
                            static_cast<double>(i) / static_cast<double>(plan_.prompts.size()));
    Result<std::unique_ptr<Sampler>> sampler = harness_.target.make_sampler(plan_.request.sampling);
    if (!sampler.ok()) return sampler.status();
    const Result<OracleTimes> times = ask_oracle(pairs_[i], **sampler);
    if (!times.ok()) return times.status();
    pairs_[i].oracle = *times;
  }
  return Status();
}

// What the planner has learned.
Status Bench::add_costs(BenchResult& result) const {
  return harness_.runtime.with_idle_target([&result](LanguageModel&, const Engine& engine) {
    result.costs = engine.planner().target_cost().points();
    result.score = engine.planner().score();
  });
}

BenchRun Bench::run() {
  BenchRun run;
  run.failure = measure();
  // Last of all: the drafters know no text afterwards.
  if (run.failure.ok() && plan_.oracle) {
    run.failure = ask_oracles().with_context("the oracle");
  }
  const bool interrupted = harness_.watcher.interrupted();
  if (interrupted) run.failure = Status();
  run.pairs = static_cast<std::int64_t>(pairs_.size());
  run.wanted = setting_.prompts * setting_.repetitions;
  run.result = sum_up(setting_, pairs_, interrupted || !run.failure.ok());
  const Status costs = add_costs(run.result);
  if (run.failure.ok()) run.failure = costs;
  if (interrupted || !run.failure.ok()) return run;
  std::vector<std::int32_t> widths;
  for (const CostPoint& point : run.result.costs) widths.push_back(point.width);
  // Where it can't be had, the report says why, and has the rest.
  Result<MachineFloor> floor = measure_floor(plan_.model, setting_.threads, widths);
  if (floor.ok()) run.result.floor = std::move(floor->floor);
  run.result.floor_reason = floor.status().message();
  return run;
}

}  // namespace

BenchRun run_bench(const Harness& harness, const BenchPlan& plan) {
  return Bench(harness, plan).run();
}

}  // namespace outrider::lab
