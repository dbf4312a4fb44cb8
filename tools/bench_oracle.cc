#include "tools/bench_oracle.h"

#include <algorithm>

#include "lab/oracle.h"

namespace outrider::tools {

using namespace lab;  // NOLINT: what it measures and writes is most of what is said here
namespace {

// Those that the run had, with what their guesses take.
std::vector<OracleDrafter> drafters_of(const Session& session, const SpeculationStats& stats) {
  const Engine& engine = session.engine();
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

Result<OracleTimes> ask_oracle(Session& session, const OracleWork& work,
                               const SamplingOptions& sampling, const DraftShape& shape,
                               const SignalWatch& signals) {
  const CostCurve& costs = session.engine().planner().target_cost();
  const SpeculationStats& stats = *work.stats;
  OracleTimes times{.taken_ms = stats.draft_ms};
  for (std::size_t width = 1; width < stats.steps_by_width.size(); ++width) {
    times.taken_ms += static_cast<double>(stats.steps_by_width[width]) *
                      costs.ms(static_cast<std::int32_t>(width));
  }
  times.taken_ms -= costs.ms(stats.first_width);  // it is no part of draft_ms either
  const Result<Request> request = session.request({}, sampling, work.seed, /*width=*/kAutoWidth);
  if (!request.ok()) return request.status();
  const Result<double> ms =
      oracle_ms(work.prompt, work.said, *request->sampler, drafters_of(session, stats),
                {.seed = work.seed,
                 .shape = shape,
                 .begun = work.said.size() - static_cast<std::size_t>(work.after_first),
                 .width = session.target().capabilities().max_width,
                 .step_ms = [&costs](std::int32_t width) { return costs.ms(width); },
                 .interrupt = signals.flag()});
  if (!ms.ok()) return ms.status();
  times.oracle_ms = *ms;
  return times;
}

}  // namespace outrider::tools
