// outrider bench: how much faster is speculation, here, on these prompts?
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/numbers.h"
#include "draft/drafter_table.h"
#include "lab/bench_prompts.h"
#include "lab/bench_report.h"
#include "lab/bench_run.h"
#include "store/atomic_file.h"
#include "tools/command.h"
#include "tools/local_runtime.h"
#include "tools/options/model_options.h"
#include "tools/options/options.h"
#include "tools/options/request_options.h"
#include "tools/options/usage.h"
#include "tools/output_file.h"
#include "tools/report.h"

namespace outrider::tools {
namespace {

constexpr const char* kBenchDetails =
    R"(Runs each prompt plain and with speculation, with the same seed, in turn (the order changes from
repetition to repetition; repetition r has seed S + r - 1), on one model that stays loaded. What
is compared are the tokens a second after the first one. A category's speed-up is the geometric
mean over the repetitions, its interval (95 %) Student's t over the logarithms of their ratios;
overall is the geometric mean over the categories. 'identical': all texts were the same.
Without --repeat, all prompts are repeated until the overall interval is as narrow as
--until says, 4 to 10 times; an interval that ended it is a little too narrow, so for
figures that count give --repeat. Processor time is that of this process, prompts and
threads that wait for each other included; other programs add little to it.
Ctrl-C ends it with the results of what was done, and exit code 130.)";

std::string rule_text(const CompletionRequest& request) {
  return value_text(field_named(speculation_fields(), "rule"), request);
}

// Why nobody guesses.
std::string off_reason(const CompletionRequest& request) {
  if (!request.speculative) return "switched off with --drafter none";
  if (request.width == 1) return "--width 1 is plain decoding";
  return "no draft model was given (-d FILE), and --rule " + rule_text(request) +
         " takes no other drafter unasked (--drafter)";
}

class BenchCommand : public Command {
 public:
  BenchCommand()
      : Command("bench", "measure over many prompts how much faster speculation is",
                kBenchDetails) {}
  void add_options(CLI::App& app) override;
  void check() override;
  OptionFacts facts() const override { return {.drafters = asked_drafters(request_, model_)}; }
  Status prepare() override;
  ModelArguments* models() override { return &model_; }
  Result<int> run() override;

 private:
  Status read_prompts();
  OutputFile report_file() const;
  Result<int> report(const lab::BenchRun& run, const SignalWatch& signals);

  std::optional<std::string> prompts_file_;
  std::vector<FilePrompt> prompts_;  // of it, those that are chosen
  lab::PromptChoice choice_;
  bool chat_ = false;
  float until_ = 0.05f;
  lab::BenchPlan plan_;
  ModelArguments model_;
  RequestArguments request_;
  std::optional<std::string> report_;
};

void BenchCommand::add_options(CLI::App& app) {
  OptionGroup prompt(app, "Prompts");
  prompt.add_text("--prompts", prompts_file_, "FILE",
                  "JSON lines, each with 'turns' (texts; the first is taken), 'prompt' (a text) or "
                  "'messages' (a conversation), and perhaps a 'category'; - is standard input "
                  "(required)");
  prompt.add_names("--categories", choice_.categories,
                   "measure prompts of these categories only [default: all]");
  prompt.add_integer("--per-category", choice_.per_category, {0, 1000000000},
                     "of each category only so many prompts, spread evenly over it; 0: all");
  prompt.add_integer("--limit", choice_.limit, {0, 1000000000},
                     "of what is left only the first N prompts; 0: all");
  prompt.add_switch("--chat", chat_,
                    "prompts are user's messages: put them into the model's own chat template "
                    "('messages' always are)");
  OptionGroup measuring(app, "Measuring");
  measuring.add_integer("--repeat", plan_.repeat, {0, 10000},
                        "how often each prompt is run each way; 0: 4 to 10 times, until the result "
                        "is as sure as --until says");
  measuring.add_number("--until", until_,
                       "how narrow the 95 % interval of the overall speed-up is to be, each way, "
                       "as a part of it; the result says whether it is",
                       {.min = 0.005, .max = 1.0});
  measuring.add_integer("--warm-up", plan_.warm_up, {0, 10000},
                        "prompts that are run once, 16 tokens each way, before it counts");
  measuring.add_switch(
      "--oracle", plan_.oracle,
      "afterwards say how much of the time an oracle would have taken, which knows "
      "which guesses will hold (of the first repetition; takes about as long)");
  add_model_options(app, model_);
  request_.request.max_tokens = 128;
  add_request_options(app, request_, {"logprobs", "timeout_ms", "shift_keep", "namespace"});
  add_exact_option(app, "Speculation", model_);
  OptionGroup output(app, "Output");
  output.add_text("--report", report_, "FILE",
                  "also write a report with plots: one HTML file that needs nothing else (replaced "
                  "if it exists)");
  add_output_options(app, output_);
}

