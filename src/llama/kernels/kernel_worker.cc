#include "llama/kernels/kernel_worker.h"

#if defined(OUTRIDER_OWN_KERNELS)

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <iterator>
#include <map>
#include <string_view>
#include <utility>

#include "ggml-backend-impl.h"
#include "ggml-cpp.h"
#include "ggml-cpu.h"
#include "llama/kernels/kernel_buffer.h"
#include "llama/kernels/own_kernels.h"

namespace outrider::llama {
namespace {

using Shape = std::array<std::int64_t, 4>;

Shape shape_of(const ggml_tensor* t) { return {t->ne[0], t->ne[1], t->ne[2], t->type}; }

struct Packed {
  Shape shape;
  std::size_t size;  // of its place in the buffer
  // Where it takes more room packed: memory of its own. Its place in the buffer is never written
  // then, so the system gives it none.
  ggml_backend_buffer_ptr apart;
};

// What was packed, by the place of its tensor. Written between graphs only, by the thread that
// computes them.
std::map<const void*, Packed>& packed() {
  static auto* const kPacked = new std::map<const void*, Packed>();  // read while the process ends
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

// By its whole name: what passes from one backend to another is named like "RPC0#ffn_out-3#0".
bool is_weight(std::string_view name) {
  return name.ends_with(".weight") &&
         (name.starts_with("blk.") || name == "output.weight" || name == "token_embd.weight");
}

bool can_be_packed(const ggml_tensor* t) {
  return is_weight(t->name) && kernel_buffer_takes(t) && kernel_only_multiplies(t->name) &&
         t->ne[1] > 1;
}

// What overlaps with these bytes is not packed any more.
void forget(const void* begin, std::size_t size) {
  std::map<const void*, Packed>& all = packed();
  const char* const first = static_cast<const char*>(begin);
  auto at = all.lower_bound(begin);
  if (at != all.begin()) {
    const auto before = std::prev(at);
    if (static_cast<const char*>(before->first) + before->second.size > first) at = before;
  }
  all.erase(at, all.lower_bound(first + size));
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
  ggml_backend_buffer_ptr apart;
  if (kernel_packed_bytes(tensor) > size) {
    apart.reset(ggml_backend_buft_alloc_buffer(ggml_backend_cpu_buffer_type(),
                                               kernel_packed_bytes(tensor)));
    if (!apart) return originals().buffer.set_tensor(buffer, tensor, data, offset, size);
  }
  kernel_pack(tensor, data, apart ? ggml_backend_buffer_get_base(apart.get()) : tensor->data);
  packed()[tensor->data] = {.shape = shape_of(tensor), .size = size, .apart = std::move(apart)};
}

void set_bytes(ggml_backend_buffer_t buffer, ggml_tensor* tensor, std::uint8_t value,
               std::size_t offset, std::size_t size) {
  forget(static_cast<const char*>(tensor->data) + offset, size);
  originals().buffer.memset_tensor(buffer, tensor, value, offset, size);
}

bool copy_tensor(ggml_backend_buffer_t buffer, const ggml_tensor* from, ggml_tensor* to) {
  forget(to->data, ggml_nbytes(to));
  return originals().buffer.cpy_tensor(buffer, from, to);
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
  buffer->iface.memset_tensor = set_bytes;
  buffer->iface.cpy_tensor = copy_tensor;
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

const void* packed_for_worker(const ggml_tensor* weights) {
  if (weights->buffer == nullptr || weights->buffer->buft != worker_buffer_type()) return nullptr;
  const auto found = packed().find(weights->data);
  if (found == packed().end() || found->second.shape != shape_of(weights)) return nullptr;
  ggml_backend_buffer_t apart = found->second.apart.get();
  return apart == nullptr ? weights->data : ggml_backend_buffer_get_base(apart);
}

}  // namespace outrider::llama

#else

namespace outrider::llama {

ggml_backend_dev_t worker_device(ggml_backend_dev_t processor) { return processor; }

const void* packed_for_worker(const ggml_tensor* /*weights*/) { return nullptr; }

}  // namespace outrider::llama

#endif
