#include <algorithm>
#include <bit>
#include <optional>

#include "base/clock.h"
#include "dist/log_probability.h"
#include "engine/step.h"
#include "verify/block.h"
#include "verify/coupled.h"
#include "verify/rejection.h"

namespace outrider {
namespace {

// The target's side of the walk: rows through the request's sampler chain, tokens through the stop
// rules.
class StepDistributions : public TargetDistributions {
 public:
  StepDistributions(const Step& step, const Part& part)
      : step_(step), item_(static_cast<std::size_t>(part.item)), sequence_(*part.sequence) {}

  Result<Distribution> at(NodeId node) override {
    applied_ = node;
    return apply(*sequence_.request.sampler, node);
  }

  Result<Distribution> peek(NodeId node) override {
    Sampler& sampler = *sequence_.request.sampler;
    if (!sampler.has_state()) return apply(sampler, node);
    if (node == kRoot) {
      ahead_ = sampler.clone();
    } else {
      ahead_->accept(sequence_.sent->token(node));
    }
    return apply(*ahead_, node);
  }

  bool accept(Token token) override {
    Sequence& s = sequence_;
    const NodeId child = node_ == kNoNode ? kNoNode : s.sent->child(node_, token);
    const bool drafted = child != kNoNode && !s.sent->is_filler(child);
    const std::int32_t by = drafted ? s.sent->node(child).first_by : kByTarget;
    if (s.request.logprobs >= 0) s.logprobs.push_back(logprob_of(token));
    // A rule that only peeked: the chain learns from the row that the token was chosen from.
    if (s.request.sampler->has_state() && applied_ != node_) static_cast<void>(at(node_));
    s.request.sampler->accept(token);
    s.text.push_back(token);
    node_ = child;
    const bool ends = step_.vocabulary.is_end_of_generation(token);
    return s.output.accept(token, said_text(token, ends), ends, by);
  }

 private:
  // The token's own text: a control token has none, unless it is to be shown.
  std::string_view text_of(Token token) const {
    const std::map<Token, std::string>& shown = sequence_.request.shown;
    const std::map<Token, std::string>::const_iterator it = shown.find(token);
    return it != shown.end() ? it->second : step_.vocabulary.piece(token);
  }

  // What the token adds to the text: an end token nothing, unless it is to be shown.
  std::string_view said_text(Token token, bool ends) const {
    return ends && !sequence_.request.shown.contains(token) ? std::string_view() : text_of(token);
  }

  Result<Distribution> apply(Sampler& sampler, NodeId node) const {
    const Distribution q = sampler.apply(step_.target.logits(item_, node));
    const Status status = sampler.status();
    if (!status.ok()) return status;
    return q;
  }

  RankedToken ranked(std::span<const float> row, double log_sum, Token token) const {
    return {.id = token,
            .text = std::string(text_of(token)),
            .logprob = static_cast<double>(row[static_cast<std::size_t>(token)]) - log_sum};
  }

  // The token that follows node_, by the row there or by what the chain leaves of it.
  TokenLogprob logprob_of(Token token) {
    Sampler& sampler = *sequence_.request.sampler;
    const std::int32_t n_top = sequence_.request.logprobs;
    const std::span<const float> row = step_.target.logits(item_, node_);
    if (!sequence_.request.logprobs_after_sampler) return token_logprob(row, token, n_top);
    if (sampler.greedy()) return certain(token, n_top);
    applied_ = node_;
    const Distribution q = sampler.apply(row);
    after_.assign(row.size(), kRuledOut);
    for (std::size_t i = 0; i < q.size(); ++i) {
      after_[static_cast<std::size_t>(q.token(i))] = q.scale * q.logits[i];
    }
    return token_logprob(after_, token, n_top);
  }

  // Nothing but the likeliest token can be said at temperature 0.
  TokenLogprob certain(Token token, std::int32_t n_top) const {
    TokenLogprob result;
    result.chosen = {.id = token, .text = std::string(text_of(token))};
    if (n_top > 0) result.top.push_back(result.chosen);
    return result;
  }

  TokenLogprob token_logprob(std::span<const float> row, Token token, std::int32_t n_top) const {
    const double log_sum = log_sum_exp(row);
    TokenLogprob result;
    result.chosen = ranked(row, log_sum, token);
    for (const Token other : likeliest(row, static_cast<std::size_t>(n_top))) {
      result.top.push_back(ranked(row, log_sum, other));
    }
    return result;
  }

