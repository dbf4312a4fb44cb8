#include "lab/draft_costs.h"

#include "base/random.h"

namespace outrider::lab {
namespace {

constexpr SeqId kSeq = 0;
constexpr std::int32_t kFurther = 2;  // tokens from draft to draft

// Grants `passes` of them and notes when each ends.
class TimingGuide : public DraftGuide {
 public:
  TimingGuide(const NowMs* clock, std::int32_t passes) : watch_(clock), left_(passes - 1) {}

  // High, so that no pass is left out for want of a likely guess.
  float chance(std::int32_t, float) const override { return 0.95f; }

  bool another_pass(float, std::int32_t) override {
    if (ended_) return false;
    times_.push_back(watch_.restart());
    ended_ = left_-- <= 0;
    return !ended_;
  }

  // The draft is over; the last pass may have ended without a further question.
  std::vector<double> finish() {
    if (!ended_) times_.push_back(watch_.elapsed_ms());
    return times_;
  }

 private:
  Stopwatch watch_;
  std::int32_t left_;
  bool ended_ = false;
  std::vector<double> times_;
};

Token some_token(std::int32_t n_vocab, std::size_t i) {
  return static_cast<Token>(mix64(i) % static_cast<std::uint64_t>(n_vocab));
}

}  // namespace

Result<DraftSamples> measure_draft_costs(Drafter& drafter, Sampler& sampler,
                                         const DraftMeasureOptions& options) {
  const NowMs* clock = options.now_ms ? &options.now_ms : nullptr;
  std::vector<Token> text;
  const auto grow = [&text, &options](std::int32_t n) {
    for (std::int32_t i = 0; i < n; ++i) text.push_back(some_token(options.n_vocab, text.size()));
  };
  grow(options.depth);
  OUTRIDER_RETURN_IF_ERROR(drafter.begin(kSeq, 0));
  DraftSamples samples;
  Status status;
  for (std::int32_t round = 0; round <= options.rounds && status.ok(); ++round) {
    if (options.cancelled && options.cancelled()) {
      status = cancelled("measuring was cancelled");
      break;
    }
    TokenTree tree(text.back());
    TimingGuide guide(clock, options.passes);
    DraftRequest request{.seq = kSeq,
                         .text = text,
                         .seed = 1,
                         .sampler = &sampler,
                         .max_nodes = 4 * options.passes,
                         .shape = {},
                         .guide = &guide,
                         .draws = nullptr,
                         .mask = 1,
                         .tree = &tree};
    status = draft_one(drafter, request);
    const std::vector<double> times = guide.finish();
    const std::string limit = drafter.limit_reason(kSeq);
    if (status.ok() && !limit.empty()) status = resource_exhausted(limit);
    for (std::size_t i = 0; status.ok() && round > 0 && i < times.size(); ++i) {
      (i == 0 ? samples.first_ms : samples.further_ms).push_back(times[i]);
    }
    grow(kFurther);
    drafter.accept(kSeq, text);
  }
  drafter.end(kSeq);
  if (!status.ok()) return status;
  return samples;
}

}  // namespace outrider::lab
