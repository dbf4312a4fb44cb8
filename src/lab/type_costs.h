// What a token of a model costs by the type of its weights, on this machine: which quantisation of
// a draft model is the cheapest here.
//
// Idea. A draft's pass is a product of each of its matrices with one row of activations, and how
// long that takes depends on the type: on the bytes that are read and on what is done to unpack
// them, which differs from processor to processor. So one packed matrix as large as the model is
// multiplied in each type, with the kernels that the model would use.
//
// Tested by type_costs_test.cc on made-up speeds.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "base/status.h"
#include "json/json.h"
#include "llama/files/matrices.h"

namespace outrider::lab {

struct TypeCost {
  std::string type;         // ggml's name
  double ms = 0.0;          // a token's products, all matrices in that type; the least of the runs
  double second_ms = 0.0;   // the second least
  std::uint64_t bytes = 0;  // of the matrices
};

struct TypeCosts {
  double ms = 0.0;  // a token's products as the file is; 0: it has types that were not measured
  double second_ms = 0.0;       // as of a type
  std::vector<TypeCost> types;  // that all its matrices could have, the cheapest first
};

// By ggml's name, what a weight of that type took in each run; none is empty.
using TypeRuns = std::map<std::string, std::vector<double>>;  // ns

// Of those types that models come in, the ones that all matrices could have.
TypeCosts type_costs(const std::vector<llama::Matrix>& matrices, const TypeRuns& runs);

// Measures for about a second with `n_threads` threads, >= 1. Nothing else should compute
// meanwhile. For models that our kernels are used for. Errors: as llama::read_matrices();
// kResourceExhausted when the memory for one copy does not suffice, or there are not so many
// threads.
Result<TypeCosts> measure_type_costs(const std::string& path, std::int32_t n_threads);

// {"ms", "second_ms", "types": [{"type", "ms", "second_ms", "bytes"}]}; null: not measured
json::Json type_costs_json(const TypeCosts& costs);

// One sentence: the cheapest type, and what it takes beside the file as it is; empty without types.
// The second least of the runs tells how much the times vary: where they differ by less than that,
// none is named the cheapest, and where they vary much, it says so.
std::string cheapest_text(const TypeCosts& costs);

}  // namespace outrider::lab
