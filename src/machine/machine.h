// What a measurement was made on.
#pragma once

#include <cstdint>
#include <string>

#include "json/json.h"
#include "model/model_options.h"

namespace outrider {

struct Machine {
  std::string processor;           // as it calls itself
  std::int32_t cores = 0;          // physical ones that the process may use
  std::uint64_t memory_bytes = 0;  // or the control group's limit; 0: unknown
  std::string system;              // "Linux 6.1.0 x86_64"
  std::string devices;             // that llama.cpp sees
  std::string build;               // of this program and llama.cpp
  std::string date;                // now, "2026-03-01 14:05 UTC"
};

Machine this_machine();

// The threads that a model computes with: those asked for, else one a core.
std::int32_t used_threads(const ModelOptions& options);

json::Json machine_json(const Machine& machine);

// "AMD EPYC 9B14, 2 cores, 16.0 GB": one line.
std::string machine_text(const Machine& machine);

}  // namespace outrider
