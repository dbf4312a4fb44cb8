// Which of a model's matrices an adapter may change.
//
// llama.cpp multiplies with an NVFP4 matrix and then with the factor beside it ("ffn_up.scale"). In
// feed-forward parts what an adapter adds would be multiplied with it, too, and its graph asserts
// that there is none (llama-graph.cpp:1782): the process would end with the first evaluation.
//
// Tested by adapters_test.cc.
#pragma once

#include <string>
#include <vector>

#include "base/status.h"
#include "llama/files/gguf_header.h"

namespace outrider::llama {

// Of the model at `path` and the adapters for it, whose headers llama.cpp could read. Errors:
// kUnsupported, naming the adapter and the matrix; read_gguf_header()'s, of a file of the model.
Status check_adapted_matrices(const std::string& path, const GgufHeader& header,
                              const std::vector<std::string>& adapters);

}  // namespace outrider::llama
