#include "model/measure_costs.h"

#include <algorithm>
#include <array>
#include <iterator>
#include <utility>

#include "base/random.h"
#include "tree/token_tree.h"

namespace outrider {
namespace {

constexpr SeqId kSeq = 0;

// What stays of a chain: nothing. A state that cannot drop a token keeps the root, behind which
// snapshots go back; one that is saved before longer chains goes back by that and keeps single
// roots alone. So there the text grows by a token a pass at most.
constexpr std::array<NodeId, 1> kRootOnly{kRoot};

std::span<const NodeId> kept_of(const Capabilities& caps) {
  return std::span(kRootOnly).first(caps.rollback == Rollback::kAny ? 0 : 1);
}

Token some_token(const LanguageModel& model, std::uint64_t i) {
  return static_cast<Token>(mix64(i) % static_cast<std::uint64_t>(model.capabilities().n_vocab));
}

Status read_text(LanguageModel& model, std::int32_t depth) {
  std::vector<Token> text;
  for (std::int32_t i = 0; i < depth; ++i) {
    text.push_back(some_token(model, static_cast<std::uint64_t>(i)));
  }
  const std::size_t n_batch = static_cast<std::size_t>(model.capabilities().n_batch);
  for (std::size_t at = 0; at < text.size(); at += n_batch) {
    const std::span<const Token> rest = std::span<const Token>(text).subspan(at);
    const std::array<EvalItem, 1> item = {
        EvalItem{.seq = kSeq, .prefix = rest.first(std::min(n_batch, rest.size()))}};
    OUTRIDER_RETURN_IF_ERROR(model.evaluate(item));
    OUTRIDER_RETURN_IF_ERROR(model.commit(kSeq, {}));
  }
  return Status();
}

Status pass(LanguageModel& model, std::int32_t width) {
  TokenTree chain(some_token(model, 1000));
  for (std::int32_t i = 1; i < width; ++i) {
    chain.add(i - 1, some_token(model, 1000 + static_cast<std::uint64_t>(i)), 1.0f, 1);
  }
  const std::array<EvalItem, 1> item = {EvalItem{.seq = kSeq, .prefix = {}, .tree = &chain}};
  return model.evaluate(item);
}

// [widths][rounds]. The first one only warms up, unless it takes the budget alone.
Status measure_rounds(LanguageModel& model, const MeasureOptions& options,
                      std::span<const std::int32_t> widths,
                      std::vector<std::vector<double>>& times) {
  const NowMs* clock = options.now_ms ? &options.now_ms : nullptr;
  const Stopwatch all(clock);
  for (std::int32_t round = 0; round <= options.rounds; ++round) {
    const Stopwatch own(clock);
    for (std::size_t i = 0; i < widths.size(); ++i) {
      if (options.cancel != nullptr && options.cancel->load()) {
        return cancelled("measuring was cancelled");
      }
      const Stopwatch watch(clock);
      OUTRIDER_RETURN_IF_ERROR(pass(model, widths[i]));
      times[i].push_back(watch.elapsed_ms());
      OUTRIDER_RETURN_IF_ERROR(model.commit(kSeq, kept_of(model.capabilities())));
    }
    if (options.on_round) options.on_round(round);
    const double spent = all.elapsed_ms();
    if (options.progress) options.progress(std::min(1.0, spent / options.budget_ms));
    if (round == 0 && spent > options.budget_ms) break;
    if (round == 0) {
      for (std::vector<double>& of_width : times) of_width.clear();
    } else if (spent + own.elapsed_ms() > options.budget_ms) {
      break;
    }
  }
  return Status();
}

// While it lives, the flag ends the model's passes.
class Interruptible {
 public:
  Interruptible(LanguageModel& model, const std::atomic<bool>* flag) : model_(model) {
    model_.set_interrupt(flag);
  }
  ~Interruptible() { model_.set_interrupt(nullptr); }
  Interruptible(const Interruptible&) = delete;
  Interruptible& operator=(const Interruptible&) = delete;

 private:
  LanguageModel& model_;
};

}  // namespace

double quantile(std::vector<double> values, double share) {
  std::sort(values.begin(), values.end());
  return values[static_cast<std::size_t>(share * static_cast<double>(values.size() - 1))];
}

Result<std::vector<CostSamples>> measure_cost_samples(LanguageModel& model,
                                                      const MeasureOptions& options) {
  const Capabilities& caps = model.capabilities();
  const std::int64_t passes = (options.rounds + 1) * std::ssize(options.widths);
  const std::int64_t depth = options.depth + passes * std::ssize(kept_of(caps));
  std::vector<std::int32_t> widths;
  for (const std::int32_t width : options.widths) {
    const bool fits = width >= 1 && width <= caps.widest_pass() && width + depth <= caps.n_ctx;
    if (fits) widths.push_back(width);
  }
  std::vector<CostSamples> samples;
  if (widths.size() < 2 || caps.rollback == Rollback::kNone) return samples;
  std::vector<std::vector<double>> times(widths.size());
  Status status;
  {
    const Interruptible interruptible(model, options.cancel);
    status = read_text(model, options.depth);
    if (status.ok()) status = measure_rounds(model, options, widths, times);
  }
  const Status emptied = model.truncate(kSeq, 0);
  if (!status.ok()) return status;
  if (!emptied.ok()) return emptied;
  for (std::size_t i = 0; i < widths.size(); ++i) {
    samples.push_back({.width = widths[i], .ms = std::move(times[i])});
  }
  return samples;
}

Result<std::vector<CostPoint>> measure_costs(LanguageModel& model, const MeasureOptions& options) {
  const Result<std::vector<CostSamples>> samples = measure_cost_samples(model, options);
  if (!samples.ok()) return samples.status();
  std::vector<CostPoint> points;
  for (const CostSamples& width : *samples) {
    const double ms = quantile(width.ms, 0.5);
    if (ms > 0.0) points.push_back({.width = width.width, .ms = ms});
  }
  return points;
}

}  // namespace outrider