void BenchCommand::check() {
  require_model(model_);
  if (!prompts_file_) {
    throw UsageError("--prompts is missing",
                     "give a file of JSON lines with 'turns', 'prompt' or 'messages'");
  }
  if (report_ == "") throw UsageError("--report is '', but must be a file's name");
  const CompletionRequest& r = request_.request;
  if (r.max_tokens == 0 || r.max_tokens == 1) {
    throw UsageError("--max-tokens is " + std::to_string(r.max_tokens) +
                     ", but must be at least 2, or -1: speeds are of what follows the first token");
  }
  check_request(request_, model_);
  check_dynamic_file(*request_.app, request_.files);
  if (plan_.oracle && r.rule != AcceptanceRule::kCoupled) {
    throw UsageError("--oracle is there, but --rule is '" + rule_text(r) + "'",
                     "which guesses hold is drawn with that rule; take --rule coupled");
  }
  const DrafterPlan drafters = chosen_drafters(request_, model_);
  for (const DrafterKind& kind : drafter_kinds()) {
    const bool asks_run = kind.from == GuessesFrom::kLogits && drafters.mentions(kind.name);
    if (!plan_.oracle || !asks_run) continue;
    throw UsageError("--oracle is there, but --drafter has '" + std::string(kind.name) + "'",
                     "which guesses from what the target says in its run; leave it out");
  }
  if (drafters.empty()) {
    throw UsageError("there is nothing to measure: " + off_reason(r),
                     "plain decoding is always measured beside speculation");
  }
}

// What was measured, whole or not, then what went wrong.
Result<int> BenchCommand::report(const lab::BenchRun& run, const SignalWatch& signals) {
  const lab::BenchResult& result = run.result;
  if (signals.raised()) {
    print_warning("interrupted: " + std::to_string(run.pairs) + " of " +
                  std::to_string(run.wanted) + " pairs of runs were measured, and " +
                  std::to_string(result.overall.pairs) + " count");
  }
  const bool anything = result.overall.pairs > 0;
  const Status printed = anything || run.failure.ok()
                             ? print(lab::bench_json(result), lab::bench_table(result)).status()
                             : Status();
  const Status written =
      report_ && anything ? write_whole_file(*report_, lab::bench_report(result)) : Status();
  OUTRIDER_RETURN_IF_ERROR(printed);
  OUTRIDER_RETURN_IF_ERROR(run.failure);
  OUTRIDER_RETURN_IF_ERROR(written.with_context("--report"));
  return signals.exit_code();
}

// Heads guess from what the target computed in its own run. Whether there are any is known once the
// models are open.
Status check_oracle(const DrafterPlan& drafters) {
  for (const DrafterKind& kind : drafter_kinds()) {
    if (kind.from != GuessesFrom::kHidden || !drafters.mentions(kind.name)) continue;
    return invalid_argument("--oracle cannot be had with the drafter " + std::string(kind.name) +
                            ", which guesses from the target's hidden states of its run; leave it "
                            "out, or name other drafters (--drafter)");
  }
  return Status();
}

Status BenchCommand::read_prompts() {
  OUTRIDER_ASSIGN_OR_RETURN(std::vector<FilePrompt> all,
                            read_prompt_file(*prompts_file_, /*limit=*/0));
  OUTRIDER_ASSIGN_OR_RETURN(prompts_, lab::choose_prompts(std::move(all), choice_));
  return Status();
}

OutputFile BenchCommand::report_file() const {
  OutputFile output{.option = "--report", .path = *report_, .reads = files_read(request_, model_)};
  output.reads.push_back(*prompts_file_);
  return output;
}

Status BenchCommand::prepare() {
  OUTRIDER_RETURN_IF_ERROR(read_constraint(request_));
  if (report_) OUTRIDER_RETURN_IF_ERROR(check_output_file(report_file()));
  return *prompts_file_ == "-" ? Status() : read_prompts();
}

Result<int> BenchCommand::run() {
  // Models of the hub are files now.
  if (report_) OUTRIDER_RETURN_IF_ERROR(check_not_read(report_file()));
  if (*prompts_file_ == "-") OUTRIDER_RETURN_IF_ERROR(read_prompts());
  Terminal& terminal = watch();
  LocalSetup setup = setup_for(request_, model_);
  setup.loader.measure_costs = true;   // also where the width is fixed: they are in the result
  setup.runtime.reuse_prefix = false;  // each run reads its prompt
  OUTRIDER_ASSIGN_OR_RETURN(const std::unique_ptr<LocalRuntime> local,
                            LocalRuntime::open(setup, terminal));
  local->print_warnings(request_.request);
  OUTRIDER_ASSIGN_OR_RETURN(plan_.prompts, tokenize(local->target(), prompts_, chat_));
  plan_.categories = lab::categories_of(prompts_);
  plan_.request = request_.request;
  plan_.request.seed = static_cast<std::int64_t>(chosen_seed(request_.request));
  plan_.request.drafters = chosen_drafters(request_, model_, &local->target());
  if (plan_.oracle) OUTRIDER_RETURN_IF_ERROR(check_oracle(plan_.request.drafters));
  plan_.model = target_options(model_);
  plan_.until = static_cast<double>(until_);
  plan_.command = command_line();
  const lab::BenchRun measured = lab::run_bench(local->harness(), plan_);
  terminal.progress.clear();
  return report(measured, terminal.signals);
}

}  // namespace

std::unique_ptr<Command> make_bench_command() { return std::make_unique<BenchCommand>(); }

}  // namespace outrider::tools
