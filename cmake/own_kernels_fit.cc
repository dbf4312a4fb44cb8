// Compiles when ggml's private headers are as src/llama/kernels (kernel_buffer.cc,
// kernel_operations.cc, kernel_worker.cc) needs them.
#include <cstddef>
#include <type_traits>
#include <vector>

#include "ggml-backend-impl.h"
#include "ggml-cpu-impl.h"
#include "ggml-cpu.h"
#include "traits.h"

class Products : public ggml::cpu::tensor_traits {
  bool work_size(int, const ggml_tensor*, std::size_t&) override { return true; }
  bool compute_forward(ggml_compute_params* params, ggml_tensor*) override {
    ggml_barrier(params->threadpool);
    return params->wdata != nullptr && params->ith < params->nth;
  }
};

class Dispatcher : public ggml::cpu::extra_buffer_type {
  bool supports_op(ggml_backend_dev_t, const ggml_tensor*) override { return true; }
  ggml::cpu::tensor_traits* get_tensor_traits(const ggml_tensor*) override { return nullptr; }
};

static_assert(std::is_same_v<decltype(ggml_backend_cpu_get_extra_buffer_types()),
                             std::vector<ggml_backend_buffer_type_t>&>);

ggml_backend_buffer_type make(ggml::cpu::extra_buffer_type* dispatcher) {
  return {.iface = {.get_name = nullptr,
                    .alloc_buffer = nullptr,
                    .get_alignment = nullptr,
                    .get_max_size = nullptr,
                    .get_alloc_size = nullptr,
                    .is_host = nullptr},
          .device = ggml_backend_reg_dev_get(ggml_backend_cpu_reg(), 0),
          .context = dispatcher};
}

void use(ggml_backend_buffer_t buffer) {
  static Products products;
  static Dispatcher dispatcher;
  static ggml_backend_buffer_type type = make(&dispatcher);
  buffer->buft = &type;
  buffer->iface.init_tensor = nullptr;
  buffer->iface.free_buffer = nullptr;
  buffer->iface.memset_tensor = nullptr;
  buffer->iface.set_tensor = nullptr;
  buffer->iface.get_tensor = nullptr;
  buffer->iface.cpy_tensor = nullptr;
  buffer->iface.clear = nullptr;
}

void use(ggml_backend_t backend, ggml_backend_dev_t processor) {
  static ggml_backend_device device = *processor;
  device.iface.get_buffer_type = [](ggml_backend_dev_t) -> ggml_backend_buffer_type_t {
    return ggml_backend_cpu_buffer_type();
  };
  device.iface.init_backend = [](ggml_backend_dev_t self, const char* parameters) {
    return self->iface.init_backend(self, parameters);
  };
  backend->device = &device;
}
