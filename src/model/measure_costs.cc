#include "model/measure_costs.h"

#include <algorithm>
#include <array>
#include <cmath>
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

// The first round only warms up, unless it takes the budget alone.
Status measure_rounds(LanguageModel& model, const MeasureOptions& options,
                      std::vector<CostSamples>& samples) {
  const NowMs* clock = options.now_ms ? &options.now_ms : nullptr;
  const Stopwatch all(clock);
  for (std::int32_t round = 0; round <= options.rounds; ++round) {
    const Stopwatch own(clock);
    for (std::size_t i = 0; i <= samples.size(); ++i) {
      if (options.cancel != nullptr && options.cancel->load()) {
        return cancelled("measuring was cancelled");
      }
      CostSamples& of_width = samples[i == 0 ? 0 : i - 1];
      const Stopwatch watch(clock);
      OUTRIDER_RETURN_IF_ERROR(pass(model, of_width.width));
      (i == 0 ? of_width.behind_ms : of_width.ms).push_back(watch.elapsed_ms());
      OUTRIDER_RETURN_IF_ERROR(model.commit(kSeq, kept_of(model.capabilities())));
    }
    if (options.on_round) options.on_round(round);
    const double spent = all.elapsed_ms();
    if (options.progress) options.progress(std::min(1.0, spent / options.budget_ms));
    if (round == 0 && spent > options.budget_ms) break;
    if (round == 0) {
      for (CostSamples& of_width : samples) of_width.ms.clear();
      samples[0].behind_ms.clear();
    } else if (spent + own.elapsed_ms() > options.budget_ms) {
      break;
    }
  }
  return Status();
}

// Of `width` tokens, where the pass before had another number; 0: not known.
double ms_of(const PassCosts& costs, std::int32_t width) {
  for (const CostPoint& point : costs.points) {
    if (point.width == width) return point.ms + (width == 1 ? 0.0 : costs.rebuild_ms);
  }
  return 0.0;
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

double rebuild_ms(const CostSamples& first) {
  constexpr std::size_t kLeast = 3;
  constexpr double kMost = 0.5;  // of a pass
  std::vector<double> more;
  for (std::size_t i = 0; i < std::min(first.ms.size(), first.behind_ms.size()); ++i) {
    more.push_back(first.behind_ms[i] - first.ms[i]);
  }
  if (more.size() < kLeast) return 0.0;
  return std::clamp(quantile(std::move(more), 0.25), 0.0, kMost * quantile(first.ms, 0.5));
}

Result<std::vector<CostSamples>> measure_cost_samples(LanguageModel& model,
                                                      const MeasureOptions& options) {
  const Capabilities& caps = model.capabilities();
  const std::int64_t passes = (options.rounds + 1) * (std::ssize(options.widths) + 1);
  const std::int64_t depth = options.depth + passes * std::ssize(kept_of(caps));
  std::vector<CostSamples> samples;
  for (const std::int32_t width : options.widths) {
    const bool fits = width >= 1 && width <= caps.widest_pass() && width + depth <= caps.n_ctx;
    if (fits) samples.push_back({.width = width, .ms = {}});
  }
  if (samples.size() < 2 || caps.rollback == Rollback::kNone) return std::vector<CostSamples>();
  Status status;
  {
    const Interruptible interruptible(model, options.cancel);
    status = read_text(model, options.depth);
    if (status.ok()) status = measure_rounds(model, options, samples);
  }
  const Status emptied = model.truncate(kSeq, 0);
  if (!status.ok()) return status;
  if (!emptied.ok()) return emptied;
  return samples;
}

Result<PassCosts> measure_costs(LanguageModel& model, const MeasureOptions& options) {
  const Result<std::vector<CostSamples>> samples = measure_cost_samples(model, options);
  if (!samples.ok()) return samples.status();
  PassCosts costs;
  if (samples->empty()) return costs;
  const CostSamples& first = samples->front();
  costs.rebuild_ms = rebuild_ms(first);
  for (const CostSamples& of_width : *samples) {
    const double rebuilt_ms = of_width.width == first.width ? 0.0 : costs.rebuild_ms;
    const double ms = quantile(of_width.ms, 0.5) - rebuilt_ms;
    if (ms > 0.0) costs.points.push_back({.width = of_width.width, .ms = ms});
  }
  return costs;
}

Result<bool> costs_hold(LanguageModel& model, const PassCosts& known, MeasureOptions options) {
  constexpr std::int32_t kFew = 4;
  constexpr double kSame = 0.15;
  if (known.points.empty()) return false;
  std::int32_t widest = 1;
  for (const CostPoint& point : known.points) widest = std::max(widest, point.width);
  options.widths = {1};
  if (widest > kFew && ms_of(known, kFew) > 0.0) options.widths.push_back(kFew);
  options.widths.push_back(widest);
  options.depth = 8;  // soon read; attention is next to nothing there as well
  options.rounds = 2;
  const double single = ms_of(known, 1);
  if (widest == 1 || !(single > 0.0)) return true;  // nothing to compare
  // The text, a round to warm up and one that counts.
  double round_ms = single;
  for (const std::int32_t width : options.widths) round_ms += ms_of(known, width);
  const double text_ms = std::max(ms_of(known, options.depth), single);
  if (text_ms + 2.0 * round_ms > options.budget_ms) return true;
  const Result<PassCosts> now = measure_costs(model, options);
  if (now.status().code() == StatusCode::kCancelled) return now.status();
  if (!now.ok() || now->points.size() != options.widths.size()) return true;
  for (const CostPoint& point : now->points) {
    const double before = ms_of(known, point.width) / single;
    const double ratio = ms_of(*now, point.width) / ms_of(*now, 1);
    if (std::abs(std::log(ratio / before)) >= kSame) return false;
  }
  return true;
}

}  // namespace outrider
