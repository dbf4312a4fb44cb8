// Why a request goes without drafters, for its result.
#pragma once

#include <string>

#include "serve/file_loads.h"
#include "serve/job.h"
#include "serve/model_loads.h"
#include "serve/stations.h"

namespace outrider {

// Why a request that asks for speculation will go without a drafter that it names or, where it
// names none, without what its operator wished to be loaded of those that guess unasked. Empty: it
// need not. REQUIRES: the runtime's mutex; the decode thread.
std::string why_without(const Job& job, const Stations& stations, const ModelLoads& models,
                        const FileLoads& files);

}  // namespace outrider
