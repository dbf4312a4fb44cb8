#include "machine/machine.h"

#include <sys/utsname.h>

#include <ctime>
#include <fstream>

#include "base/build_commit.h"
#include "base/numbers.h"
#include "llama/base/backend.h"
#include "llama/exactness/exactness_key.h"

namespace outrider {
namespace {

// The first "model name" of /proc/cpuinfo; empty where there is none.
std::string processor_name() {
  std::ifstream file("/proc/cpuinfo");
  std::string line;
  while (std::getline(file, line)) {
    const std::size_t colon = line.find(':');
    if (line.rfind("model name", 0) != 0 || colon == std::string::npos) continue;
    const std::size_t start = line.find_first_not_of(" \t", colon + 1);
    return start == std::string::npos ? "" : line.substr(start);
  }
  return "";
}

// Without the fingerprint of the processor's features behind it.
std::string device_names() {
  const std::string identity = llama::machine_identity(/*on_cpu=*/false);
  const std::size_t end = identity.rfind("; ");
  return end == std::string::npos ? "" : identity.substr(0, end);
}

}  // namespace

std::int32_t used_threads(const ModelOptions& options) {
  return llama::threads_of(options.n_threads);
}

Machine this_machine() {
  Machine machine;
  machine.processor = processor_name();
  machine.devices = device_names();
  if (machine.processor.empty()) machine.processor = machine.devices;
  machine.cores = llama::physical_cores();
  machine.memory_bytes = llama::memory_limit();
  utsname system = {};
  if (uname(&system) == 0) {
    machine.system = std::string(system.sysname) + " " + system.release + " " + system.machine;
  }
  machine.build = "outrider " + with_commit(OUTRIDER_VERSION) + ", llama.cpp " +
                  std::string(OUTRIDER_LLAMA_COMMIT).substr(0, 12) + ", " + OUTRIDER_BUILD;
  const std::time_t now = std::time(nullptr);
  std::tm utc = {};
  char text[64] = "";
  if (gmtime_r(&now, &utc) != nullptr) {
    std::strftime(text, sizeof(text), "%Y-%m-%d %H:%M UTC", &utc);
  }
  machine.date = text;
  return machine;
}

json::Json machine_json(const Machine& m) {
  return {{"processor", m.processor}, {"cores", m.cores},     {"memory_bytes", m.memory_bytes},
          {"system", m.system},       {"devices", m.devices}, {"build", m.build}};
}

std::string machine_text(const Machine& m) {
  std::string text =
      m.processor + ", " + std::to_string(m.cores) + (m.cores == 1 ? " core" : " cores");
  if (m.memory_bytes > 0) {
    text += ", " + fixed(static_cast<double>(m.memory_bytes) / 1e9, 1) + " GB of memory";
  }
  return text;
}

}  // namespace outrider
