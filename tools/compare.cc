// outrider compare: is the text with speculation the text without?
#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "lab/compare_run.h"
#include "tools/command.h"
#include "tools/local_runtime.h"
#include "tools/options/model_options.h"
#include "tools/options/options.h"
#include "tools/options/request_options.h"
#include "tools/options/usage.h"

namespace outrider::tools {
namespace {

constexpr const char* kCompareDetails =
    R"(Runs each prompt with the same seed, plain and with speculation at each width, and compares the
tokens. (Under the coupled rule: the others give other texts of the same distribution.)
The verdict is the probe's (exact | exact up to width K | distributional), and never better than
what was seen. Where texts differ, the logit gap at the first difference tells a near-tie that
rounding decides from a bug (above 0.5). Exit code 0: compared, whatever came out.
Without a drafter and without -d, the plain run's own tokens are proposed, every fifth one made
wrong. With several drafters the counts of each are told. Files are only read.)";

class CompareCommand : public Command {
 public:
  CompareCommand()
      : Command("compare", "check over many prompts that speculation does not change the text",
                kCompareDetails) {}
  void add_options(CLI::App& app) override;
  void check() override;
  OptionFacts facts() const override { return {.drafters = compared_drafters()}; }
  Status prepare() override;
  ModelArguments* models() override { return &model_; }
  Result<int> run() override;

 private:
  Status read_prompts();
  DrafterPlan compared_drafters() const;
  LocalSetup setup();

  std::optional<std::string> prompts_file_;
  std::vector<FilePrompt> prompts_;
  std::int32_t limit_ = 0;
  bool chat_ = false;
  ModelArguments model_;
  RequestArguments request_;
  lab::ComparePlan plan_{.widths = {4}};
};

void CompareCommand::add_options(CLI::App& app) {
  OptionGroup prompt(app, "Prompts");
  prompt.add_text("--prompts", prompts_file_, "FILE",
                  "JSON lines, each with 'turns' (texts; the first is taken), 'prompt' (a text) or "
                  "'messages' (a conversation); - is standard input (required)");
  prompt.add_integer("--limit", limit_, {0, 1000000000},
                     "compare the first N prompts only; 0: all");
  prompt.add_switch("--chat", chat_,
                    "prompts are user's messages: put them into the model's own chat template "
                    "('messages' always are)");
  add_model_options(app, model_);
  request_.request.max_tokens = 128;
  add_request_options(app, request_,
                      {"logprobs", "timeout_ms", "shift_keep", "width", "rule", "namespace"});
  OptionGroup speculation(app, "Speculation");
  speculation.add_integers(
      "--width", plan_.widths, {2, field_named(speculation_fields(), "width").range.max},
      "tokens of one target step at most, its own last one included; several widths are compared "
      "one after the other",
      " (1 is plain decoding, with nothing to compare)");
  add_exact_option(app, "Speculation", model_);
  add_output_options(app, output_);
}

void CompareCommand::check() {
  require_model(model_);
  if (!prompts_file_) {
    throw UsageError("--prompts is missing",
                     "give a file of JSON lines with 'turns', 'prompt' or 'messages'");
  }
  if (request_.request.max_tokens == 0) {
    throw UsageError(
        "--max-tokens is 0, but must be at least 1, or -1: there would be nothing to compare");
  }
  if (!request_.request.speculative) {
    throw UsageError("--drafter is 'none', but there would be nothing to compare",
                     "leave it out: then the plain run's own tokens are proposed");
  }
  check_request(request_, model_, DrafterPlan{.chains = {{std::string(kDraftModelName)}}});
  check_dynamic_file(*request_.app, request_.files);
  std::sort(plan_.widths.begin(), plan_.widths.end());
}

// Those named, else the draft, else the plain run's own tokens.
DrafterPlan CompareCommand::compared_drafters() const {
  if (!request_.request.drafters.empty()) return request_.request.drafters;
  const std::string_view only =
      has_draft(model_) ? model_.draft_name : std::string_view(lab::ReplayDrafter::kName);
  return {.chains = {{std::string(only)}}};
}

// The target as wide as the widest comparison, with the drafters that are compared.
LocalSetup CompareCommand::setup() {
  CompletionRequest& request = request_.request;
  request.drafters = compared_drafters();
  const bool replays = request.drafters.mentions(lab::ReplayDrafter::kName);
  request.width = plan_.widths.back();
  LocalSetup setup = setup_for(request_, model_);
  setup.runtime.reuse_prefix = false;  // each run is alone
  if (replays) setup.runtime.drafters.push_back(lab::replay_drafter(plan_.replay));
  return setup;
}

Status CompareCommand::read_prompts() {
  OUTRIDER_ASSIGN_OR_RETURN(prompts_,
                            read_prompt_file(*prompts_file_, static_cast<std::size_t>(limit_)));
  return Status();
}

Status CompareCommand::prepare() {
  OUTRIDER_RETURN_IF_ERROR(read_constraint(request_));
  return *prompts_file_ == "-" ? Status() : read_prompts();
}

Result<int> CompareCommand::run() {
  if (*prompts_file_ == "-") OUTRIDER_RETURN_IF_ERROR(read_prompts());
  Terminal& terminal = watch();
  OUTRIDER_ASSIGN_OR_RETURN(const std::unique_ptr<LocalRuntime> local,
                            LocalRuntime::open(setup(), terminal));
  local->print_warnings(request_.request);
  OUTRIDER_ASSIGN_OR_RETURN(plan_.prompts, tokenize(local->target(), prompts_, chat_));
  plan_.request = request_.request;
  plan_.request.seed = static_cast<std::int64_t>(chosen_seed(request_.request));
  const auto [comparison, failure] = lab::run_comparison(local->harness(), plan_);
  OUTRIDER_RETURN_IF_ERROR(
      print(lab::comparison_json(comparison), lab::comparison_table(comparison)).status());
  OUTRIDER_RETURN_IF_ERROR(failure);  // after what was compared until then
  return terminal.signals.exit_code();
}

}  // namespace

std::unique_ptr<Command> make_compare_command() { return std::make_unique<CompareCommand>(); }

}  // namespace outrider::tools
