// outrider compare: is the text with speculation the text without?
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <string>
#include <vector>

#include "json/json.h"
#include "lab/comparison.h"
#include "lab/logit_gap.h"
#include "lab/prompt_file.h"
#include "lab/replay_drafter.h"
#include "tools/command.h"
#include "tools/model_options.h"
#include "tools/options.h"
#include "tools/output_options.h"
#include "tools/progress.h"
#include "tools/report.h"
#include "tools/sampling_options.h"
#include "tools/session.h"
#include "tools/signals.h"
#include "tools/speculation_options.h"
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
  Status compare_prompt(Session& session, const Prompt& prompt, const std::vector<Token>& tokens,
                        std::size_t index);
  void note_logprobs(const Completion& plain, const Completion& speculative);
  Result<Completion> generate_tokens(Session& session, const std::vector<Token>& prompt,
                                     std::int32_t width);
  Result<Divergence> examine(Session& session, const std::vector<Token>& prompt,
                             const Completion& plain, const Completion& speculative);

  std::optional<std::string> prompts_;
  std::int32_t limit_ = 0;
  bool chat_ = false;
  ModelArguments model_;
  SamplingArguments sampling_;
  std::vector<std::int32_t> widths_;  // rising
  SpeculationArguments speculation_;
  OutputArguments output_;

  // While it runs.
  SpeculationPlan plan_;
  Comparison comparison_;
  ReplayDrafter* replay_ = nullptr;  // without a draft model
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
  sampling_.max_tokens = 128;
  add_sampling_options(app, sampling_);
  add_stop_option(app, sampling_);
  add_drafter_options(app, speculation_,
                      "auto (the draft model, or without -d the plain run's own tokens)");
  add_widths_option(app, widths_);
  speculation_.branches = add_tree_options(app, speculation_.shape);
  add_exact_option(app, "Speculation", model_);
  add_output_options(app, output_);
}

void CompareCommand::check() {
  require_model(model_);
  if (!prompts_) {
    throw UsageError("--prompts is missing",
                     "give a file of JSON lines with 'turns', 'prompt' or 'messages'");
  }
  check_sampling(sampling_);
  if (sampling_.max_tokens == 0) {
    throw UsageError(
        "--max-tokens is 0, but must be at least 1, or -1: there would be nothing to "
        "compare");
  }
  check_shape(speculation_.shape);
  if (speculation_.drafter == "none") {
    throw UsageError("--drafter is 'none', but there would be nothing to compare",
                     "leave it out: then the plain run's own tokens are proposed");
  }
  check_drafters(speculation_, model_, /*automatic=*/{.chains = {{std::string(kDraftModelName)}}});
}

Result<Completion> CompareCommand::generate_tokens(Session& session,
                                                   const std::vector<Token>& prompt,
                                                   std::int32_t width) {
  Result<Request> request = session.request(prompt, sampling_.options, comparison_.seed, width);
  if (!request.ok()) return request.status();
  request->max_tokens = sampling_.max_tokens;
  request->stop = sampling_.stop;
  request->logprobs = 0;  // the token's own
  request->draft = chosen_shape(speculation_, width);
  request->drafters = plan_.drafters;
  Result<Completion> completion = generate(session, std::move(*request), *signals_, *progress_,
                                           [](const Update&) { return true; });
  if (completion.ok() && !completion->error.ok()) return completion->error;
  return completion;
}

