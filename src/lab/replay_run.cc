#include "lab/replay_run.h"

#include <cmath>
#include <cstdio>
#include <memory>
#include <span>
#include <utility>

#include "base/clock.h"
#include "draft/ngram/ngram_drafter.h"

namespace outrider::lab {
namespace {

// A piece of the texts that is gone through at once.
struct Piece {
  std::span<const Token> tokens;
  std::size_t given = 1;
};

// The drafters that the plan names, in the order of the table, with their files.
class Drafting {
 public:
  explicit Drafting(const ReplayPlan& plan) {
    const bool learns = plan.chunk > 0 && plan.drafters.mentions(NgramDrafter::kName);
    if (learns) learned_ = std::make_shared<NgramCache>();
    for (const LookupKind* kind : lookup_kinds()) {
      if (!plan.drafters.mentions(kind->name)) continue;
      const bool is_learner = learns && kind->name == NgramDrafter::kName;
      std::unique_ptr<LookupDrafter> drafter =
          is_learner ? make_learner() : kind->make({.n_vocab = plan.n_vocab, .n_sequences = 1});
      for (const auto& [file, load_ms] : plan.files) {
        if (file.file.drafter != kind->name) continue;
        if (is_learner && file.file.tier == "dynamic") {
          *learned_ = *cache_of(file);  // it grows, and the file's own is only read
        } else {
          drafter->add_file(file);
        }
      }
      drafters_.push_back(std::move(drafter));
    }
  }

  std::vector<Drafter*> drafters() const {
    std::vector<Drafter*> all;
    for (const std::unique_ptr<LookupDrafter>& drafter : drafters_) all.push_back(drafter.get());
    return all;
  }
  void learn() {
    if (learner_ != nullptr) learner_->learn(0);
  }
  std::uint64_t context_bytes() const {
    std::uint64_t bytes = 0;
    for (const std::unique_ptr<LookupDrafter>& drafter : drafters_)
      bytes += drafter->memory_bytes();
    return bytes;
  }
  std::uint64_t learned_bytes() const { return learned_ ? learned_->memory_bytes() : 0; }

 private:
  std::unique_ptr<LookupDrafter> make_learner() {
    std::unique_ptr<NgramDrafter> drafter = std::make_unique<NgramDrafter>(nullptr, learned_);
    learner_ = drafter.get();
    return drafter;
  }

  std::vector<std::unique_ptr<LookupDrafter>> drafters_;
  std::shared_ptr<NgramCache> learned_;  // null: nothing is learned
  NgramDrafter* learner_ = nullptr;      // likewise
};

// With a chunk as lookup-stats has it: a piece must be followed by at least one more token.
std::vector<Piece> cut(const ReplayTexts& texts, std::size_t chunk, std::size_t& skipped) {
  std::vector<Piece> pieces;
  for (const ReplayText& text : texts.texts) {
    const std::span<const Token> tokens(text.tokens);
    if (chunk == 0 || !texts.plain) {
      pieces.push_back({.tokens = tokens, .given = text.given});
      continue;
    }
    std::size_t start = 0;
    for (; start + chunk < tokens.size(); start += chunk) {
      pieces.push_back({.tokens = tokens.subspan(start, chunk)});
    }
    skipped += tokens.size() - start;
  }
  return pieces;
}

std::string time_left(double seconds) {
  char text[32];
  const long long s = std::llround(seconds);
  std::snprintf(text, sizeof(text), "%02lld:%02lld left", s / 60, s % 60);
  return text;
}

Status replay_all(const std::vector<Piece>& pieces, bool keep, Drafting& drafting,
                  TextReplay& replay, const Watcher& watcher) {
  double total = 0.0;
  for (const Piece& piece : pieces) total += static_cast<double>(piece.tokens.size());
  double before = 0.0;
  const Stopwatch watch;
  for (const Piece& piece : pieces) {
    const auto show = [&](std::size_t done) {
      const double share = (before + static_cast<double>(done)) / total;
      const double left = watch.elapsed_ms() / 1000.0 * (1.0 - share) / share;
      watcher.update("replaying, " + time_left(left), share);
    };
    OUTRIDER_RETURN_IF_ERROR(replay.run(piece.tokens, piece.given, keep, watcher.interrupt, show));
    before += static_cast<double>(piece.tokens.size());
    show(0);
    drafting.learn();
  }
  return Status();
}

}  // namespace

Result<ReplayResult> run_replay(const ReplayPlan& plan, const ReplayTexts& texts,
                                const Watcher& watcher) {
  ReplayResult result;
  const std::vector<Piece> pieces =
      cut(texts, static_cast<std::size_t>(plan.chunk), result.skipped);
  Drafting drafting(plan);
  TextReplay replay(drafting.drafters(), plan.drafters, {.width = plan.width, .shape = plan.shape});
  OUTRIDER_RETURN_IF_ERROR(replay_all(pieces, /*keep=*/!texts.plain, drafting, replay, watcher));
  result.stats = replay.stats();
  if (result.stats.steps == 0) {
    return invalid_argument("there is nothing to draft: the text has not more than " +
                            std::to_string(plan.chunk > 0 ? plan.chunk : 1) +
                            " tokens; give a longer one, or a smaller --chunk");
  }
  result.context_bytes = drafting.context_bytes();
  result.learned_bytes = drafting.learned_bytes();
  if (plan.costs) {
    const Result<double> predicted = plan.costs->speedup(result.stats);
    if (!predicted.ok()) return predicted.status();
    result.speedup = *predicted;
  }
  return result;
}

}  // namespace outrider::lab
