#include "llama/kernels/kernel_buffer.h"

#if defined(OUTRIDER_OWN_KERNELS)

#include <algorithm>
#include <array>
#include <exception>
#include <string_view>
#include <thread>
#include <vector>

#include "base/large_pages.h"
#include "base/mapped_pages.h"
#include "base/usable_processors.h"
#include "ggml-backend-impl.h"
#include "ggml-cpu.h"
#include "kernels/packed.h"
#include "llama/kernels/kernel_attention.h"
#include "llama/kernels/kernel_operations.h"
#include "llama/kernels/kernel_worker.h"
#include "traits.h"

namespace outrider::llama {
namespace {

using kernels::InstructionSet;
using kernels::PackedLayout;
using kernels::WeightType;

ggml_backend_buffer_type* buffer_type();

bool is_ours(const ggml_tensor* tensor) {
  return tensor != nullptr && tensor->buffer != nullptr &&
         (tensor->buffer->buft == buffer_type() || packed_for_worker(tensor) != nullptr);
}

// Matrices in float types may be looked up or reshaped by a model's graph, as no model's graph does
// with quantised ones; these are only multiplied with. "blk.0.attn_q.scale" belongs to a matrix,
// and llama.cpp offers it with that one's operation, but it is a factor of each value; norms are,
// too.
bool is_only_multiplied(std::string_view name) {
  constexpr std::array<std::string_view, 3> kEnds{".weight", ".lora_a", ".lora_b"};
  if (std::none_of(kEnds.begin(), kEnds.end(),
                   [name](std::string_view end) { return name.ends_with(end); })) {
    return false;
  }
  if (name.find("norm") != std::string_view::npos) return false;
  if (name.starts_with("per_layer_token_embd.")) return false;  // looked up alone
  constexpr std::array<std::string_view, 12> kNames{
      "attn_q.",   "attn_k.",   "attn_v.",      "attn_k_b.",
      "attn_v_b.", "attn_qkv.", "attn_output.", "attn_output_a.",
      "ffn_",      "output.",   "token_embd.",  "per_layer_model_proj."};
  return std::any_of(kNames.begin(), kNames.end(), [name](std::string_view part) {
    return name.find(part) != std::string_view::npos;
  });
}

bool takes(const ggml_tensor* weights) {
  const std::optional<WeightType> type = kernels::weight_type(ggml_type_name(weights->type));
  if (!type || weights->view_src != nullptr || weights->ne[3] != 1) return false;
  if (ggml_is_empty(weights)) return false;
  const kernels::WeightFormat& format = kernels::weight_format(*type);
  if (weights->ne[0] % format.block_weights != 0) return false;
  if (!ggml_is_contiguous(weights)) return false;
  return format.values != kernels::Values::kFloat || is_only_multiplied(weights->name);
}

// Queries are rotated where keys are quantised, by a matrix that llama.cpp makes.
bool is_rotation(const ggml_tensor* product) {
  return product->op_params[1] == GGML_HINT_SRC0_IS_HADAMARD;
}

// Attention has no weights of its own: it belongs to the matrix that its queries were made with.
bool asks_with_ours(const ggml_tensor* attention) {
  constexpr int kMostOperations = 16;  // norms, positions, reshaping in between
  const ggml_tensor* t = attention->src[0];
  for (int left = kMostOperations; left > 0 && t != nullptr; --left) {
    if (t->op == GGML_OP_ADD) ++left;  // any number: an adapter adds its own product to that of q
    if (t->op != GGML_OP_MUL_MAT) {
      t = t->src[0];
    } else if (is_rotation(t)) {
      t = t->src[1];
    } else {
      return is_ours(t->src[0]);
    }
  }
  return false;
}

class Dispatcher : public ggml::cpu::extra_buffer_type {
 public:
  bool supports_op(ggml_backend_dev_t /*device*/, const ggml_tensor* op) override {
    if (!is_product(op)) return false;
    // llama.cpp asks with an empty buffer where to put a weight.
    const bool asks_for_a_place = ggml_backend_buffer_get_size(op->src[0]->buffer) == 0;
    if (asks_for_a_place && !kernel_load().wanted) return false;
    const ggml_tensor* x = op->src[1];
    return takes(op->src[0]) && x->type == GGML_TYPE_F32 &&
           (x->buffer == nullptr || ggml_backend_buft_is_host(x->buffer->buft));
  }
  ggml::cpu::tensor_traits* get_tensor_traits(const ggml_tensor* op) override {
    if (is_product(op)) return product_operation();
    return kernel_attention_takes(op) && asks_with_ours(op) ? attention_operation() : nullptr;
  }

