// DrafterChoice: who guesses for a request, and who does not although it was asked for, and why.
//
// Decided when the request gets its slot: models and files come and go while it waits. What a
// request names is taken as it is, and else automatic_drafters() (request/draft_defaults.h). Those
// of them that are not there are passed over by the engine; the result says so where a request
// named them or where the operator wanted them loaded, so that no guesses are missing silently.
//
// Tested by drafter_choice_test.cc.
#pragma once

#include <string>

#include "draft/base/drafter_plan.h"
#include "serve/file_loads.h"
#include "serve/job.h"
#include "serve/load_task.h"
#include "serve/station.h"

namespace outrider {

// What there is to guess with, and what is on its way.
struct DraftersThere {
  const Station& station;
  bool is_current = false;  // the station; else the next two are not for it
  const LoadTask& draft;
  const FileLoads& files;
};

struct DrafterChoice {
  DrafterPlan drafters;
  // Why a request that asks for speculation gets no guesses from a drafter that it names or, where
  // it names none, from one of the default drafters that the operator wanted loaded, or not from
  // all files of one, for its result. Empty: none is missing.
  std::string missing;
};

// For a waiting job of the station. By the station's decode thread, with the runtime's mutex. May
// throw std::bad_alloc.
DrafterChoice choose_drafters(const Job& job, const DraftersThere& there);

}  // namespace outrider
