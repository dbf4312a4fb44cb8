// The files that use ggml's private headers, as they are compiled where those do not fit
// (cmake/own_kernels.cmake): without OUTRIDER_OWN_KERNELS, and without the folders of those
// headers. They come before the library's own in the test's command line, so those are not linked.
#define OUTRIDER_NO_KERNELS_WHY "ggml's private headers are others (said by the test)"
#if defined(OUTRIDER_OWN_KERNELS)
#error "this file stands for a build without own kernels"
#endif

#include "llama/kernels/kernel_buffer.cc"      // NOLINT: on purpose, as the others
#include "llama/kernels/kernel_operations.cc"  // NOLINT
#include "llama/kernels/kernel_worker.cc"      // NOLINT
