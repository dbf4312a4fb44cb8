#include "tools/bench_oracle.h"

#include <algorithm>

#include "engine/engine.h"
#include "lab/oracle.h"

namespace outrider::tools {

using namespace lab;  // NOLINT: what it measures and writes is most of what is said here
namespace {

// Those that the run had, with what their guesses take.
std::vector<OracleDrafter> drafters_of(const Engine& engine, const SpeculationStats& stats) {
  std::vector<OracleDrafter> chosen;
  for (std::size_t i = 0; i < engine.drafters().size(); ++i) {
    Drafter* const drafter = engine.drafters()[i];
    if (drafter == nullptr || drafter->wants_rows()) continue;  // an oracle has no rows
    const auto own = std::find_if(stats.drafters.begin(), stats.drafters.end(),
                                  [&](const DrafterStats& d) { return d.name == drafter->name(); });
    if (own == stats.drafters.end()) continue;
    const DrafterAccount& account = engine.planner().account(i);
    OracleDrafter with{.drafter = drafter,
                       .first_ms = account.pass_ms(/*first=*/true, /*sharing=*/1),
                       .further_ms = account.pass_ms(/*first=*/false, /*sharing=*/1)};
    // The planner has kept no times where widths are fixed: then what a guess took in the run.
    const double drafted = static_cast<double>(std::max<std::int64_t>(1, own->drafted));
    if (!(with.first_ms > 0.0)) with.first_ms = own->draft_ms / drafted;
    if (!(with.further_ms > 0.0)) with.further_ms = with.first_ms;
    chosen.push_back(with);
  }
  return chosen;
}

}  // namespace

Result<OracleTimes> ask_oracle(LocalRuntime& local, const OracleWork& work,
                               const CompletionRequest& request, const SignalWatch& signals) {
  Result<std::unique_ptr<Sampler>> sampler = local.target().make_sampler(request.sampling);
  if (!sampler.ok()) return sampler.status();
  DraftShape shape = request.draft;
  fill_branches(shape, request.rule, request.width);
  const SpeculationStats& stats = *work.stats;
  OracleTimes times{.taken_ms = stats.draft_ms};
  Result<double> ms = 0.0;
  const Status asked = local.runtime().with_idle_target([&](LanguageModel&, const Engine& engine) {
    const CostCurve& costs = engine.planner().target_cost();
    for (std::size_t width = 1; width < stats.steps_by_width.size(); ++width) {
      times.taken_ms += static_cast<double>(stats.steps_by_width[width]) *
                        costs.ms(static_cast<std::int32_t>(width));
    }
    times.taken_ms -= costs.ms(stats.first_width);  // it is no part of draft_ms either
    ms = oracle_ms(work.prompt, work.said, **sampler, drafters_of(engine, stats),
                   {.seed = work.seed,
                    .shape = shape,
                    .begun = work.said.size() - static_cast<std::size_t>(work.after_first),
                    .width = local.target().capabilities().max_width,
                    .step_ms = [&costs](std::int32_t width) { return costs.ms(width); },
                    .interrupt = signals.flag()});
  });
  OUTRIDER_RETURN_IF_ERROR(asked);
  if (!ms.ok()) return ms.status();
  times.oracle_ms = *ms;
  return times;
}

}  // namespace outrider::tools
