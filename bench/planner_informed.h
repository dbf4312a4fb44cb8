// What a planner could do that knows how sure each guess is, and nothing else.
//
// The oracle knows which guesses hold. Nobody does before the target has spoken: what can be known
// is how often guesses like this one hold. So this planner has, from the start, the shares of all
// guesses of the same depth and confidence that hold in these very texts (learned afterwards, so it
// pays for no learning), exact costs, and more foresight than can be had: it sees the confidences
// of a whole chain before it decides how much of it to draft. It takes the length that brings the
// most tokens beyond what their time brings on average, which is the best in the long run. What it
// falls short of the oracle is therefore out of reach for whoever chooses by the same confidences.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "bench/give_up.h"
#include "bench/planner_texts.h"
#include "draft/base/drafter.h"
#include "plan/node_claims.h"

namespace outrider {

// One chain behind one place of a text, whether it holds or not.
struct SeenChain {
  std::vector<float> confidence;  // [guesses]
  std::size_t right = 0;          // of them, from the first on
};

// [places of a text that are no step's result of the prompt]
using SeenChains = std::vector<SeenChain>;

inline constexpr std::int32_t kDeepestSeen = 8;
inline constexpr float kLeastSeen = 0.05f;  // chains are followed while they are as sure

class FollowsChain : public DraftGuide {
 public:
  float chance(std::int32_t /*depth*/, float confidence) const override { return confidence; }
  bool another_pass(float tip_chance, std::int32_t tip_depth) override {
    return tip_depth < kDeepestSeen && tip_chance >= kLeastSeen;
  }
};

// Of `text`, [place - 1] what the drafter says behind its first `place` tokens.
inline SeenChains look(const Text& text, Sampler& sampler, Drafter& drafter) {
  SeenChains seen;
  std::vector<Token> decided = text.prompt;
  sampler.begin(decided, text.seed);
  if (!drafter.begin(0, 0).ok()) give_up("begin");
  for (std::size_t place = 1; place < text.said.size(); ++place) {
    decided.push_back(text.said[place - 1]);
    sampler.accept(decided.back());
    TokenTree tree(decided.back());
    FollowsChain guide;
    DraftRequest request{.seq = 0,
                         .text = decided,
                         .seed = text.seed,
                         .sampler = &sampler,
                         .max_nodes = kDeepestSeen,
                         .guide = &guide,
                         .mask = 1,
                         .tree = &tree};
    drafter.accept(0, decided);
    if (!draft_one(drafter, request).ok()) give_up("draft");
    NodeClaims claims;
    claims.update(tree);
    SeenChain chain;
    bool holds = true;
    for (NodeId id = 1; id < tree.size(); ++id) {
      claims.for_each(id, [&](const Claim& claim) {
        chain.confidence.push_back(claims.guess(tree, claim).confidence);
      });
      const std::size_t at = place + static_cast<std::size_t>(id) - 1;
      holds = holds && at < text.said.size() && tree.token(id) == text.said[at];
      chain.right += holds ? 1 : 0;
    }
    seen.push_back(std::move(chain));
  }
  drafter.end(0);
  return seen;
}

class Informed {
 public:
  explicit Informed(const std::vector<SeenChains>& texts) : texts_(texts) {
    for (const SeenChains& text : texts) {
      for (const SeenChain& chain : text) {
        const std::size_t tested = std::min(chain.right + 1, chain.confidence.size());
        for (std::size_t i = 0; i < tested; ++i) {
          Cell& cell = cells_[depth(i)][bucket(chain.confidence[i])];
          cell.seen += 1.0;
          cell.right += i < chain.right ? 1.0 : 0.0;
        }
      }
    }
  }

  struct Played {
    double ms = 0.0;
    double tokens = 0.0;
    double expected = 0.0;  // tokens by the chances: as many where these are right
  };

  // `own_rate`: each step is judged by its own tokens for its time, as the planner does, not by
  // what its time would bring elsewhere. `foresight`: sees the whole chain's confidences; else
  // those of the guesses it has paid for, and for the others what follows guesses like the last one
  // on average.
  Played play(const std::function<double(std::int32_t)>& step_ms, double pass_ms, bool foresight,
              bool own_rate = false) const {
    double rate = 1.0 / step_ms(1);
    Played played;
    for (int round = 0; round < 12; ++round) {
      played = Played();
      for (const SeenChains& text : texts_)
        play_text(text, step_ms, pass_ms, own_rate ? 0.0 : rate, foresight, played);
      rate = played.tokens / played.ms;
    }
    return played;
  }

