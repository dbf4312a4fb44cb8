#include "lab/compare_run.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <memory>
#include <string>
#include <utility>

#include "engine/engine.h"
#include "lab/logit_gap.h"

namespace outrider::lab {
namespace {

// Plain decoding on a model that nobody uses meanwhile.
Result<Completion> run_alone(LanguageModel& model, const Vocabulary& vocabulary, Request request) {
  Engine engine(model, vocabulary, {});
  const Result<RequestId> id = engine.add(std::move(request));
  if (!id.ok()) return id.status();
  while (engine.busy()) (void)engine.step();
  return *engine.take(*id);
}

// Differences of single bits show here before they show in a text.
double logprob_difference(const Completion& plain, const Completion& speculative) {
  double most = 0.0;
  const std::size_t n = std::min(plain.tokens.size(), speculative.tokens.size());
  for (std::size_t i = 0; i < n && plain.tokens[i] == speculative.tokens[i]; ++i) {
    most = std::max(
        most, std::fabs(plain.logprobs[i].chosen.logprob - speculative.logprobs[i].chosen.logprob));
  }
  return most;
}

class Comparing {
 public:
  Comparing(const Harness& harness, const ComparePlan& plan) : harness_(harness), plan_(plan) {}

  // Adds the prompt to `all` when all of its widths are through.
  Status add(std::size_t prompt, Comparison& all) const;

 private:
  Result<Completion> generate_text(const TokenPrompt& prompt, std::int32_t width) const;
  Status add_width(std::size_t prompt, const Completion& plain, WidthComparison& width,
                   Comparison& all) const;
  Result<Divergence> examine(const std::vector<Token>& prompt, const Completion& plain,
                             const Completion& speculative) const;

  const Harness& harness_;
  const ComparePlan& plan_;
};

Result<Completion> Comparing::generate_text(const TokenPrompt& prompt, std::int32_t width) const {
  CompletionRequest request = plan_.request;
  request.prompt.assign(prompt.tokens.begin(), prompt.tokens.end());
  request.width = width;
  request.logprobs = 0;  // the token's own
  return complete(harness_, std::move(request));
}

// Plain decoding once more, up to the first difference, for the row of logits there.
Result<Divergence> Comparing::examine(const std::vector<Token>& prompt, const Completion& plain,
                                      const Completion& speculative) const {
  const std::size_t position =
      static_cast<std::size_t>(std::mismatch(plain.tokens.begin(), plain.tokens.end(),
                                             speculative.tokens.begin(), speculative.tokens.end())
                                   .first -
                               plain.tokens.begin());
  Divergence d{.position = position};
  const SamplingOptions& sampling = plan_.request.sampling;
  const std::uint64_t seed = static_cast<std::uint64_t>(plan_.request.seed);
  const Vocabulary& vocabulary = harness_.target.vocabulary();
  Result<std::unique_ptr<Sampler>> sampler = harness_.target.make_sampler(sampling);
  if (!sampler.ok()) return sampler.status();
  RecordedRow row;
  Request request{.prompt = prompt,
                  .sampler = make_recording_sampler(std::move(*sampler), position, row),
                  .seed = seed,
                  .max_tokens = static_cast<std::int32_t>(position) + 1,
                  .width = 1};
  Result<Completion> again = internal_error("the target was not to be had");
  OUTRIDER_RETURN_IF_ERROR(
      harness_.runtime.with_idle_target([&](LanguageModel& model, const Engine& /*its_own*/) {
        again = run_alone(model, vocabulary, std::move(request));
      }));
  if (!again.ok()) return again.status();
  // Equal up to the end of the shorter one cannot be: the same rules end both.
  const bool both = position < plain.tokens.size() && position < speculative.tokens.size();
  d.repeatable = both && row.recorded() && again->tokens.size() == position + 1 &&
                 std::equal(again->tokens.begin(), again->tokens.end(), plain.tokens.begin());
  if (both) {
    d.plain = plain.tokens[position];
    d.speculative = speculative.tokens[position];
    d.plain_text = vocabulary.piece(d.plain);
    d.speculative_text = vocabulary.piece(d.speculative);
  }
  if (d.repeatable) {
    const NoiseKey key = noise_key(seed, prompt.size() + position);
    d.logit_gap = logit_gap(row, sampling.temperature, key, d.plain, d.speculative);
  }
  return d;
}

Status Comparing::add_width(std::size_t prompt, const Completion& plain, WidthComparison& width,
                            Comparison& all) const {
  const TokenPrompt& given = plan_.prompts[prompt];
  const Result<Completion> speculative = generate_text(given, width.width);
  if (!speculative.ok()) return speculative.status();
  const SpeculationStats& stats = speculative->speculation;
  if (!stats.enabled && !stats.reason.empty()) {
    return unsupported("there is nothing to compare, speculation is off: " + stats.reason);
  }
  width.steps += stats.steps;
  width.drafted += stats.drafted;
  width.accepted += stats.accepted;
  width.emitted += stats.emitted;
  add_drafters(width, stats);
  all.logprob_difference =
      std::max(all.logprob_difference, logprob_difference(plain, *speculative));
  if (plain.tokens == speculative->tokens) {
    ++width.identical;
    return Status();
  }
  Result<Divergence> divergence = examine(given.tokens, plain, *speculative);
  if (!divergence.ok()) return divergence.status();
  divergence->width = width.width;
  divergence->prompt = prompt;
  divergence->id = given.id;
  all.divergences.push_back(std::move(*divergence));
  return Status();
}

Status Comparing::add(std::size_t prompt, Comparison& all) const {
  const Result<Completion> plain = generate_text(plan_.prompts[prompt], 1);
  if (!plain.ok()) return plain.status();
  if (plan_.replay != nullptr) {
    plan_.replay->set_text(plan_.prompts[prompt].tokens.size(), plain->tokens);
  }
  Comparison with = all;
  for (WidthComparison& width : with.widths) {
    OUTRIDER_RETURN_IF_ERROR(add_width(prompt, *plain, width, with));
  }
  with.identical += with.divergences.size() == all.divergences.size() ? 1 : 0;
  ++with.prompts;
  with.tokens += static_cast<std::int64_t>(plain->tokens.size());
  all = std::move(with);
  return Status();
}

}  // namespace

AddedDrafter replay_drafter(ReplayDrafter*& made) {
  return {.name = ReplayDrafter::kName, .make = [&made](const LookupSettings&) {
            std::unique_ptr<ReplayDrafter> drafter = std::make_unique<ReplayDrafter>();
            made = drafter.get();
            return drafter;
          }};
}

CompareRun run_comparison(const Harness& harness, const ComparePlan& plan) {
  CompareRun run{.comparison = {.drafter = to_string(plan.request.drafters),
                                .temperature = plan.request.sampling.temperature,
                                .seed = static_cast<std::uint64_t>(plan.request.seed),
                                .exactness = harness.target.exactness(),
                                .kernels = harness.target.info().kernels},
                 .failure = {}};
  for (const std::int32_t width : plan.widths) run.comparison.widths.push_back({.width = width});
  const Comparing comparing(harness, plan);
  const double n = static_cast<double>(plan.prompts.size());
  for (std::size_t i = 0; i < plan.prompts.size() && run.failure.ok(); ++i) {
    harness.watcher.update("comparing", static_cast<double>(i) / n);
    run.failure = comparing.add(i, run.comparison).with_context("prompt " + plan.prompts[i].id);
  }
  if (harness.watcher.interrupted()) run.failure = Status();
  return run;
}

}  // namespace outrider::lab
