// outrider compare: is the text with speculation the text without?
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <string>
#include <vector>

#include "engine/engine.h"
#include "json/json.h"
#include "lab/comparison.h"
#include "lab/logit_gap.h"
#include "lab/prompt_file.h"
#include "lab/replay_drafter.h"
#include "tools/command.h"
#include "tools/local_runtime.h"
#include "tools/model_options.h"
#include "tools/options.h"
#include "tools/output_options.h"
#include "tools/progress.h"
#include "tools/report.h"
#include "tools/request_options.h"
#include "tools/signals.h"
#include "tools/text_output.h"
#include "tools/usage.h"

namespace outrider::tools {

using namespace lab;  // NOLINT: what it measures and writes is most of what is said here
namespace {

constexpr const char* kCompareDetails =
    "Runs each prompt with the same seed, plain and with speculation at each width, and compares "
    "the\n"
    "tokens. (Under the coupled rule: the others give other texts of the same distribution.)\n"
    "The verdict is the probe's (exact | exact up to width K | distributional), and never better "
    "than\n"
    "what was seen. Where texts differ, the logit gap at the first difference tells a near-tie "
    "that\n"
    "rounding decides from a bug (above 0.5). Exit code 0: compared, whatever came out.\n"
    "Without a drafter and without -d, the plain run's own tokens are proposed, every fifth one "
    "made\n"
    "wrong. With several drafters the counts of each are told. Files are only read.";

class CompareCommand : public Command {
 public:
  std::string name() const override { return "compare"; }
  std::string summary() const override {
    return "check over many prompts that speculation does not change the text";
  }
  std::string details() const override { return kCompareDetails; }
  void add_options(CLI::App& app) override;
  void check() override;
  int run() override;

 private:
  LocalSetup setup();
  Status compare_prompt(LocalRuntime& local, const Prompt& prompt, const std::vector<Token>& tokens,
                        std::size_t index);
  void note_logprobs(const Completion& plain, const Completion& speculative);
  Result<Completion> generate_tokens(LocalRuntime& local, const std::vector<Token>& prompt,
                                     std::int32_t width);
  Result<Divergence> examine(LocalRuntime& local, const std::vector<Token>& prompt,
                             const Completion& plain, const Completion& speculative);

  std::optional<std::string> prompts_;
  std::int32_t limit_ = 0;
  bool chat_ = false;
  ModelArguments model_;
  RequestArguments request_;
  std::vector<std::int32_t> widths_ = {4};  // rising
  OutputArguments output_;

