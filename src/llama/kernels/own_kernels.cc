#include "llama/kernels/own_kernels.h"

#include <cstring>
#include <mutex>

#include "llama/kernels/kernel_buffer.h"

namespace outrider::llama {
namespace {

OwnKernels& state() {
  static OwnKernels kernels;
  return kernels;
}

}  // namespace

void register_own_kernels(const kernels::InstructionSet& set) {
  static std::once_flag once;
  std::call_once(once, [&set] {
    std::string reason = register_kernel_buffer(set);
    if (reason.empty()) reason = test_kernel_buffer(set);
    state() = {.available = reason.empty(),
               .instruction_set = reason.empty() ? std::string(set.name) : "",
               .reason = reason};
  });
}

const OwnKernels& own_kernels() { return state(); }

KernelUse kernel_use(KernelChoice choice, bool extra_bufts, std::uint64_t bytes, bool on_workers) {
  KernelUse use;
  if (choice == KernelChoice::kStock) {
    use.reason = "asked for (kernels=stock)";
  } else if (!own_kernels().available) {
    use.reason = own_kernels().reason;
  } else if (!extra_bufts) {
    use.reason =
        "the weights are left as the file has them, since llama.cpp's kernels are exact "
        "with those that ours do not take";
  } else if (bytes == 0 && on_workers) {
    use.reason = "the layers are on the workers, which choose their own kernels";
  } else if (bytes == 0) {
    use.reason = "no weights on this processor are of a type that Outrider's kernels know";
  } else {
    use.own = true;
    use.instruction_set = own_kernels().instruction_set;
  }
  return use;
}

KernelsForLoad::KernelsForLoad(KernelChoice choice, bool extra_bufts, bool locks, bool mapped)
    : choice_(choice), extra_bufts_(extra_bufts) {
  // Bytes are not known yet; any would be packed.
  kernel_load() = {
      .wanted = kernel_use(choice, extra_bufts, 1).own, .locks = locks, .mapped = mapped};
}

KernelsForLoad::~KernelsForLoad() { kernel_load() = {}; }

bool KernelsForLoad::wanted() const { return kernel_load().wanted; }

std::string KernelsForLoad::lock_failure() const {
  const int error = kernel_load().lock_error;
  return error == 0 ? "" : std::strerror(error);
}

KernelUse KernelsForLoad::use(bool on_workers) const {
  const KernelLoad& load = kernel_load();
  KernelUse use = kernel_use(choice_, extra_bufts_, load.packed_bytes, on_workers);
  use.packed_bytes = load.packed_bytes;
  use.packed_in_file_bytes = load.file_bytes;
  return use;
}

}  // namespace outrider::llama