  const Step& step_;
  std::size_t item_;
  Sequence& sequence_;
  NodeId node_ = kRoot;             // where the text is
  NodeId applied_ = kNoNode;        // the row that the chain has seen last
  std::vector<float> after_;        // [n_vocab] log-probabilities behind the chain, unnormalised
  std::unique_ptr<Sampler> ahead_;  // has accepted the tokens down to the node last peeked at
};

Result<Walk> walk_tree(const Sequence& s, TargetDistributions& target) {
  const Pos root_position = static_cast<Pos>(s.text.size()) - 1;
  const Request& r = s.request;
  // Without guesses a rule has nothing to judge: the token is then plain decoding's, so that a text
  // for which nobody guesses is that text, whatever the rule. The distribution stays, since whether
  // something is sent does not depend on the noise of the target's tokens where a rule draws.
  if (s.sent->drafted() == 0) return verify_coupled(*s.sent, root_position, s.noise_seed, target);
  SeededChance chance(s.noise_seed, root_position);
  switch (r.rule) {
    case AcceptanceRule::kCoupled:
      break;
    case AcceptanceRule::kRejection:
      return verify_rejection(*s.sent, root_position, s.draws, chance, target);
    case AcceptanceRule::kBlock:
      return verify_block(*s.sent, root_position, s.draws, chance, target);
  }
  return verify_coupled(*s.sent, root_position, s.noise_seed, target);
}

// For each drafter, its nodes that were sent, that were accepted, and that were right but not sent.
void credit_drafters(Sequence& s, const Walk& walk) {
  std::vector<DrafterStats>& drafters = s.stats.drafters;
  DrafterMask accepted_by = 0;
  for (NodeId id = 1; id < s.sent->size(); ++id) {
    for (std::size_t d = 0; d < drafters.size(); ++d) {
      drafters[d].drafted += (s.sent->node(id).proposed_by >> d) & 1;
    }
  }
  for (std::size_t i = 1; i < walk.path.size(); ++i) {
    const DrafterMask by = s.sent->node(walk.path[i]).proposed_by;
    accepted_by |= by;
    for (std::size_t d = 0; d < drafters.size(); ++d) drafters[d].accepted += (by >> d) & 1;
  }
  NodeId at = kRoot;
  for (std::size_t i = 0; i < walk.emitted.size(); ++i) {
    at = s.proposed->child(at, walk.emitted[i]);
    if (at == kNoNode) break;
    if (i < walk.accepted()) continue;  // sent and accepted
    const DrafterMask by = s.proposed->node(at).proposed_by;
    for (std::size_t d = 0; d < drafters.size(); ++d) drafters[d].foregone += (by >> d) & 1;
  }
  for (std::size_t d = 0; d < drafters.size(); ++d)
    drafters[d].accepted_drafts += (accepted_by >> d) & 1;
}

DepthStats& at_depth(SpeculationStats& stats, std::int32_t depth) {
  const std::size_t needed = static_cast<std::size_t>(depth);
  if (stats.by_depth.size() < needed) stats.by_depth.resize(needed);
  return stats.by_depth[needed - 1];
}

// How wide the step was, and how deep its guesses were right.
void note_shape(SpeculationStats& stats, const TokenTree& sent, const Walk& walk) {
  const std::size_t width = static_cast<std::size_t>(sent.size());
  if (stats.steps_by_width.size() <= width) stats.steps_by_width.resize(width + 1);
  ++stats.steps_by_width[width];
  std::vector<bool> has_guess(width, false);  // behind this node
  for (NodeId id = 1; id < sent.size(); ++id) {
    if (sent.is_filler(id)) continue;
    ++at_depth(stats, sent.node(id).depth).drafted;
    has_guess[static_cast<std::size_t>(sent.node(id).parent)] = true;
  }
  // Behind a guess that ended the text nothing was judged.
  const std::size_t n_judged = std::min(walk.path.size(), walk.emitted.size());
  for (std::size_t i = 0; i < n_judged; ++i) {
    if (!has_guess[static_cast<std::size_t>(walk.path[i])]) continue;
    DepthStats& depth = at_depth(stats, sent.node(walk.path[i]).depth + 1);
    ++depth.tested;
    const bool right = i + 1 < walk.path.size() && !sent.is_filler(walk.path[i + 1]);
    depth.accepted += right ? 1 : 0;
  }
}

// SpeculationStats::plain_ms of this step, for a token of each request.
std::optional<double> plain_pass_ms(const Step& step) {
  const std::int32_t width = step.n_prompt + step.n_text;
  std::int32_t plain = width;
  for (const Part& part : step.parts) {
    if (part.ready && part.item >= 0) plain -= part.sequence->sent->size() - 1;
  }
  if (plain == width) return step.evaluate_ms;
  const CostCurve& curve = step.planner.target_cost();
  if (curve.empty() || curve.smallest() > plain) return std::nullopt;
  // Never more than the step: a narrower one that took longer would have been filled up.
  return step.evaluate_ms * std::min(1.0, curve.ms(plain) / curve.ms(width));
}

void note_walk(Sequence& s, const Walk& walk, std::optional<double> plain_ms) {
  ++s.stats.steps;
  // With what only fills the step, which is right now and then: of all that is sent.
  s.stats.drafted += s.sent->size() - 1;
  s.stats.accepted += static_cast<std::int64_t>(walk.accepted());
  s.stats.emitted += static_cast<std::int64_t>(walk.emitted.size());
  credit_drafters(s, walk);
  note_shape(s.stats, *s.sent, walk);
  if (s.answered) {
    s.timings.predicted_after_first += static_cast<std::int64_t>(walk.emitted.size());
    s.timings.predicted_ms = s.since_first.elapsed_ms();
    if (!plain_ms || !s.stats.plain_ms) return s.stats.plain_ms.reset();
    *s.stats.plain_ms += *plain_ms * static_cast<double>(walk.emitted.size());
    return;
  }
  s.answered = true;
  s.stats.first_width = s.sent->size();
  s.timings.first_token_ms = s.age.elapsed_ms();
  s.timings.prompt_ms = s.timings.first_token_ms - s.waited_ms;
  s.since_first.restart();
}

}  // namespace

void verify(Step& step) {
  const std::optional<double> plain_ms = plain_pass_ms(step);
  for (Part& part : step.parts) {
    if (!part.ready || part.item < 0) continue;
    Sequence& s = *part.sequence;
    Stopwatch watch;
    StepDistributions target(step, part);
    Result<Walk> walk = walk_tree(s, target);
    if (s.answered) {
      s.stats.verify_ms += step.evaluate_ms;
      s.stats.sample_ms += watch.elapsed_ms();
    }
    if (walk.ok()) {
      part.walk = std::move(*walk);
      note_walk(s, *part.walk, plain_ms);
    } else {
      s.error = walk.status();
    }
  }
}

}  // namespace outrider
