// outrider compare: is the text with speculation the text without?
#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "json/json.h"
#include "lab/compare_run.h"
#include "tools/command.h"
#include "tools/field_options.h"
#include "tools/local_runtime.h"
#include "tools/model_options.h"
#include "tools/options.h"
#include "tools/report.h"
#include "tools/request_options.h"
#include "tools/terminal.h"
#include "tools/usage.h"

namespace outrider::tools {
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
  ModelArguments* models() override { return &model_; }
  int run() override;

 private:
  LocalSetup setup();

  std::optional<std::string> prompts_;
  std::int32_t limit_ = 0;
  bool chat_ = false;
  ModelArguments model_;
  RequestArguments request_;
  lab::ComparePlan plan_{.widths = {4}};
  OutputArguments output_;
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
  OptionGroup speculation(app, "Speculation");
  speculation.add_integers(
      "--width", plan_.widths, 2, whole_limit(field_named(speculation_fields(), "width").range.max),
      "tokens of one target step at most, its own last one included; several widths are compared "
      "one after the other",
      " (1 is plain decoding, with nothing to compare)");
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
  std::sort(plan_.widths.begin(), plan_.widths.end());
}

// The target as wide as the widest comparison, with the drafters that are compared.
LocalSetup CompareCommand::setup() {
  CompletionRequest& request = request_.request;
  const bool automatic = request.drafters.empty();
  const bool replays = automatic && !model_.draft_model;
  if (automatic) {
    request.drafters.chains = {
        {std::string(replays ? lab::ReplayDrafter::kName : model_.draft_name)}};
  }
  request.width = plan_.widths.back();
  LocalSetup setup = setup_for(request_, model_);
  setup.runtime.reuse_prefix = false;  // each run is alone
  if (replays) setup.runtime.drafters.push_back(lab::replay_drafter(plan_.replay));
  return setup;
}

int CompareCommand::run() {
  const int constraint = read_constraint(request_);
  if (constraint != kDone) return constraint;
  const Result<std::vector<lab::Prompt>> prompts =
      lab::read_prompt_file(*prompts_, static_cast<std::size_t>(limit_));
  if (!prompts.ok()) return fail(prompts.status());
  Terminal terminal(output_);
  const Result<std::unique_ptr<LocalRuntime>> local = LocalRuntime::open(setup(), terminal);
  if (!local.ok()) return fail(local.status(), terminal.signals);
  (*local)->print_warnings(request_.request);
  Result<std::vector<lab::TokenPrompt>> tokens = lab::tokenize((*local)->target(), *prompts, chat_);
  if (!tokens.ok()) return fail(tokens.status());
  plan_.prompts = *std::move(tokens);
  plan_.request = request_.request;
  plan_.request.seed = static_cast<std::int64_t>(chosen_seed(request_.request));
  const lab::CompareRun compared = lab::run_comparison((*local)->harness(), plan_);
  terminal.progress.clear();
  const int printed =
      print_result(output_.json ? json::encode(lab::comparison_json(compared.comparison)) + "\n"
                                : lab::comparison_table(compared.comparison));
  if (printed != kDone) return printed;
  if (!compared.failure.ok()) return fail(compared.failure);  // after what was compared until then
  return terminal.signals.raised() ? terminal.signals.exit_code() : kDone;
}

}  // namespace

std::unique_ptr<Command> make_compare_command() { return std::make_unique<CompareCommand>(); }

}  // namespace outrider::tools
