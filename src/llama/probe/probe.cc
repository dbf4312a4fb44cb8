#include "llama/probe/probe.h"

#include <algorithm>
#include <array>
#include <cassert>
#include <string>
#include <utility>

#include "llama/probe/probe_coverage.h"
#include "llama/probe/probe_plan.h"
#include "llama/probe/probe_truth.h"
#include "llama/probe/probe_verdict.h"
#include "llama/probe/probe_walk.h"

namespace outrider::llama {
namespace {

constexpr std::int32_t kPieceWidth = 8;  // batches that pieces of prompts are compared with
constexpr std::int32_t kDearPiece = 65;  // longer ones are not fed in single steps

class Prober {
 public:
  Prober(LanguageModel& model, const ProbeOptions& options);
  Result<ProbeReport> run();

 private:
  Status compare_all();
  Status run_unit(const ProbeUnit& unit);
  Status width_unit(const ProbeUnit& unit);
  Status others_unit(const ProbeUnit& unit);
  Status tree_unit(const ProbeUnit& unit);
  Status piece_unit(const ProbeUnit& unit);

  bool worthwhile(const ProbeUnit& unit) const;
  // Makes the rows of truth that a batch of `width` needs; or those that are known once more.
  Status take_single_steps(std::int32_t start, std::int32_t round, std::int32_t width,
                           bool again = false);
  bool compare(std::size_t item, NodeId node, std::span<const float> wanted, std::int32_t width,
               const std::string& where);
  void differs(std::int32_t width, std::string what);
  void forget_all();
  void report_progress();
  ProbeReport report() const;

  const ProbeOptions& options_;
  ProbeWalk walk_;
  ProbePlanOptions plan_options_;
  double begin_ms_ = 0.0;

  std::vector<ProbeUnit> units_;
  std::size_t n_done_ = 0;  // units run or passed over
  bool any_run_ = false;
  double progress_ = 0.0;
  bool complete_ = true;