// Plain decoding once more, up to the first difference, for the row of logits there.
Result<Divergence> CompareCommand::examine(Session& session, const std::vector<Token>& prompt,
                                           const Completion& plain, const Completion& speculative) {
  const std::size_t position =
      static_cast<std::size_t>(std::mismatch(plain.tokens.begin(), plain.tokens.end(),
                                             speculative.tokens.begin(), speculative.tokens.end())
                                   .first -
                               plain.tokens.begin());
  Divergence d{.position = position};
  RecordedRow row;
  Result<Request> request = session.request(prompt, sampling_.options, comparison_.seed, 1);
  if (!request.ok()) return request.status();
  request->max_tokens = static_cast<std::int32_t>(position) + 1;
  request->sampler = make_recording_sampler(std::move(request->sampler), position, row);
  Result<Completion> again = generate(session, std::move(*request), *signals_, *progress_,
                                      [](const Update&) { return true; });
  if (!again.ok()) return again.status();
  // Equal up to the end of the shorter one cannot be: the same rules end both.
  const bool both = position < plain.tokens.size() && position < speculative.tokens.size();
  d.repeatable = both && row.recorded() && again->tokens.size() == position + 1 &&
                 std::equal(again->tokens.begin(), again->tokens.end(), plain.tokens.begin());
  if (both) {
    d.plain = plain.tokens[position];
    d.speculative = speculative.tokens[position];
    d.plain_text = session.vocabulary().piece(d.plain);
    d.speculative_text = session.vocabulary().piece(d.speculative);
  }
  if (d.repeatable) {
    const NoiseKey key = noise_key(comparison_.seed, prompt.size() + position);
    d.logit_gap = logit_gap(row, sampling_.options.temperature, key, d.plain, d.speculative);
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

Status CompareCommand::compare_prompt(Session& session, const Prompt& prompt,
                                      const std::vector<Token>& tokens, std::size_t index) {
  Result<Completion> plain = generate_tokens(session, tokens, 1);
  if (!plain.ok()) return plain.status();
  if (replay_ != nullptr) replay_->set_text(tokens.size(), plain->tokens);
  std::vector<WidthComparison> widths = comparison_.widths;
  std::vector<Divergence> divergences;
  for (WidthComparison& w : widths) {
    Result<Completion> speculative = generate_tokens(session, tokens, w.width);
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
    Result<Divergence> divergence = examine(session, tokens, *plain, *speculative);
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

int CompareCommand::run() {
  const int constraint = read_constraint(sampling_);
  if (constraint != kDone) return constraint;
  const Result<std::vector<Prompt>> prompts =
      read_prompt_file(*prompts_, static_cast<std::size_t>(limit_));
  if (!prompts.ok()) return fail(prompts.status());
  SignalWatch signals;
  ProgressBar progress;
  signals_ = &signals;
  progress_ = &progress;
  const bool automatic = speculation_.drafter == "auto";
  const bool replays = automatic && !model_.draft_model;
  const DrafterPlan named = automatic ? DrafterPlan{.chains = {{std::string(kDraftModelName)}}}
                                      : chosen_drafters(speculation_);
  comparison_ = {.drafter = replays ? "replay" : to_string(named),
                 .temperature = sampling_.options.temperature,
                 .seed = chosen_seed(sampling_)};

  for (const std::int32_t width : widths_) comparison_.widths.push_back({.width = width});

  ReplayDrafter replay;
  SessionOptions options{.target = target_options(model_)};
  options.target.widest = widths_.back();
  if (replays) {
    replay_ = &replay;
    options.other_drafters.push_back(&replay);
  } else {
    plan_ = plan_drafters(named);
    choose_drafters(plan_, speculation_, model_, options);
  }
  const SessionHooks hooks{
      .progress = progress, .signals = signals, .log = log_sink(output_, progress)};
  const Result<std::unique_ptr<Session>> session = Session::open(options, hooks);
  progress.clear();
  if (!session.ok()) return fail(session.status(), signals);
  for (const std::string& warning : (*session)->warnings()) print_warning(warning);
  comparison_.exactness = (*session)->exactness();

  const Result<std::vector<std::vector<Token>>> tokens = (*session)->tokenize(*prompts, chat_);
  if (!tokens.ok()) return fail(tokens.status());
  Status failure;
  for (std::size_t i = 0; i < prompts->size() && !signals.raised() && failure.ok(); ++i) {
    progress.update("comparing", static_cast<double>(i) / static_cast<double>(prompts->size()));
    failure = compare_prompt(**session, (*prompts)[i], (*tokens)[i], i);
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
