// What a probe of llama.cpp compares, for how long, and in what context.
#pragma once

#include <cstdint>
#include <vector>

#include "base/status.h"
#include "base/types.h"
#include "llama.h"
#include "llama/model/llama_model.h"
#include "model/model_options.h"

namespace outrider::llama {

// Milliseconds that it may take: `asked`, where that is above 0, else OUTRIDER_PROBE_BUDGET_MS,
// else the usual. Errors: kInvalidArgument, naming the variable, where that is asked and is no
// number above 0.
Result<double> probe_budget_ms(ExactMode exact, double asked);

// Where to compare, for a cache of so many cells: the beginning, where 256 cells are crossed, and
// beyond 512. A cache that never gets there needs no comparison there.
std::vector<std::int32_t> probe_starts(std::int32_t n_cells);

// Whether texts of it can be compared: no control token, no end.
bool is_text(const llama_vocab* vocab, Token token);

// Makes the settings those of a context for the probe: up to three sequences, and cells for two
// batches of the widest behind the deepest start. What influences kernels stays the real one's:
// flash attention, cache types, threads. All of these compute, whoever else wants the cores:
// llama.cpp's attention cuts a row into as many pieces as there are threads, and one thread alone
// would never show it.
void make_probe_context(std::int32_t widest, std::int32_t deepest, ModelOptions* options,
                        ContextSettings* settings);

// Whether what a probe found may be kept, for as many threads as were asked for. Graphs of this
// process that took fewer (graphs_on_fewer_threads()): when it began, and when it had ended.
bool may_keep_verdict(std::int64_t fewer_before, std::int64_t fewer_behind);

}  // namespace outrider::llama
