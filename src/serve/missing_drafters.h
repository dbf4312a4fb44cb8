// Why a request is decoded without some of the drafters that it wants, for its result.
#pragma once

#include <string>

#include "serve/file_loads.h"
#include "serve/job.h"
#include "serve/model_loads.h"
#include "serve/stations.h"

namespace outrider {

// Why a request that asks for speculation gets no guesses from a drafter that it names or, where it
// names none, from one of the default drafters that the operator wanted loaded. Empty: none is
// missing. REQUIRES: the runtime's mutex; the decode thread.
std::string why_without(const Job& job, const Stations& stations, const ModelLoads& models,
                        const FileLoads& files);

}  // namespace outrider
