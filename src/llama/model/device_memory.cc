#include "llama/model/device_memory.h"

#include <cstdlib>
#include <string_view>

#include "base/numbers.h"
#include "ggml-backend.h"
#include "llama-ext.h"
#include "llama.h"

namespace outrider::llama {
namespace {

bool ends_process_without_memory(ggml_backend_dev_t device) {
  if (ggml_backend_dev_type(device) != GGML_BACKEND_DEVICE_TYPE_GPU) return false;
  const std::string_view backend = ggml_backend_reg_name(ggml_backend_dev_backend_reg(device));
  return backend == "CUDA" || backend == "ROCm" || backend == "MUSA";
}

}  // namespace

std::vector<DeviceMemory> devices_of(const llama_context* context) {
  std::vector<DeviceMemory> devices;
  // With it what does not fit into the device is in the machine's memory.
  if (std::getenv("GGML_CUDA_ENABLE_UNIFIED_MEMORY") != nullptr) return devices;
  for (const auto& [type, bytes] : llama_get_memory_breakdown(context)) {
    const ggml_backend_dev_t device = ggml_backend_buft_get_device(type);
    if (device == nullptr || bytes.total() == 0 || ggml_backend_buft_is_host(type)) continue;
    if (!ends_process_without_memory(device)) continue;
    std::size_t free = 0;
    std::size_t total = 0;
    ggml_backend_dev_memory(device, &free, &total);
    devices.push_back({.name = ggml_backend_dev_name(device), .free = free, .total = total});
  }
  return devices;
}

Status check_device_memory(std::span<const DeviceMemory> devices) {
  for (const DeviceMemory& device : devices) {
    if (device.total == 0 || device.free >= kDeviceMargin) continue;
    return resource_exhausted("it would leave " + gibibytes(device.free) + " of " + device.name +
                              ", which takes up to " + gibibytes(kDeviceMargin) +
                              " more while it computes; fewer layers on the GPU (gpu_layers) or a "
                              "smaller context (ctx) take less");
  }
  return Status();
}

}  // namespace outrider::llama
