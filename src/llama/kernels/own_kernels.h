// Outrider's own kernels (src/kernels) in ggml: which models get them, and why not.
//
// They come in as a buffer type of ggml's processor backend, beside those in which ggml repacks
// weights itself. While a model is loaded, llama.cpp offers each matrix to it first; it takes those
// whose type the kernels know and that are only multiplied with, and packs them. From then on ggml
// asks it for every product (MUL_MAT) and every product with experts (MUL_MAT_ID) with such
// weights, and for the attention whose queries are such products; they are computed on the threads
// that compute its graph. Everything else is ggml's as before.
//
// What may keep a process from them: ggml's private headers do not fit (found out when
// configuring), or what they compute is not, bit for bit, what plain code computes (found out when
// they are registered). Then ggml's own kernels are used, and the reason is reported.
#pragma once

#include <string>

#include "kernels/instruction_set.h"
#include "model/kernel_use.h"

namespace outrider::llama {

// Puts the buffer type into ggml's list and tests it with `set`, which lives as long as the
// process; the first call of the process does the work. It must come before the first question for
// ggml's devices, since ggml copies the list then: ensure_backend() calls it.
void register_own_kernels(
    const kernels::InstructionSet& set = *kernels::instruction_sets().front());

// The state of the process, after register_own_kernels(). Any thread.
struct OwnKernels {
  bool available = false;
  std::string instruction_set;  // of kernels::InstructionSet: "avx512-vnni", ...; else empty
  std::string reason;           // why they are not available; else empty
};
const OwnKernels& own_kernels();

// What multiplies a model, and if not our kernels, why not: the one place that says so. `choice` is
// what was asked for, `extra_bufts` whether weights may be packed (ModelFile::load's), `bytes` how
// much of them our kernels take on this processor; `on_workers`: all layers are on workers.
KernelUse kernel_use(KernelChoice choice, bool extra_bufts, std::uint64_t bytes,
                     bool on_workers = false);

// While it lives, models that this thread loads get the kernels if they can be had, and what they
// take is counted. One a thread at a time.
class KernelsForLoad {
 public:
  // `locks`: what is packed must not be swapped out. `mapped`: llama.cpp may map the file.
  KernelsForLoad(KernelChoice choice, bool extra_bufts, bool locks = false, bool mapped = true);
  ~KernelsForLoad();
  KernelsForLoad(const KernelsForLoad&) = delete;
  KernelsForLoad& operator=(const KernelsForLoad&) = delete;

  bool wanted() const;
  // Why what was packed is not locked, though it should be; else empty.
  std::string lock_failure() const;

  // Of the model that was loaded since; `on_workers` as above.
  KernelUse use(bool on_workers = false) const;

 private:
  KernelChoice choice_;
  bool extra_bufts_;
};

}  // namespace outrider::llama
