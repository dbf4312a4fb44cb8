// Memory of devices that must be left when a context is made.
//
// What a context needs of a device is reserved when it is made, but not all of it: ggml's backend
// for CUDA (also built for ROCm and MUSA) takes more while it computes, for quantised rows, the
// matrix library's workspace and recorded graphs. Where there is none left it ends the process, and
// with it all that a server has open. So a context that leaves less than kDeviceMargin is refused.
// Other backends report such a failure.
//
// Read in ggml-cuda.cu of the pinned version, not measured. Tested by device_memory_test.cc.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/status.h"

struct llama_context;

namespace outrider::llama {

// For 512 tokens of a model with 4,096 numbers a token: 32 MiB of workspace, some 10 MiB for each
// of quantised rows, rows in F16 and parts of sums, the rest for code that is loaded when it first
// runs.
inline constexpr std::uint64_t kDeviceMargin = std::uint64_t{256} << 20;

struct DeviceMemory {
  std::string name;         // "CUDA0"
  std::uint64_t free = 0;   // bytes
  std::uint64_t total = 0;  // 0: the device does not tell
};

// The devices of such a backend on which the context has weights, cells or intermediate results.
// Without those whose memory is the machine's.
std::vector<DeviceMemory> devices_of(const llama_context* context);

// Error: kResourceExhausted, with the first device that has less than kDeviceMargin left.
Status check_device_memory(std::span<const DeviceMemory> devices);

}  // namespace outrider::llama
