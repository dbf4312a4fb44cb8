#include "llama/kernels/kernel_worker.h"

#if defined(OUTRIDER_OWN_KERNELS)

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <map>
#include <string_view>

#include "ggml-backend-impl.h"
#include "llama/kernels/kernel_buffer.h"
#include "llama/kernels/own_kernels.h"

namespace outrider::llama {
namespace {

using Shape = std::array<std::int64_t, 4>;

Shape shape_of(const ggml_tensor* t) { return {t->ne[0], t->ne[1], t->ne[2], t->type}; }

// What was packed, by where it lies. Written between graphs only, by the thread that computes them.
std::map<const void*, Shape>& packed() {
  static auto* const kPacked = new std::map<const void*, Shape>();  // read while the process ends
  return *kPacked;
}

// The processor's own, of which all but a few functions are kept.
struct Originals {
  ggml_backend_dev_t device = nullptr;
  ggml_backend_buffer_i buffer = {};
};
Originals& originals() {
  static Originals all;
  return all;
}

bool can_be_packed(const ggml_tensor* t) {
  return kernel_buffer_takes(t) && kernel_only_multiplies(t->name) && t->ne[1] > 1 &&
         kernel_packed_bytes(t) <= ggml_nbytes(t);
}

void forget(const void* begin, std::size_t size) {
  std::map<const void*, Shape>& all = packed();
  all.erase(all.lower_bound(begin), all.lower_bound(static_cast<const char*>(begin) + size));
}

void free_buffer(ggml_backend_buffer_t buffer) {
  forget(ggml_backend_buffer_get_base(buffer), ggml_backend_buffer_get_size(buffer));
  originals().buffer.free_buffer(buffer);
}

void set_tensor(ggml_backend_buffer_t buffer, ggml_tensor* tensor, const void* data,
                std::size_t offset, std::size_t size) {
  // Another tensor may have been here.
  forget(static_cast<const char*>(tensor->data) + offset, size);
  if (offset != 0 || size != ggml_nbytes(tensor) || !can_be_packed(tensor)) {
    return originals().buffer.set_tensor(buffer, tensor, data, offset, size);
  }
  kernel_pack(tensor, data, tensor->data);
  packed()[tensor->data] = shape_of(tensor);
}

void clear(ggml_backend_buffer_t buffer, std::uint8_t value) {
  forget(ggml_backend_buffer_get_base(buffer), ggml_backend_buffer_get_size(buffer));
  originals().buffer.clear(buffer, value);
}

ggml_backend_buffer_type* worker_buffer_type();

ggml_backend_buffer_t allocate(ggml_backend_buffer_type_t type, std::size_t size) {
  ggml_backend_buffer_t buffer =
      ggml_backend_buft_alloc_buffer(ggml_backend_cpu_buffer_type(), size);
  if (buffer == nullptr) return nullptr;
  originals().buffer = buffer->iface;
  buffer->buft = type;
  buffer->iface.free_buffer = free_buffer;
  buffer->iface.set_tensor = set_tensor;
  buffer->iface.clear = clear;
  return buffer;
}

std::size_t alignment(ggml_backend_buffer_type_t /*type*/) { return 64; }

// Its data are in the processor's memory and, but for packed weights, as ggml has them.
ggml_backend_buffer_type* worker_buffer_type() {
  static ggml_backend_buffer_type type = [] {
    ggml_backend_buffer_type made = *ggml_backend_cpu_buffer_type();
    made.iface.alloc_buffer = allocate;
    made.iface.get_alignment = alignment;
    return made;
  }();
  return &type;
}

}  // namespace

ggml_backend_dev_t worker_device(ggml_backend_dev_t processor) {
  if (processor == nullptr || !own_kernels().available) return processor;
  static ggml_backend_device device = [processor] {
    originals().device = processor;
    ggml_backend_device made = *processor;
    made.iface.get_buffer_type = [](ggml_backend_dev_t) -> ggml_backend_buffer_type_t {
      return worker_buffer_type();
    };
    made.iface.init_backend = [](ggml_backend_dev_t self, const char* parameters) {
      ggml_backend_t backend = ggml_backend_dev_init(originals().device, parameters);
      if (backend != nullptr) backend->device = self;  // it is asked for its buffer type
      return backend;
    };
    return made;
  }();
  return &device;
}

bool is_packed_for_worker(const ggml_tensor* weights) {
  if (weights->buffer == nullptr || weights->buffer->buft != worker_buffer_type()) return false;
  const auto found = packed().find(weights->data);
  return found != packed().end() && found->second == shape_of(weights);
}

}  // namespace outrider::llama

#else

namespace outrider::llama {

ggml_backend_dev_t worker_device(ggml_backend_dev_t processor) { return processor; }

bool is_packed_for_worker(const ggml_tensor* /*weights*/) { return false; }

}  // namespace outrider::llama

#endif
