#include "serve/drafter_choice.h"

#include <utility>
#include <vector>

#include "base/list_of.h"
#include "draft/drafter_table.h"
#include "request/draft_defaults.h"

namespace outrider {
namespace {

std::string why_no_draft(const DraftersThere& there) {
  if (!there.is_current) return "its target was replaced, and has no draft model";
  if (there.draft.state() == LoadTask::State::kFailed) {
    return "the draft model could not be loaded: " + there.draft.error().message();
  }
  // One that is ready is on its way here.
  return there.draft.state() == LoadTask::State::kAbsent
             ? "no draft model is loaded"
             : "the draft model was still loading when the request began";
}

// A drafter that a request names. Empty: it is there.
std::string why_without(const std::string& name, const DraftersThere& there) {
  const Draft* const draft = there.station.draft();
  if (there.station.engine().find_drafter(name)) {
    return there.is_current ? there.files.failures(name) : "";
  }
  const NeededModel model = needed_model(name);
  if (model == NeededModel::kTarget) return there.station.target()->no_head_reason();
  if (model == NeededModel::kNone) return "'" + name + "' is not attached";
  if (draft == nullptr) return why_no_draft(there);
  return "the draft '" + draft->info.path + "' is the drafter " +
         std::string(draft->drafter->name()) + ", not " + name;
}

std::string missing_of(const DrafterPlan& plan, const DraftersThere& there) {
  std::vector<std::string> all;
  for (const std::vector<std::string>& chain : plan.chains) {
    for (const std::string& name : chain) {
      std::string why = why_without(name, there);
      if (!why.empty()) all.push_back(std::move(why));
    }
  }
  return joined(all, "; ");
}

// For a request that names none: a draft model is missed where one was asked for, and always where
// nothing else can guess under its rule.
std::string missing_of_all(AcceptanceRule rule, const DraftersThere& there) {
  const bool drawn = draws(rule);
  const bool missed = drawn || there.draft.state() != LoadTask::State::kAbsent;
  std::string why = missed && there.station.draft() == nullptr ? why_no_draft(there) : "";
  if (drawn || !there.is_current) return why;
  const std::string failures = there.files.failures();
  if (!why.empty() && !failures.empty()) why += "; ";
  return why + failures;
}

}  // namespace

DrafterChoice choose_drafters(const Job& job, const DraftersThere& there) {
  const Request& request = job.request;
  const bool names_some = !request.drafters.empty();
  DrafterChoice choice;
  choice.drafters = names_some
                        ? request.drafters
                        : automatic_drafters(request.rule, there.files.drafters_with_files());
  if (!job.speculative) return choice;
  choice.missing =
      names_some ? missing_of(request.drafters, there) : missing_of_all(request.rule, there);
  return choice;
}

}  // namespace outrider