 private:
  static bool is_product(const ggml_tensor* op) {
    if (op->op != GGML_OP_MUL_MAT && op->op != GGML_OP_MUL_MAT_ID) return false;
    return is_ours(op->src[0]);
  }
};

// Once for a load: what the control groups say is in up to ten files.
std::int32_t processors_to_pack_with() {
  KernelLoad& load = kernel_load();
  if (load.n_processors > 0) return load.n_processors;
  std::int32_t n = 1;
  try {
    n = usable_processors();
  } catch (const std::exception&) {  // no memory to read what the control groups say
  }
  if (load.wanted) load.n_processors = n;  // a worker's thread has no load that would end
  return n;
}

// Packs with as many threads as there are processors to use: 1.8B parameters take 1 to 2 s with
// one.
void pack(const ggml_tensor* weights, const std::uint8_t* bytes, std::uint8_t* packed) {
  const PackedLayout layout = kernel_layout(weights);
  const auto n_experts = static_cast<std::size_t>(weights->ne[2]);
  constexpr std::size_t kWorthAThread = std::size_t{2} << 20;
  const auto cores = static_cast<std::size_t>(processors_to_pack_with());
  const std::size_t n_threads = std::clamp<std::size_t>(layout.bytes() * n_experts / kWorthAThread,
                                                        1, std::min<std::size_t>(cores, 16));
  const auto part = [&](std::size_t i) {
    for (std::size_t e = 0; e < n_experts; ++e) {
      const auto all = static_cast<std::size_t>(layout.n_strips);
      pack_strips(layout, bytes + e * static_cast<std::size_t>(layout.n_rows) * layout.row_bytes,
                  static_cast<std::int64_t>(all * i / n_threads),
                  static_cast<std::int64_t>(all * (i + 1) / n_threads), kernel_set()->flip,
                  packed + e * layout.bytes());
    }
  };
  std::vector<std::jthread> others;
  try {
    for (std::size_t i = 1; i < n_threads; ++i) others.emplace_back(part, i);
  } catch (const std::exception&) {  // the system has no more of them
  }
  for (std::size_t i = others.size() + 1; i < n_threads; ++i) part(i);
  part(0);
}

void set_tensor(ggml_backend_buffer_t /*buffer*/, ggml_tensor* tensor, const void* data,
                std::size_t offset, std::size_t size) {
  GGML_ASSERT(offset == 0 && size == ggml_nbytes(tensor));
  kernel_pack(tensor, data, tensor->data);
  KernelLoad& load = kernel_load();
  load.packed_bytes += ggml_backend_buft_get_alloc_size(buffer_type(), tensor);
  load.file_bytes += size;
  // Of a mapped file these pages are not needed any more. llama.cpp gives back only what lies
  // before and behind all that stays mapped, and norms do that everywhere. (It unmaps behind the
  // load.)
  if (!load.mapped) return;
  // A miss is remembered, too: where llama.cpp maps nothing all the same, small matrices are read
  // into the same memory one after the other.
  if (!load.pages.holds(data, size)) load.pages = mapped_pages_at(data);
  give_back_pages(load.pages, data, size);
}

const char* name_of_type(ggml_backend_buffer_type_t /*type*/) { return "Outrider"; }

std::size_t alignment_of_type(ggml_backend_buffer_type_t /*type*/) { return 64; }

std::size_t allocated_size(ggml_backend_buffer_type_t /*type*/, const ggml_tensor* tensor) {
  return takes(tensor) ? kernel_packed_bytes(tensor) : ggml_nbytes(tensor);
}

ggml_backend_buffer_t allocate(ggml_backend_buffer_type_t type, std::size_t size) {
  ggml_backend_buffer_t buffer =
      ggml_backend_buft_alloc_buffer(ggml_backend_cpu_buffer_type(), size);
  if (buffer == nullptr) return nullptr;
  if (size > 0) {
    ask_for_large_pages(ggml_backend_buffer_get_base(buffer), ggml_backend_buffer_get_size(buffer));
    KernelLoad& load = kernel_load();
    if (load.locks) {
      const int error =
          lock_pages(ggml_backend_buffer_get_base(buffer), ggml_backend_buffer_get_size(buffer));
      if (error != 0) load.lock_error = error;
    }
  }
  buffer->buft = type;
  buffer->iface.init_tensor = nullptr;
  buffer->iface.set_tensor = set_tensor;
  buffer->iface.get_tensor = nullptr;
  buffer->iface.cpy_tensor = nullptr;
  return buffer;
}

ggml_backend_buffer_type* buffer_type() {
  static Dispatcher* const kDispatcher = new Dispatcher();  // never destroyed, either
  static ggml_backend_buffer_type type = {
      .iface = {.get_name = name_of_type,
                .alloc_buffer = allocate,
                .get_alignment = alignment_of_type,
                .get_max_size = nullptr,
                .get_alloc_size = allocated_size,
                .is_host = nullptr},
      .device = ggml_backend_reg_dev_get(ggml_backend_cpu_reg(), 0),
      // ggml casts it back to this base.
      .context = static_cast<ggml::cpu::extra_buffer_type*>(kDispatcher),
  };
  return &type;
}

}  // namespace

KernelLoad& kernel_load() {
  static thread_local KernelLoad load;
  return load;
}

ggml_backend_buffer_type_t kernel_buffer_type() {
  return kernel_set() == nullptr ? nullptr : buffer_type();
}

bool kernel_buffer_takes(const ggml_tensor* weights) { return takes(weights); }

std::size_t kernel_packed_bytes(const ggml_tensor* weights) {
  return kernel_layout(weights).bytes() * static_cast<std::size_t>(weights->ne[2]);
}

const void* kernel_packed_data(const ggml_tensor* weights) {
  return weights->buffer->buft == buffer_type() ? weights->data : packed_for_worker(weights);
}

void kernel_pack(const ggml_tensor* weights, const void* bytes, void* packed) {
  pack(weights, static_cast<const std::uint8_t*>(bytes), static_cast<std::uint8_t*>(packed));
}

bool kernel_only_multiplies(std::string_view name) { return is_only_multiplied(name); }

std::string register_kernel_buffer(const InstructionSet& set) {
  kernel_set() = &set;
  std::vector<ggml_backend_buffer_type_t>& all = ggml_backend_cpu_get_extra_buffer_types();
  all.insert(all.begin(), buffer_type());
  return "";
}

}  // namespace outrider::llama

#else

namespace outrider::llama {

KernelLoad& kernel_load() {
  static thread_local KernelLoad load;
  return load;
}

ggml_backend_buffer_type_t kernel_buffer_type() { return nullptr; }

bool kernel_buffer_takes(const ggml_tensor* /*weights*/) { return false; }

std::string register_kernel_buffer(const kernels::InstructionSet& /*set*/) {
  return OUTRIDER_NO_KERNELS_WHY;  // of cmake/own_kernels.cmake
}

}  // namespace outrider::llama

#endif