  ProbeTruth truth_;
  ProbeCoverage coverage_;
  std::int32_t limit_;       // no difference was seen up to this width
  std::string reason_;       // the difference that set it
  bool suspicious_ = false;  // a difference was seen
  bool repeats_ = true;      // single steps give the same numbers each time
  bool others_differ_ = false;
  bool pieces_differ_ = false;
};

Prober::Prober(LanguageModel& model, const ProbeOptions& options)
    : options_(options),
      walk_(model, options),
      truth_(walk_, options.widest),
      coverage_(walk_.starts()),
      limit_(options.widest) {
  const Capabilities& capabilities = model.capabilities();
  plan_options_ = {.widest = options.widest,
                   .n_starts = static_cast<std::int32_t>(walk_.starts().size()),
                   .n_sequences = std::min(capabilities.n_sequences, 3),
                   .max_leaves = capabilities.max_leaves,
                   .n_batch = std::min(capabilities.n_batch, capabilities.n_ctx - 1),
                   .same_for_all_widths = options.same_for_all_widths};
  coverage_.add_rows(options.passed.rows);
}

Result<ProbeReport> Prober::run() {
  begin_ms_ = walk_.now_ms();
  walk_.model().set_interrupt(options_.cancel);
  const Status status = compare_all();
  walk_.model().set_interrupt(nullptr);
  forget_all();
  if (!status.ok()) return status;
  if (options_.progress) options_.progress(1.0);
  return report();
}

Status Prober::compare_all() {
  units_ = plan_probe(plan_options_);
  for (n_done_ = 0; n_done_ < units_.size(); ++n_done_) {
    if (!repeats_) break;
    const ProbeUnit unit = units_[n_done_];
    report_progress();
    if (unit.kind != ProbeUnit::Kind::kPiece && unit.width > limit_) continue;
    // Where a batch differs, so does a piece of that length, even if its last rows do not show it.
    const bool hopeless = pieces_differ_ || limit_ < options_.widest;
    if (unit.kind == ProbeUnit::Kind::kPiece && hopeless) continue;
    if (options_.passed.holds(unit)) {
      coverage_.add(unit);
      continue;
    }
    if (!worthwhile(unit)) {
      complete_ = false;
      continue;
    }
    any_run_ = true;
    const bool was_suspicious = suspicious_;
    OUTRIDER_RETURN_IF_ERROR(run_unit(unit));
    if (suspicious_ && !was_suspicious) {
      // Are the single steps themselves to be trusted? Then look closer at the widths that are
      // left.
      if (unit.kind == ProbeUnit::Kind::kWidth) {
        OUTRIDER_RETURN_IF_ERROR(
            take_single_steps(unit.start, unit.round, unit.width, /*again=*/true));
      }
      const std::vector<ProbeUnit> more = plan_suspicion(plan_options_, limit_);
      units_.insert(units_.begin() + static_cast<std::ptrdiff_t>(n_done_) + 1, more.begin(),
                    more.end());
    }
  }
  return Status();
}

bool Prober::worthwhile(const ProbeUnit& unit) const {
  if (!any_run_) return true;
  const std::int32_t rows = truth_.known(unit.start, unit.round);
  if (unit.required && options_.insist) return true;
  const double spent_ms = walk_.now_ms() - begin_ms_ + unit.cost(rows) * walk_.single_ms();
  return spent_ms <= unit.budgets * options_.budget_ms;
}

Status Prober::run_unit(const ProbeUnit& unit) {
  if (unit.kind == ProbeUnit::Kind::kOthers) return others_unit(unit);
  if (unit.kind == ProbeUnit::Kind::kPiece) return piece_unit(unit);
  if (unit.kind == ProbeUnit::Kind::kTree) return tree_unit(unit);
  return width_unit(unit);
}

Status Prober::width_unit(const ProbeUnit& unit) {
  const std::int32_t width = unit.width;
  OUTRIDER_RETURN_IF_ERROR(take_single_steps(unit.start, unit.round, width));
  OUTRIDER_RETURN_IF_ERROR(walk_.go_to(unit.start));
  const ProbeTruth::Stretch& truth = truth_.at(unit.start);
  const std::string where = "a batch of " + std::to_string(width) + " after " +
                            std::to_string(walk_.starts()[static_cast<std::size_t>(unit.start)]) +
                            " cells";

  // All right; half of it is kept.
  const std::span<const Token> tokens(truth.tokens);
  const TokenTree right = chain_of(tokens.subspan(0, static_cast<std::size_t>(width)));
  const EvalItem first{.seq = 0, .prefix = {}, .tree = &right};
  OUTRIDER_RETURN_IF_ERROR(walk_.evaluate({&first, 1}));
  bool equal = true;
  for (NodeId node = 0; node < width; ++node) {
    equal &= compare(0, node, truth.rows[static_cast<std::size_t>(node)], width, where);
  }
  const std::int32_t kept = std::max(1, width / 2);
  OUTRIDER_RETURN_IF_ERROR(walk_.model().commit(0, first_nodes(kept)));

  // Behind it as much as is known, then wrong tokens; nothing is kept. What a model that cannot
  // drop a part of its state has lost is read again.
  const Pos lost = walk_.base_length() + kept - walk_.model().length(0);
  if (lost < 0 || lost > kept) return internal_error("a rollback has lost more than was tentative");
  const std::int32_t n_right = std::min(width, static_cast<std::int32_t>(truth.rows.size()) - kept);
  std::vector<Token> mixed;
  for (std::int32_t i = 0; i < width; ++i) {
    const std::size_t at = static_cast<std::size_t>(kept + i);
    mixed.push_back(i < n_right ? tokens[at] : walk_.random_token(ProbeWalk::Stream::kWrong, at));
  }
  const TokenTree wrong = chain_of(mixed);
  const EvalItem second{.seq = 0,
                        .prefix = tokens.subspan(static_cast<std::size_t>(kept - lost),
                                                 static_cast<std::size_t>(lost)),
                        .tree = &wrong};
  OUTRIDER_RETURN_IF_ERROR(walk_.evaluate({&second, 1}));
  for (NodeId node = 0; node < n_right; ++node) {
    equal &= compare(0, node, truth.rows[static_cast<std::size_t>(kept + node)], width,
                     where + " and a rollback");
  }
  OUTRIDER_RETURN_IF_ERROR(walk_.model().commit(0, {}));
  if (equal) coverage_.add(unit);
  return Status();
}

// The main chain in between wrong side branches: t0; x0 and t1 below it; x1 and t2 below t1; ...
Status Prober::tree_unit(const ProbeUnit& unit) {
  const std::int32_t n_main = (unit.width + 1) / 2;
  OUTRIDER_RETURN_IF_ERROR(take_single_steps(unit.start, truth_.round(), n_main));
  OUTRIDER_RETURN_IF_ERROR(walk_.go_to(unit.start));
  const ProbeTruth::Stretch& truth = truth_.at(unit.start);
  TokenTree tree(truth.tokens[0]);
  std::vector<NodeId> chain{kRoot};
  for (std::uint64_t i = 0; tree.size() < unit.width; ++i) {
    const Token wrong = walk_.random_token(ProbeWalk::Stream::kWrong, 1024 + i);
    const std::size_t next = chain.size();
    if (wrong == truth.tokens[next] || tree.child(chain.back(), wrong) != kNoNode) continue;
    tree.add(chain.back(), wrong, 1.0f, 1);
    if (tree.size() == unit.width) break;
    chain.push_back(tree.add(chain.back(), truth.tokens[next], 1.0f, 1));
  }
  const EvalItem item{.seq = 0, .prefix = {}, .tree = &tree};
  OUTRIDER_RETURN_IF_ERROR(walk_.evaluate({&item, 1}));
  const std::string where = "a tree of " + std::to_string(unit.width) + " nodes after " +
                            std::to_string(walk_.starts()[static_cast<std::size_t>(unit.start)]) +
                            " cells";
  bool equal = true;
  for (std::size_t i = 0; i < chain.size(); ++i) {
    equal &= compare(0, chain[i], truth.rows[i], unit.width, where);
  }
  if (equal) coverage_.add(unit);
  return walk_.model().commit(0, {});
}

// Sequence 0 in the same batch as one or two others, with no more tokens than a batch may have.
Status Prober::others_unit(const ProbeUnit& unit) {
  const std::int32_t n_others = std::min(plan_options_.n_sequences - 1, limit_ >= 3 ? 2 : 1);
  const std::int32_t own = std::clamp(limit_ - n_others - 1, 1, unit.width);
  if (own + n_others > limit_) return Status();
  OUTRIDER_RETURN_IF_ERROR(take_single_steps(unit.start, truth_.round(), own));
  OUTRIDER_RETURN_IF_ERROR(walk_.go_to(unit.start));
  const ProbeTruth::Stretch& truth = truth_.at(unit.start);

  OUTRIDER_RETURN_IF_ERROR(walk_.prepare_others(n_others));
  std::vector<TokenTree> trees;
  trees.push_back(chain_of(std::span(truth.tokens).first(static_cast<std::size_t>(own))));
  for (SeqId seq = 1; seq <= n_others; ++seq) {
    trees.emplace_back(
        walk_.random_token(ProbeWalk::Stream::kOthers, static_cast<std::uint64_t>(seq)));
  }
  std::vector<EvalItem> items;
  for (SeqId seq = n_others; seq >= 0; --seq) {
    items.push_back({.seq = seq, .prefix = {}, .tree = &trees[static_cast<std::size_t>(seq)]});
  }
  OUTRIDER_RETURN_IF_ERROR(walk_.evaluate(items));
  const std::size_t mine = items.size() - 1;
  bool equal = true;
  for (NodeId node = 0; node < own; ++node) {
    const std::span<const float> row = walk_.model().logits(mine, node);
    const ProbeRow& wanted = truth.rows[static_cast<std::size_t>(node)];
    coverage_.add_rows(1);
    if (same_bits(row, wanted)) continue;
    equal = false;
    if (!others_differ_) {
      reason_ = "with other requests in the batch a row differs from single steps " +
                describe_difference(row, wanted);
    }
    others_differ_ = true;
  }
  for (const EvalItem& item : items) {
    OUTRIDER_RETURN_IF_ERROR(walk_.model().commit(item.seq, {}));
  }
  for (SeqId seq = 1; seq <= n_others; ++seq)
    OUTRIDER_RETURN_IF_ERROR(walk_.model().truncate(seq, 0));
  if (equal) coverage_.add(unit);
  return Status();
}

// The state that a prompt leaves when it is evaluated in one piece, and in exact batches: seen in
// its last row and in that of a further token.
Status Prober::piece_unit(const ProbeUnit& unit) {
  const std::int32_t width = std::min(kPieceWidth, coverage_.widest_everywhere(limit_));
  if (width < 2 && unit.width > kDearPiece) return Status();
  std::vector<Token> tokens;
  for (std::int32_t i = 0; i <= unit.width; ++i) {
    tokens.push_back(walk_.random_token(ProbeWalk::Stream::kPiece, static_cast<std::uint64_t>(i)));
  }
  const Token next = tokens.back();
  tokens.pop_back();
  std::array<ProbeRow, 2> whole;
  std::array<ProbeRow, 2> parts;
  OUTRIDER_RETURN_IF_ERROR(walk_.clear());
  const TokenTree root(tokens.back());
  const EvalItem item{
      .seq = 0, .prefix = std::span(tokens).first(tokens.size() - 1), .tree = &root};
  OUTRIDER_RETURN_IF_ERROR(walk_.evaluate({&item, 1}));
  const std::span<const float> row = walk_.model().logits(0, 0);
  whole[0].assign(row.begin(), row.end());
  OUTRIDER_RETURN_IF_ERROR(walk_.model().commit(0, first_nodes(1)));
  OUTRIDER_RETURN_IF_ERROR(walk_.single_step(next, &whole[1]));

  OUTRIDER_RETURN_IF_ERROR(walk_.clear());
  OUTRIDER_RETURN_IF_ERROR(walk_.feed(tokens, width, &parts[0]));
  OUTRIDER_RETURN_IF_ERROR(walk_.single_step(next, &parts[1]));
  coverage_.add_rows(2);
  if (same_bits(whole[0], parts[0]) && same_bits(whole[1], parts[1])) {
    coverage_.add(unit);
  } else {
    pieces_differ_ = true;
  }
  return walk_.clear();
}

Status Prober::take_single_steps(std::int32_t start, std::int32_t round, std::int32_t width,
                                 bool again) {
  const std::int32_t n = again ? truth_.known(start, round) : rows_needed(width, options_.widest);
  std::int64_t repeated = 0;
  const Status status = truth_.take(start, round, n, again, &repeated);
  coverage_.add_rows(repeated);
  if (repeats_ && !truth_.difference().empty()) {
    repeats_ = false;
    differs(1, "single steps give other numbers when they are repeated: a row differs " +
                   truth_.difference());
  }
  return status;
}

bool Prober::compare(std::size_t item, NodeId node, std::span<const float> wanted,
                     std::int32_t width, const std::string& where) {
  const std::span<const float> row = walk_.model().logits(item, node);
  coverage_.add_rows(1);
  if (same_bits(row, wanted)) return true;
  differs(width, where + " differs from single steps: row " + std::to_string(node + 1) + " " +
                     describe_difference(row, wanted));
  return false;
}

void Prober::differs(std::int32_t width, std::string what) {
  suspicious_ = true;
  coverage_.forget_pieces();
  if (width - 1 >= limit_) return;
  limit_ = width - 1;
  reason_ = std::move(what);
}

void Prober::forget_all() {
  for (SeqId seq = 0; seq < plan_options_.n_sequences; ++seq) {
    // After a failure the model may refuse; it is the caller's to drop then.
    static_cast<void>(walk_.model().truncate(seq, 0));
  }
}

void Prober::report_progress() {
  if (!options_.progress) return;
  const double by_units = static_cast<double>(n_done_) / static_cast<double>(units_.size());
  const double by_time =
      options_.budget_ms > 0.0 ? (walk_.now_ms() - begin_ms_) / (2.0 * options_.budget_ms) : 0.0;
  progress_ = std::max(progress_, std::min(0.99, std::max(by_units, by_time)));
  options_.progress(progress_);
}

ProbeReport Prober::report() const {
  return report_of({.widest = options_.widest,
                    .limit = limit_,
                    .reason = reason_,
                    .complete = complete_,
                    .suspicious = suspicious_,
                    .others_differ = others_differ_,
                    .pieces_differ = pieces_differ_,
                    .has_others = plan_options_.n_sequences > 1,
                    .elapsed_ms = options_.passed.elapsed_ms + walk_.now_ms() - begin_ms_},
                   coverage_);
}

}  // namespace

Result<ProbeReport> probe_exactness(LanguageModel& model, const ProbeOptions& options) {
  const Capabilities& capabilities = model.capabilities();
  const std::int32_t most = capabilities.widest_pass();
  if (options.widest < 2 || options.widest > most) {
    return invalid_argument("the widest width to probe is " + std::to_string(options.widest) +
                            ", but must be from 2 to " + std::to_string(most));
  }
  if (capabilities.rollback == Rollback::kNone) {
    return unsupported("the model cannot take tokens back, so it takes one at a time");
  }
  assert(!options.starts.empty());
  return Prober(model, options).run();
}

}  // namespace outrider::llama
