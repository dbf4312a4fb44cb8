#include "lab/calibrate_run.h"

#include <memory>
#include <utility>

#include "engine/engine.h"
#include "lab/draft_costs.h"

namespace outrider::lab {
namespace {

// `progress` hears how far it is, 0 to 1.
Result<MeasuredCurve> measure_curve(LanguageModel& model, const CalibratePlan& plan,
                                    std::int32_t depth, const Watcher& watcher,
                                    const std::function<void(double)>& progress) {
  const Capabilities& caps = model.capabilities();
  if (caps.rollback != Rollback::kAny) {
    return unsupported("nothing can be measured: '" + plan.target.path +
                       "' cannot take tokens back" +
                       (caps.rollback_reason.empty() ? "" : ": " + caps.rollback_reason));
  }
  const std::int32_t most = caps.widest_pass();
  const std::int32_t widest = plan.widths.back();
  if (widest > most) {
    return invalid_argument("--widths has " + std::to_string(widest) + ", but '" +
                            plan.target.path + "' takes at most " + std::to_string(most) +
                            " tokens in a step here");
  }
  const std::string deep = too_deep(depth, widest, caps.n_ctx);
  if (!deep.empty()) return invalid_argument(deep);
  MeasureOptions options;
  options.widths = plan.widths;
  // One width alone has nothing to be compared with: a second one is measured and not shown.
  if (plan.widths.size() == 1) options.widths = {1, 1};
  options.depth = depth;
  options.budget_ms = 1e12;
  options.rounds = plan.repeat;
  options.cancel = watcher.interrupt;
  options.on_round = [&](std::int32_t round) {
    progress(static_cast<double>(round) / static_cast<double>(plan.repeat + 1));
  };
  Result<std::vector<CostSamples>> samples = measure_cost_samples(model, options);
  if (!samples.ok()) return samples.status();
  samples->resize(plan.widths.size());
  return curve_of(depth, *samples);
}

Status measure_draft(const Harness& harness, const CalibratePlan& plan, Drafter& drafter,
                     Calibration& result) {
  if (drafter.wants_hidden()) {
    return unsupported("the passes of the head '" + plan.draft.path +
                       "' cannot be measured apart from a text that the target reads; leave it "
                       "out (bench says what it gains)");
  }
  Result<std::unique_ptr<Sampler>> sampler = harness.target.make_sampler(SamplingOptions());
  if (!sampler.ok()) return sampler.status();
  DraftMeasureOptions options;
  options.n_vocab = harness.target.vocabulary().size();
  options.depth = plan.depths.front();
  options.rounds = plan.repeat;
  options.cancelled = [&harness] { return harness.watcher.interrupted(); };
  drafter.set_interrupt(harness.watcher.interrupt);
  const Result<DraftSamples> samples = measure_draft_costs(drafter, **sampler, options);
  drafter.set_interrupt(nullptr);
  if (!samples.ok()) return samples.status().with_context("measuring the draft model");
  if (samples->first_ms.empty()) return internal_error("the draft model made no pass");
  result.draft = harness.runtime.status().draft.info;
  result.draft_threads = used_threads(plan.draft);
  result.first_pass = summarise(samples->first_ms);
  if (!samples->further_ms.empty()) result.further_pass = summarise(samples->further_ms);
  return Status();
}

}  // namespace

std::string too_deep(std::int32_t depth, std::int32_t widest, std::int32_t n_ctx) {
  if (depth + widest <= n_ctx) return "";
  return "--depth " + std::to_string(depth) + " and a pass of " + std::to_string(widest) +
         " do not fit the context of " + std::to_string(n_ctx) + " tokens; give a larger --ctx";
}

Status measure_models(const Harness& harness, const CalibratePlan& plan, Calibration& result) {
  result.target = harness.target.info();
  result.exactness = harness.target.exactness().verdict();
  result.exactness_coverage = harness.target.exactness().coverage;
  result.threads = used_threads(plan.target);
  const double n = static_cast<double>(plan.depths.size());
  Status measured;
  const auto work = [&](LanguageModel& model, const Engine& engine) {
    for (std::size_t i = 0; i < plan.depths.size() && measured.ok(); ++i) {
      const std::string title = "measuring behind " + std::to_string(plan.depths[i]) + " tokens";
      Result<MeasuredCurve> curve =
          measure_curve(model, plan, plan.depths[i], harness.watcher, [&](double fraction) {
            harness.watcher.update(title, (static_cast<double>(i) + fraction) / n);
          });
      measured = curve.status();
      if (curve.ok()) result.curves.push_back(*std::move(curve));
    }
    Drafter* const draft = engine.drafters().front();  // the draft model's place
    if (measured.ok() && draft != nullptr) measured = measure_draft(harness, plan, *draft, result);
  };
  OUTRIDER_RETURN_IF_ERROR(harness.runtime.with_idle_target(work));
  return measured;
}

Status measure_machine(const CalibratePlan& plan, const Watcher& watcher, Calibration& result) {
  watcher.update("measuring the machine's limits", 0.0);
  if (result.draft && result.draft->kernels.own) {
    Result<TypeCosts> types = measure_type_costs(result.draft->path, result.draft_threads);
    if (!types.ok()) return types.status();
    result.draft_types = *std::move(types);
  }
  Result<MachineFloor> floor = measure_floor(plan.target, result.threads, plan.widths);
  if (!floor.ok()) return floor.status();
  result.limits = floor->limits;
  result.floor = std::move(floor->floor);
  return Status();
}

bool wants_stock_curve(const Calibration& result) {
  return !result.floor.empty() && result.target.kernels.own;
}

Status measure_stock(const Harness& harness, const CalibratePlan& plan, Calibration& result) {
  Result<MeasuredCurve> curve = internal_error("the target was not to be had");
  const auto work = [&](LanguageModel& model, const Engine& /*its_own*/) {
    curve = measure_curve(model, plan, plan.depths.front(), harness.watcher, [&](double fraction) {
      harness.watcher.update("measuring llama.cpp's kernels", fraction);
    });
  };
  OUTRIDER_RETURN_IF_ERROR(harness.runtime.with_idle_target(work));
  if (!curve.ok()) return curve.status();
  result.stock = *std::move(curve);
  return Status();
}

}  // namespace outrider::lab
