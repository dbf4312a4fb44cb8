#include "llama/probe/probe_plan.h"

#include <algorithm>

namespace outrider::llama {
namespace {

constexpr std::int32_t kSmall = 4;   // widths up to here are required
constexpr std::int32_t kRounds = 2;  // times that the telling widths are compared at each start
constexpr std::int32_t kSuspiciousRounds = 5;
// What speculation depends on may take longer than asked for: small widths, and then wide ones.
constexpr double kSmallBudgets = 3.0;
constexpr double kWideBudgets = 2.0;

// Powers of two, where kernels change, 3, and the widest itself.
std::vector<std::int32_t> telling_widths(std::int32_t widest) {
  std::vector<std::int32_t> widths{2, 3};
  for (std::int32_t width = 4; width <= widest; width *= 2) widths.push_back(width);
  widths.push_back(widest);
  std::sort(widths.begin(), widths.end());
  widths.erase(std::unique(widths.begin(), widths.end()), widths.end());
  std::erase_if(widths, [widest](std::int32_t width) { return width > widest; });
  return widths;
}

class Plan {
 public:
  explicit Plan(const ProbePlanOptions& options) : options_(options) {}

  void add(ProbeUnit unit) {
    if (unit.width <= options_.n_batch) units_.push_back(unit);
  }

  // At each start, the deepest first: what holds there mostly holds before.
  void add_everywhere(std::int32_t width, std::int32_t round, double budgets = 1.0) {
    for (std::int32_t i = options_.n_starts - 1; i >= 0; --i) {
      add({.start = i, .width = width, .round = round, .budgets = budgets});
    }
  }

  void add_others(std::int32_t width, double budgets) {
    for (std::int32_t i = options_.n_starts - 1; i >= 0; --i) {
      add({.kind = ProbeUnit::Kind::kOthers,
           .start = i,
           .width = width,
           .required = width <= kSmall / 2,
           .budgets = budgets});
    }
  }

  void add_piece(std::int32_t length) { add({.kind = ProbeUnit::Kind::kPiece, .width = length}); }

  std::vector<ProbeUnit> take() { return std::move(units_); }

 private:
  ProbePlanOptions options_;
  std::vector<ProbeUnit> units_;
};

std::vector<ProbeUnit> plan_short_probe(const ProbePlanOptions& options) {
  Plan plan(options);
  const std::int32_t most = std::max(2, std::min(options.widest, options.n_batch));
  for (const std::int32_t width : {2, most}) {
    for (std::int32_t start = 0; start < options.n_starts; ++start) {
      plan.add({.start = start, .width = width, .required = true, .budgets = kSmallBudgets});
    }
    if (most == 2) break;
  }
  if (options.n_sequences > 1) plan.add_others(kSmall / 2, kSmallBudgets);
  if (options.max_leaves >= 2 && options.widest >= kSmall) {
    plan.add({.kind = ProbeUnit::Kind::kTree, .start = options.n_starts - 1, .width = kSmall});
  }
  plan.add_piece(65);  // kernels take 64 rows at a time
  return plan.take();
}

}  // namespace

double ProbeUnit::cost(std::int32_t known) const {
  const double batch = 1.0 + static_cast<double>(width) / 4.0;
  switch (kind) {
    case Kind::kWidth: {
      const std::int32_t missing = std::max(0, std::max(width, kSmall) - known);
      return 2.0 * batch + static_cast<double>(missing);
    }
    case Kind::kTree: {
      const std::int32_t missing = std::max(0, (width + 1) / 2 - known);
      return batch + static_cast<double>(missing);
    }
    case Kind::kOthers:
      return 4.0 * batch;
    case Kind::kPiece:
      return 1.5 * batch;
  }
  return batch;
}

std::int32_t rows_needed(std::int32_t width, std::int32_t widest) {
  return width <= kSmall ? std::min(kSmall, widest) : widest;
}

std::vector<ProbeUnit> plan_probe(const ProbePlanOptions& options) {
  if (options.same_for_all_widths) return plan_short_probe(options);
  Plan plan(options);
  const std::vector<std::int32_t> widths = telling_widths(options.widest);
  for (std::int32_t start = 0; start < options.n_starts; ++start) {
    for (const std::int32_t width : widths) {
      if (width > kSmall) continue;
      plan.add({.start = start, .width = width, .required = true, .budgets = kSmallBudgets});
    }
  }
  if (options.n_sequences > 1) plan.add_others(kSmall / 2, kSmallBudgets);
  for (const std::int32_t width : widths) {
    if (width > kSmall) plan.add_everywhere(width, /*round=*/0, kWideBudgets);
  }
  if (options.n_sequences > 1) plan.add_others(kSmall, kWideBudgets);
  for (const std::int32_t width : {kSmall, 2 * kSmall}) {
    if (options.max_leaves < width / 2 || width > options.widest) continue;
    for (std::int32_t start = options.n_starts - 1; start >= 0; --start) {
      plan.add({.kind = ProbeUnit::Kind::kTree, .start = start, .width = width});
    }
  }
  plan.add_piece(33);
  for (std::int32_t round = 1; round < kRounds; ++round) {
    for (const std::int32_t width : widths) plan.add_everywhere(width, round);
  }
  plan.add_piece(65);  // attention over float caches works on tiles of 64 queries
  std::int32_t start = 0;
  for (std::int32_t width = kSmall + 1; width < options.widest; ++width) {
    if (std::find(widths.begin(), widths.end(), width) != widths.end()) continue;
    plan.add({.start = start, .width = width});
    start = (start + 1) % options.n_starts;
  }
  plan.add_piece(130);
  plan.add_piece(options.n_batch);
  return plan.take();
}

std::vector<ProbeUnit> plan_suspicion(const ProbePlanOptions& options, std::int32_t limit) {
  Plan plan(options);
  for (std::int32_t round = 1; round < kSuspiciousRounds; ++round) {
    for (std::int32_t width = limit; width >= 2; --width) plan.add_everywhere(width, round);
  }
  return plan.take();
}

std::string ranges(const std::vector<std::int32_t>& numbers) {
  std::string text;
  for (std::size_t i = 0; i < numbers.size();) {
    std::size_t last = i;
    while (last + 1 < numbers.size() && numbers[last + 1] == numbers[last] + 1) ++last;
    text += (text.empty() ? "" : ", ") + std::to_string(numbers[i]);
    if (last > i) text += (last == i + 1 ? ", " : "-") + std::to_string(numbers[last]);
    i = last + 1;
  }
  return text;
}

}  // namespace outrider::llama
