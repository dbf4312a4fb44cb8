// The processor of a worker: a device whose weights are packed for Outrider's kernels as
// they arrive.
//
// ggml's RPC server keeps all that its client sends in buffers of its device: weights, the cache
// and activations alike, and the client counts with ggml's sizes. So a tensor is packed where it
// lies, if it is a whole matrix that a model only multiplies with, by its name; where packed takes
// more room, in memory of its own.
#pragma once

#include "ggml-backend.h"

namespace outrider::llama {

// A device that is `processor` but for its buffers; `processor` itself where there are no own
// kernels. Lives as long as the process. Its buffers are one thread's, the server's.
ggml_backend_dev_t worker_device(ggml_backend_dev_t processor);

// Where the packed form of a matrix in a buffer of that device lies; null if it was not packed.
// Valid until the matrix is written again or its buffer goes. From threads that compute a graph.
const void* packed_for_worker(const ggml_tensor* weights);

}  // namespace outrider::llama