  // While it runs.
  DrafterPlan drafters_;
  Comparison comparison_;
  ReplayDrafter* replay_ = nullptr;  // the runtime's; null: others are compared
  SignalWatch* signals_ = nullptr;
  ProgressBar* progress_ = nullptr;
};

void CompareCommand::add_options(CLI::App& app) {
  OptionGroup prompt(app, "Prompts");
  prompt.add_text("--prompts", prompts_, "FILE",
                  "JSON lines, each with 'turns' (texts; the first is taken), 'prompt' (a text) or "
                  "'messages' (a conversation); - is standard input (required)");
  prompt.add_integer("--limit", limit_, 0, 1000000000, "compare the first N prompts only; 0: all");
  prompt.add_switch("--chat", chat_,
                    "prompts are user's messages: put them into the model's own chat template "
                    "('messages' always are)");
  add_model_options(app, model_);
  request_.request.max_tokens = 128;
  add_request_options(app, request_,
                      {"logprobs", "timeout_ms", "shift_keep", "width", "rule", "namespace"});
  add_widths_option(app, widths_);
  add_exact_option(app, "Speculation", model_);
  add_output_options(app, output_);
}

void CompareCommand::check() {
  require_model(model_);
  if (!prompts_) {
    throw UsageError("--prompts is missing",
                     "give a file of JSON lines with 'turns', 'prompt' or 'messages'");
  }
  if (request_.request.max_tokens == 0) {
    throw UsageError(
        "--max-tokens is 0, but must be at least 1, or -1: there would be nothing to "
        "compare");
  }
  if (!request_.request.speculative) {
    throw UsageError("--drafter is 'none', but there would be nothing to compare",
                     "leave it out: then the plain run's own tokens are proposed");
  }
  check_request(request_, model_, /*automatic=*/{.chains = {{std::string(kDraftModelName)}}});
}

Result<Completion> CompareCommand::generate_tokens(LocalRuntime& local,
                                                   const std::vector<Token>& prompt,
                                                   std::int32_t width) {
  CompletionRequest request = request_.request;
  request.prompt.assign(prompt.begin(), prompt.end());
  request.seed = static_cast<std::int64_t>(comparison_.seed);
  request.width = width;
  request.logprobs = 0;  // the token's own
  request.drafters = drafters_;
  const Result<std::shared_ptr<const CompletionResult>> result =
      generate(local, std::move(request), *signals_, *progress_, {});
  if (!result.ok()) return result.status();
  const Completion& completion = (*result)->completion;
  if (!completion.error.ok()) return completion.error;
  return completion;
}

// Plain decoding on a model that nobody uses meanwhile.
Result<Completion> run_alone(LanguageModel& model, const Vocabulary& vocabulary, Request request) {
  Engine engine(model, vocabulary, {});
  const Result<RequestId> id = engine.add(std::move(request));
  if (!id.ok()) return id.status();
  while (engine.busy()) (void)engine.step();
  return *engine.take(*id);
}

// Plain decoding once more, up to the first difference, for the row of logits there.
Result<Divergence> CompareCommand::examine(LocalRuntime& local, const std::vector<Token>& prompt,
                                           const Completion& plain, const Completion& speculative) {
  const std::size_t position =
      static_cast<std::size_t>(std::mismatch(plain.tokens.begin(), plain.tokens.end(),
                                             speculative.tokens.begin(), speculative.tokens.end())
                                   .first -
                               plain.tokens.begin());
  Divergence d{.position = position};
  const SamplingOptions& sampling = request_.request.sampling;
  Result<std::unique_ptr<Sampler>> sampler = local.target().make_sampler(sampling);
  if (!sampler.ok()) return sampler.status();
  RecordedRow row;
  Request request{.prompt = prompt,
                  .sampler = make_recording_sampler(std::move(*sampler), position, row),
                  .seed = comparison_.seed,
                  .max_tokens = static_cast<std::int32_t>(position) + 1,
                  .width = 1};
  Result<Completion> again = internal_error("the target was not to be had");
  OUTRIDER_RETURN_IF_ERROR(
      local.runtime().with_idle_target([&](LanguageModel& model, const Engine& /*its_own*/) {
        again = run_alone(model, local.target().vocabulary(), std::move(request));
      }));
  if (!again.ok()) return again.status();
  // Equal up to the end of the shorter one cannot be: the same rules end both.
  const bool both = position < plain.tokens.size() && position < speculative.tokens.size();
  d.repeatable = both && row.recorded() && again->tokens.size() == position + 1 &&
                 std::equal(again->tokens.begin(), again->tokens.end(), plain.tokens.begin());
  if (both) {
    d.plain = plain.tokens[position];
    d.speculative = speculative.tokens[position];
    d.plain_text = local.target().vocabulary().piece(d.plain);
    d.speculative_text = local.target().vocabulary().piece(d.speculative);
  }
  if (d.repeatable) {
    const NoiseKey key = noise_key(comparison_.seed, prompt.size() + position);
    d.logit_gap = logit_gap(row, sampling.temperature, key, d.plain, d.speculative);
  }
  return d;
}

// Differences of single bits show here before they show in a text.
void CompareCommand::note_logprobs(const Completion& plain, const Completion& speculative) {
  const std::size_t n = std::min(plain.tokens.size(), speculative.tokens.size());
  for (std::size_t i = 0; i < n && plain.tokens[i] == speculative.tokens[i]; ++i) {
    const double difference =
        std::fabs(plain.logprobs[i].chosen.logprob - speculative.logprobs[i].chosen.logprob);
    comparison_.logprob_difference = std::max(comparison_.logprob_difference, difference);
  }
}

Status CompareCommand::compare_prompt(LocalRuntime& local, const Prompt& prompt,
                                      const std::vector<Token>& tokens, std::size_t index) {
  Result<Completion> plain = generate_tokens(local, tokens, 1);
  if (!plain.ok()) return plain.status();
  if (replay_ != nullptr) replay_->set_text(tokens.size(), plain->tokens);
  std::vector<WidthComparison> widths = comparison_.widths;
  std::vector<Divergence> divergences;
  for (WidthComparison& w : widths) {
    Result<Completion> speculative = generate_tokens(local, tokens, w.width);
    if (!speculative.ok()) return speculative.status();
    if (signals_->raised()) return cancelled("interrupted");
    const SpeculationStats& stats = speculative->speculation;
    if (!stats.enabled && !stats.reason.empty()) {
      return unsupported("there is nothing to compare, speculation is off: " + stats.reason);
    }
    w.steps += stats.steps;
    w.drafted += stats.drafted;
    w.accepted += stats.accepted;
    w.emitted += stats.emitted;
    add_drafters(w, stats);
    note_logprobs(*plain, *speculative);
    if (plain->tokens == speculative->tokens) {
      ++w.identical;
      continue;
    }
    Result<Divergence> divergence = examine(local, tokens, *plain, *speculative);
    if (!divergence.ok()) return divergence.status();
    divergence->width = w.width;
    divergence->prompt = index;
    divergence->id = prompt.id;
    divergences.push_back(std::move(*divergence));
  }
  // A prompt counts when all of its widths are through.
  comparison_.widths = std::move(widths);
  ++comparison_.prompts;
  comparison_.identical += divergences.empty() ? 1 : 0;
  comparison_.tokens += static_cast<std::int64_t>(plain->tokens.size());
  std::move(divergences.begin(), divergences.end(), std::back_inserter(comparison_.divergences));
  return Status();
}

// The target as wide as the widest comparison, with the drafters that are compared.
LocalSetup CompareCommand::setup() {
  const bool automatic = request_.request.drafters.empty();
  const bool replays = automatic && !model_.draft_model;
  drafters_ = replays     ? DrafterPlan{.chains = {{std::string(ReplayDrafter::kName)}}}
              : automatic ? DrafterPlan{.chains = {{std::string(kDraftModelName)}}}
                          : request_.request.drafters;
  RequestArguments widest = request_;
  widest.request.width = widths_.back();
  widest.request.drafters = drafters_;
  LocalSetup setup = setup_for(widest, model_);
  setup.runtime.reuse_prefix = false;  // each run is alone
  if (replays) {
    setup.runtime.drafters.push_back(
        {.name = ReplayDrafter::kName, .make = [this](const LookupSettings&) {
           std::unique_ptr<ReplayDrafter> drafter = std::make_unique<ReplayDrafter>();
           replay_ = drafter.get();
           return drafter;
         }});
  }
  return setup;
}

int CompareCommand::run() {
  const int constraint = read_constraint(request_);
  if (constraint != kDone) return constraint;
  const Result<std::vector<Prompt>> prompts =
      read_prompt_file(*prompts_, static_cast<std::size_t>(limit_));
  if (!prompts.ok()) return fail(prompts.status());
  SignalWatch signals;
  ProgressBar progress;
  signals_ = &signals;
  progress_ = &progress;
  const LocalSetup how = setup();
  comparison_ = {.drafter = to_string(drafters_),
                 .temperature = request_.request.sampling.temperature,
                 .seed = chosen_seed(request_.request)};
  for (const std::int32_t width : widths_) comparison_.widths.push_back({.width = width});
  const LocalHooks hooks{
      .progress = progress, .signals = signals, .log = log_sink(output_, progress)};
  const Result<std::unique_ptr<LocalRuntime>> local = LocalRuntime::open(how, hooks);
  progress.clear();
  if (!local.ok()) return fail(local.status(), signals);
  CompletionRequest widest = request_.request;
  widest.width = widths_.back();
  (*local)->print_warnings(widest);
  comparison_.exactness = (*local)->target().exactness();

  const Result<std::vector<std::vector<Token>>> tokens =
      tokenize((*local)->target(), *prompts, chat_);
  if (!tokens.ok()) return fail(tokens.status());
  Status failure;
  for (std::size_t i = 0; i < prompts->size() && !signals.raised() && failure.ok(); ++i) {
    progress.update("comparing", static_cast<double>(i) / static_cast<double>(prompts->size()));
    failure = compare_prompt(**local, (*prompts)[i], (*tokens)[i], i);
    if (!failure.ok()) failure = failure.with_context("prompt " + (*prompts)[i].id);
  }
  progress.clear();
  if (signals.raised()) failure = Status();

  TextOutput output(STDOUT_FILENO, /*color=*/false);
  output.write(output_.json ? json::encode(comparison_json(comparison_)) + "\n"
                            : comparison_table(comparison_));
  if (!output.status().ok()) return fail(output.status());
  if (!failure.ok()) return fail(failure);  // after what was compared until then
  return signals.raised() ? signals.exit_code() : kDone;
}

}  // namespace

std::unique_ptr<Command> make_compare_command() { return std::make_unique<CompareCommand>(); }

}  // namespace outrider::tools
