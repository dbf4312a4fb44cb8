// What bench_planner plays, on which machines.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/cost_point.h"
#include "bench/give_up.h"

namespace outrider {

inline constexpr std::int32_t kContext = 2048;
inline constexpr std::int32_t kWidest = 16;

// What steps take, and single passes of the draft model, whose wider ones rise as the target's do.
// In single steps of the target.
struct Machine {
  std::string name;
  std::vector<CostPoint> steps;
  double draft_pass = 0.1;
};

inline const std::vector<Machine>& machines() {
  static const std::vector<Machine> kMachines = {
      {"Zen 4, own kernels",
       {{1, 1.0}, {2, 1.04}, {3, 1.1}, {4, 1.26}, {8, 2.05}, {16, 3.7}},
       0.13},
      {"Zen 5, own kernels",
       {{1, 1.0}, {2, 1.02}, {3, 1.04}, {4, 1.09}, {8, 1.23}, {16, 2.22}},
       0.11},
      {"Xeon, prototype", {{1, 1.0}, {2, 1.09}, {3, 1.28}, {4, 1.48}, {8, 2.13}, {16, 3.98}}, 0.13},
      {"Zen 4, llama.cpp's",
       {{1, 1.0}, {2, 1.74}, {3, 2.41}, {4, 2.13}, {8, 4.18}, {16, 6.78}},
       0.16},
      {"like a GPU", {{1, 1.0}, {2, 1.02}, {4, 1.05}, {8, 1.1}, {16, 1.25}}, 0.13},
  };
  return kMachines;
}

struct Setting {
  std::string target;
  std::string draft;
  std::string prompts;
  std::int32_t tokens = 96;
  std::int32_t seeds = 2;
  bool suffix = false;
  std::int32_t branches = 0;  // of the draft model; 0: as a client that says nothing
  std::string keep;           // in front of the names of files; empty: nothing is kept
  bool clients = false;       // the tables of several clients, in place of the others
  bool informed = false;      // those of a planner that knows each guess's chance, likewise
};

// What playing the texts took, on a made-up machine.
struct Measured {
  double ms = 0.0;
  std::int64_t drafted = 0;
  std::int64_t accepted = 0;
  std::int64_t steps = 0;
  double plan_ms = 0.0;  // of this machine
};

inline Setting setting_of(const std::vector<std::string>& arguments) {
  Setting setting;
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    const std::string& a = arguments[i];
    const bool has_value = i + 1 < arguments.size();
    if (a == "--prompts" && has_value) {
      setting.prompts = arguments[++i];
    } else if (a == "--tokens" && has_value) {
      setting.tokens = std::stoi(arguments[++i]);
    } else if (a == "--seeds" && has_value) {
      setting.seeds = std::stoi(arguments[++i]);
    } else if (a == "--branches" && has_value) {
      setting.branches = std::stoi(arguments[++i]);
    } else if (a == "--keep" && has_value) {
      setting.keep = arguments[++i];
    } else if (a == "--clients") {
      setting.clients = true;
    } else if (a == "--informed") {
      setting.informed = true;
    } else if (a == "--suffix") {
      setting.suffix = true;
    } else if (setting.target.empty()) {
      setting.target = a;
    } else if (setting.draft.empty()) {
      setting.draft = a;
    } else {
      give_up("unexpected argument '" + a + "'");
    }
  }
  if (setting.draft.empty() || setting.prompts.empty()) {
    give_up(
        "give TARGET.gguf DRAFT.gguf --prompts FILE [--tokens N] [--seeds N] [--branches N] "
        "[--suffix] [--keep PREFIX] [--clients | --informed]");
  }
  return setting;
}

}  // namespace outrider
