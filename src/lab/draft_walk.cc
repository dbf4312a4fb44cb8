#include "lab/draft_walk.h"

#include <algorithm>

#include "base/clock.h"
#include "machine/fastest_run.h"

namespace outrider::lab {
namespace {

constexpr SeqId kSeq = 0;

// Goes on until a guess is wrong, and notes when each pass ends.
class WalkGuide : public DraftGuide {
 public:
  WalkGuide(const TokenTree& tree, std::span<const Token> text, const NowMs* clock)
      : tree_(tree), text_(text), watch_(clock) {}

  // High, so that no pass is left out for want of a likely guess.
  float chance(std::int32_t, float) const override { return 0.95f; }

  bool another_pass(float, std::int32_t tip_depth) override {
    times_.push_back(watch_.restart());
    over_ = right_guesses(tree_, text_) < static_cast<std::size_t>(tip_depth);
    return !over_;
  }

  // The draft is over; the last pass may have ended without a further question.
  std::vector<double> finish() {
    if (!over_) times_.push_back(watch_.elapsed_ms());
    return times_;
  }

 private:
  const TokenTree& tree_;
  std::span<const Token> text_;
  Stopwatch watch_;
  bool over_ = false;
  std::vector<double> times_;
};

class Walker {
 public:
  Walker(const SaidText& text, Drafter& drafter, Sampler& sampler, const WalkOptions& options,
         DraftWalk& walk)
      : seed_(text.seed),
        text_(text.prompt),
        n_prompt_(text.prompt.size()),
        drafter_(drafter),
        sampler_(sampler),
        options_(options),
        walk_(walk) {
    text_.insert(text_.end(), text.said.begin(), text.said.end());
    const std::size_t most = static_cast<std::size_t>(options.most);
    walk_.asked.resize(std::max(walk_.asked.size(), most), 0);
    walk_.right.resize(std::max(walk_.right.size(), most), 0);
  }

  Status run() {
    sampler_.begin(std::span(text_).first(n_prompt_), seed_);
    OUTRIDER_RETURN_IF_ERROR(drafter_.begin(kSeq, 0));
    Status status;
    std::size_t at = n_prompt_;  // tokens that are decided; the step's root is the last of them
    while (status.ok()) {
      // The first token comes with the prompt's reading.
      const std::size_t next = at == n_prompt_ ? at + 1 : at + 1 + n_right_;
      if (next >= text_.size()) break;
      if (options_.interrupt != nullptr && options_.interrupt->load()) {
        status = cancelled("interrupted");
        break;
      }
      for (; at < next; ++at) sampler_.accept(text_[at]);
      status = guess(at);
    }
    drafter_.end(kSeq);
    return status;
  }

 private:
  Status guess(std::size_t decided) {
    const std::span<const Token> known = std::span(text_).first(decided);
    const std::span<const Token> rest = std::span(text_).subspan(decided);
    TokenTree tree(known.back());
    drafter_.accept(kSeq, known);
    const double before = processor_ms();
    WalkGuide guide(tree, rest, options_.now_ms ? &options_.now_ms : nullptr);
    DraftRequest request{.seq = kSeq,
                         .text = known,
                         .seed = seed_,
                         .sampler = &sampler_,
                         .max_nodes = options_.most,
                         .shape = options_.shape,
                         .guide = &guide,
                         .mask = 1,
                         .tree = &tree};
    OUTRIDER_RETURN_IF_ERROR(draft_one(drafter_, request));
    const std::string limit = drafter_.limit_reason(kSeq);
    if (!limit.empty()) return unsupported(limit);  // of this candidate, and no reason to end all
    n_right_ = right_guesses(tree, rest);
    const bool is_first = decided == n_prompt_ + 1;  // it reads the prompt
    if (!is_first) note_times(guide.finish(), processor_ms() - before);
    for (std::size_t i = 0; i < n_right_; ++i) {
      ++walk_.asked[i];
      ++walk_.right[i];
    }
    // A drafter that had nothing to say there was not right either.
    if (n_right_ < rest.size() && n_right_ < static_cast<std::size_t>(options_.most)) {
      ++walk_.asked[n_right_];
    }
    return Status();
  }

  void note_times(const std::vector<double>& times, double processor) {
    for (std::size_t i = 0; i < times.size(); ++i) {
      (i == 0 ? walk_.times.first_ms : walk_.times.further_ms).push_back(times[i]);
    }
    walk_.processor_ms += processor;
    walk_.passes += static_cast<std::int64_t>(times.size());
  }

  std::uint64_t seed_;
  std::vector<Token> text_;
  std::size_t n_prompt_;
  Drafter& drafter_;
  Sampler& sampler_;
  const WalkOptions& options_;
  DraftWalk& walk_;
  std::size_t n_right_ = 0;  // of the last guesses
};

}  // namespace

std::size_t right_guesses(const TokenTree& tree, std::span<const Token> text) {
  NodeId at = kRoot;
  std::size_t right = 0;
  while (right < text.size()) {
    const NodeId next = tree.child(at, text[right]);
    if (next == kNoNode) break;
    at = next;
    ++right;
  }
  return right;
}

std::vector<double> DraftWalk::chances() const {
  std::vector<double> chances;
  for (std::size_t i = 0; i < asked.size(); ++i) {
    chances.push_back((static_cast<double>(right[i]) + 0.5) /
                      (static_cast<double>(asked[i]) + 1.0));
  }
  return chances;
}

double DraftWalk::first_chance() const {
  if (asked.empty() || asked[0] == 0) return 0.0;
  return static_cast<double>(right[0]) / static_cast<double>(asked[0]);
}

Status walk_text(const SaidText& text, Drafter& drafter, Sampler& sampler,
                 const WalkOptions& options, DraftWalk& walk) {
  return Walker(text, drafter, sampler, options, walk).run();
}

}  // namespace outrider::lab
