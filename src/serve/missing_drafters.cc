#include "serve/missing_drafters.h"

#include <algorithm>
#include <vector>

#include "draft/base/drafter_plan.h"

namespace outrider {
namespace {

std::string why_no_draft(const Job& job, const Stations& stations, const ModelLoads& models) {
  if (job.station != stations.current()) return "its target was replaced, and has no draft model";
  const LoadTask& draft = models.task(ModelRole::kDraft);
  if (draft.state() == LoadTask::State::kFailed) {
    return "the draft model could not be loaded: " + draft.error().message();
  }
  // One that is ready is on its way here.
  return draft.state() == LoadTask::State::kAbsent
             ? "no draft model is loaded"
             : "the draft model was still loading when the request began";
}

std::string why_without_loaded(const Job& job, const Stations& stations, const ModelLoads& models,
                               const FileLoads& files) {
  const bool coupled = job.request.rule == AcceptanceRule::kCoupled;
  const bool missed =
      !coupled || models.task(ModelRole::kDraft).state() != LoadTask::State::kAbsent;
  std::string why =
      missed && job.station->draft() == nullptr ? why_no_draft(job, stations, models) : "";
  if (!coupled || job.station != stations.current()) return why;
  const std::string failures = files.failures();
  if (!why.empty() && !failures.empty()) why += "; ";
  return why + failures;
}

}  // namespace

std::string why_without(const Job& job, const Stations& stations, const ModelLoads& models,
                        const FileLoads& files) {
  if (!job.speculative) return "";
  if (job.request.drafters.empty()) return why_without_loaded(job, stations, models, files);
  const std::vector<Drafter*>& drafters = job.station->engine().drafters();
  std::string why;
  for (const std::vector<std::string>& chain : job.request.drafters.chains) {
    for (const std::string& name : chain) {
      const bool there = std::any_of(drafters.begin(), drafters.end(), [&name](const Drafter* d) {
        return d != nullptr && d->name() == name;
      });
      if (there) continue;
      if (!why.empty()) why += "; ";
      why += name == kDraftModelName ? why_no_draft(job, stations, models)
                                     : "'" + name + "' is not attached";
    }
  }
  return why;
}

}  // namespace outrider
