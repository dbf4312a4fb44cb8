#include "llama/probe_setup.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <string>

namespace outrider::llama {
namespace {

constexpr double kBudgetMs = 10000.0;
constexpr double kBudgetOffMs = 3000.0;

}  // namespace

Result<double> probe_budget_ms(ExactMode exact, double asked) {
  if (asked > 0.0) return asked;
  if (const char* text = std::getenv("OUTRIDER_PROBE_BUDGET_MS"); text != nullptr && *text != 0) {
    char* end = nullptr;
    const double value = std::strtod(text, &end);
    if (*end == 0 && std::isfinite(value) && value > 0.0) return value;
    return invalid_argument("OUTRIDER_PROBE_BUDGET_MS is '" + std::string(text) +
                            "', but must be a number of milliseconds above 0");
  }
  return exact == ExactMode::kOff ? kBudgetOffMs : kBudgetMs;
}

std::vector<std::int32_t> probe_starts(std::int32_t n_cells) {
  std::vector<std::int32_t> starts{24, 254, 520};
  std::erase_if(starts,
                [n_cells](std::int32_t start) { return start > 24 && start + 4 > n_cells; });
  return starts;
}

bool is_text(const llama_vocab* vocab, Token token) {
  constexpr int kNotText =
      LLAMA_TOKEN_ATTR_CONTROL | LLAMA_TOKEN_ATTR_UNKNOWN | LLAMA_TOKEN_ATTR_UNUSED;
  return (llama_vocab_get_attr(vocab, token) & kNotText) == 0 && !llama_vocab_is_eog(vocab, token);
}

void make_probe_context(std::int32_t widest, std::int32_t deepest, ModelOptions* options,
                        ContextSettings* settings) {
  constexpr std::int32_t kSequences = 3;
  constexpr std::int32_t kBatch = 512;
  constexpr std::int32_t kOthers = 32;  // cells of other sequences, and some
  const std::int32_t n_batch = std::min(options->n_batch, kBatch);
  settings->n_cells = std::max(deepest + 2 * widest, n_batch) + kOthers;
  settings->max_width = widest;
  settings->for_probe = true;
  settings->cores = threads::Cores::kAsked;
  options->n_ctx = settings->n_cells;
  options->n_sequences = std::min(options->n_sequences, kSequences);
  options->n_batch = std::max({n_batch, widest + kSequences, 8});
}

bool may_keep_verdict(std::int64_t fewer_before, std::int64_t fewer_behind) {
  return fewer_before == fewer_behind;
}

}  // namespace outrider::llama