 private:
  static constexpr std::size_t kBuckets = 20;
  static constexpr std::size_t kDepths = 4;
  struct Cell {
    double right = 0.0;
    double seen = 0.0;
    double share() const { return seen > 0.0 ? right / seen : 0.5; }
  };

  static std::size_t depth(std::size_t i) { return std::min(i, kDepths - 1); }
  // By the lead in equal parts, which is finer where it matters than the confidence.
  static std::size_t bucket(float confidence) {
    const double c = std::clamp(static_cast<double>(confidence), 1e-6, 1.0 - 1e-6);
    const double lead = std::log(c / (1.0 - c));
    return static_cast<std::size_t>(std::clamp(lead * 2.0, 0.0, static_cast<double>(kBuckets - 1)));
  }

  double chance(const SeenChain& chain, std::size_t i) const {
    return cells_[depth(i)][bucket(chain.confidence[i])].share();
  }

  // What a further guess's chance is on average, behind one of this bucket.
  void play_text(const SeenChains& text, const std::function<double(std::int32_t)>& step_ms,
                 double pass_ms, double rate, bool foresight, Played& played) const {
    for (std::size_t place = 0; place < text.size();) {
      const SeenChain& chain = text[place];
      const std::size_t most = std::min(chain.confidence.size(), text.size() - place - 1);
      std::vector<double> tokens = {1.0};  // [sent] expected
      double cumulative = 1.0;
      for (std::size_t i = 0; i < most; ++i) {
        cumulative *= chance(chain, i);
        tokens.push_back(tokens.back() + cumulative);
      }
      const auto value = [&](std::size_t sent, std::size_t drafted) {
        const double ms =
            step_ms(static_cast<std::int32_t>(sent) + 1) + pass_ms * static_cast<double>(drafted);
        return rate > 0.0 ? tokens[sent] - rate * ms : tokens[sent] / ms;
      };
      std::size_t sent = 0;
      std::size_t drafted = 0;
      if (foresight) {
        for (std::size_t n = 1; n <= most; ++n) {
          if (value(n, n) > value(sent, sent)) sent = n;
        }
        drafted = sent;
      } else {
        while (drafted < most &&
               further_guesses_pay(tokens, chain, drafted, step_ms, pass_ms, rate)) {
          ++drafted;
        }
        for (std::size_t n = 1; n <= drafted; ++n) {
          if (value(n, drafted) > value(sent, drafted)) sent = n;
        }
      }
      played.ms +=
          step_ms(static_cast<std::int32_t>(sent) + 1) + pass_ms * static_cast<double>(drafted);
      played.expected += tokens[sent];
      const std::size_t said = std::min(sent, chain.right) + 1;
      played.tokens += static_cast<double>(said);
      place += said;
    }
  }

  // Whether one to four more guesses are worth their passes, behind `drafted` that are known.
  bool further_guesses_pay(const std::vector<double>& tokens, const SeenChain& chain,
                           std::size_t drafted, const std::function<double(std::int32_t)>& step_ms,
                           double pass_ms, double rate) const {
    const auto value = [&](double said, std::size_t sent, std::size_t passes) {
      const double ms =
          step_ms(static_cast<std::int32_t>(sent) + 1) + pass_ms * static_cast<double>(passes);
      return rate > 0.0 ? said - rate * ms : said / ms;
    };
    double best = value(tokens[0], 0, drafted);
    for (std::size_t n = 1; n <= drafted; ++n) best = std::max(best, value(tokens[n], n, drafted));
    double tip = drafted == 0 ? 1.0 : tokens[drafted] - tokens[drafted - 1];
    double expected = tokens[drafted];
    for (std::size_t n = 1; n <= 4; ++n) {
      tip *= mean_behind(chain, drafted + n - 1, drafted);
      expected += tip;
      if (value(expected, drafted + n, drafted + n) > best) return true;
    }
    return false;
  }

  // The mean share that holds of guesses at index `i`; `known`: guesses seen.
  double mean_behind(const SeenChain& /*chain*/, std::size_t i, std::size_t /*known*/) const {
    Cell all;
    for (const Cell& cell : cells_[depth(i)]) {
      all.right += cell.right;
      all.seen += cell.seen;
    }
    return all.share();
  }

  const std::vector<SeenChains>& texts_;
  std::array<std::array<Cell, kBuckets>, kDepths> cells_{};
};

}  // namespace outrider
