// RuntimeParts: the parts of the runtime that its threads work on. Each part's header says which
// thread calls it, and what needs the mutex.
#pragma once

#include "serve/drafter_notes.h"
#include "serve/file_loads.h"
#include "serve/idle_work.h"
#include "serve/jobs.h"
#include "serve/model_loads.h"
#include "serve/runtime_shared.h"
#include "serve/stations.h"

namespace outrider {

// In the order in which they need each other.
struct RuntimeParts {
  explicit RuntimeParts(const RuntimeOptions& options) : shared(options) {}

  RuntimeShared shared;
  Stations stations;
  DrafterNotes drafters{shared.options.drafters};
  FileLoads files{shared, stations};
  ModelLoads models{shared, stations, files, drafters};
  Jobs jobs{shared, drafters};
  IdleWork idle_work{shared};
};

}  // namespace outrider
