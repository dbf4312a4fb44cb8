#include "llama/kernels/own_kernels.h"

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

KernelsForLoad::KernelsForLoad(bool wanted) {
  kernel_load() = {.wanted = wanted && own_kernels().available};
}

KernelsForLoad::~KernelsForLoad() { kernel_load() = {}; }

KernelUse kernel_use(KernelChoice choice, std::uint64_t bytes) {
  KernelUse use;
  use.own = bytes > 0;
  if (use.own) {
    use.instruction_set = own_kernels().instruction_set;
  } else if (choice == KernelChoice::kStock) {
    use.reason = "asked for (kernels=stock)";
  } else if (!own_kernels().available) {
    use.reason = own_kernels().reason;
  } else {
    use.reason = "no weights on this processor are of a type that Outrider's kernels know";
  }
  return use;
}

KernelUse KernelsForLoad::use(KernelChoice choice) const {
  const KernelLoad& load = kernel_load();
  KernelUse use = kernel_use(choice, load.packed_bytes);
  if (choice == KernelChoice::kAuto && own_kernels().available && !load.wanted) {
    use.reason =
        "the weights are left as the file has them, since llama.cpp's kernels are exact "
        "with those that ours do not take";
  }
  use.packed_bytes = load.packed_bytes;
  use.packed_in_file_bytes = load.file_bytes;
  return use;
}

}  // namespace outrider::llama
