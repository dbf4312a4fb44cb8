// outrider bench: how much faster is speculation, here, on these prompts?
#include <unistd.h>

#include <algorithm>
#include <ctime>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "api/completion_json.h"
#include "engine/engine.h"
#include "json/json.h"
#include "lab/bench_prompts.h"
#include "lab/bench_report.h"
#include "lab/bench_result.h"
#include "lab/markup.h"
#include "lab/prompt_file.h"
#include "llama/base/backend.h"
#include "store/atomic_file.h"
#include "tools/bench_oracle.h"
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

// How often, where it is not said. With fewer than four, Student's t is large (12.7, 4.3), and a
// narrow interval mostly luck.
constexpr std::int32_t kLeastRepetitions = 4;
constexpr std::int32_t kMostRepetitions = 10;

// What this process has computed so far, all threads together.
double processor_ms() { return 1000.0 * static_cast<double>(std::clock()) / CLOCKS_PER_SEC; }

class BenchCommand : public Command {
 public:
  std::string name() const override { return "bench"; }
  std::string summary() const override {
    return "measure over many prompts how much faster speculation is";
  }
  std::string details() const override { return kBenchDetails; }
  void add_options(CLI::App& app) override;
  void check() override;
  int run() override;

 private:
  struct Work {
    std::vector<Token> tokens;
    std::size_t category = 0;
    std::string id;
  };

  Result<std::vector<Work>> read_work(const Target& target) const;
  Result<std::unique_ptr<LocalRuntime>> open(const LocalHooks& hooks);
  void describe(const LocalRuntime& local);
  Result<Completion> generate_text(LocalRuntime& local, const Work& work, std::int32_t repetition,
                                   bool speculative, std::int32_t max_tokens);
  Status measure_pair(LocalRuntime& local, const Work& work, std::size_t index,
                      std::int32_t repetition);
  Status measure(LocalRuntime& local, const std::vector<Work>& work);
  Status ask_oracles(LocalRuntime& local, const std::vector<Work>& work);
  int report(LocalRuntime& local, const Status& failure);

  std::optional<std::string> prompts_file_;
  std::optional<std::string> category_list_;
  PromptChoice choice_;
  bool chat_ = false;
  std::int32_t repeat_ = 0;
  float until_ = 0.05f;
  std::int32_t warm_up_ = 1;
  bool oracle_ = false;
  ModelArguments model_;
  RequestArguments request_;
  std::optional<std::string> report_;
  OutputArguments output_;

  // While it runs.
  std::vector<Prompt> prompts_;
  DrafterPlan drafters_;
  BenchSetting setting_;
  std::vector<BenchPair> pairs_;
  SignalWatch* signals_ = nullptr;
  ProgressBar* progress_ = nullptr;
};

void BenchCommand::add_options(CLI::App& app) {
  OptionGroup prompt(app, "Prompts");
  prompt.add_text("--prompts", prompts_file_, "FILE",
                  "JSON lines, each with 'turns' (texts; the first is taken), 'prompt' (a text) or "
                  "'messages' (a conversation), and perhaps a 'category'; - is standard input "
                  "(required)");
  prompt.add_text("--categories", category_list_, "NAME,...",
                  "measure prompts of these categories only [default: all]");
  prompt.add_integer("--per-category", choice_.per_category, 0, 1000000000,
                     "of each category only so many prompts, spread evenly over it; 0: all");
  prompt.add_integer("--limit", choice_.limit, 0, 1000000000,
                     "of what is left only the first N prompts; 0: all");
  prompt.add_switch("--chat", chat_,
                    "prompts are user's messages: put them into the model's own chat template "
                    "('messages' always are)");
  OptionGroup measuring(app, "Measuring");
  measuring.add_integer("--repeat", repeat_, 0, 10000,
                        "how often each prompt is run each way; 0: 4 to 10 times, until the result "
                        "is as sure as --until says");
  measuring.add_number("--until", until_,
                       "how narrow the 95 % interval of the overall speed-up is to be, each way, "
                       "as a part of it: 0.005 to 1; the result says whether it is");
  measuring.add_integer("--warm-up", warm_up_, 0, 10000,
                        "prompts that are run once, 16 tokens each way, before it counts");
  measuring.add_switch(
      "--oracle", oracle_,
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
  if (report_ && report_->empty()) throw UsageError("--report is '', but must be a file's name");
  std::string rest = category_list_ ? *category_list_ + "," : "";
  for (std::size_t comma; (comma = rest.find(',')) != std::string::npos; rest.erase(0, comma + 1)) {
    if (comma == 0) {
      throw UsageError("--categories is '" + *category_list_ +
                       "', but must be names with commas between them");
    }
    choice_.categories.push_back(rest.substr(0, comma));
  }
  if (!(until_ >= 0.005f && until_ <= 1.0f)) {
    throw UsageError("--until is " + shortly(static_cast<double>(until_)) +
                     ", but must be from 0.005 to 1");
  }
  const CompletionRequest& r = request_.request;
  if (r.max_tokens == 0 || r.max_tokens == 1) {
    throw UsageError("--max-tokens is " + std::to_string(r.max_tokens) +
                     ", but must be at least 2, or -1: speeds are of what follows the first token");
  }
  check_request(request_, model_);
  if (oracle_ && r.rule != AcceptanceRule::kCoupled) {
    throw UsageError(
        "--oracle is there, but --rule is '" + std::string(api::rule_name(r.rule)) + "'",
        "which guesses hold is drawn with that rule; take --rule coupled");
  }
  drafters_ = chosen_drafters(request_, model_);
  if (oracle_ && drafters_.mentions("recycle")) {
    throw UsageError("--oracle is there, but --drafter has 'recycle'",
                     "which guesses from what the target says in its run; leave it out");
  }
  if (drafters_.empty()) {
    throw UsageError("there is nothing to measure: " + off_reason(request_, model_),
                     "plain decoding is always measured beside speculation");
  }
}

// With measured costs also where the width is fixed: they are part of the result.
Result<std::unique_ptr<LocalRuntime>> BenchCommand::open(const LocalHooks& hooks) {
  LocalSetup setup = setup_for(request_, model_);
  setup.loader.measure_costs = true;
  setup.runtime.reuse_prefix = false;  // each run reads its prompt
  return LocalRuntime::open(setup, hooks);
}

Result<std::vector<BenchCommand::Work>> BenchCommand::read_work(const Target& target) const {
  Result<std::vector<std::vector<Token>>> tokens = tokenize(target, prompts_, chat_);
  if (!tokens.ok()) return tokens.status();
  const std::vector<std::string>& names = setting_.categories;
  std::vector<Work> all;
  for (std::size_t i = 0; i < prompts_.size(); ++i) {
    const std::ptrdiff_t category =
        std::find(names.begin(), names.end(), prompts_[i].category) - names.begin();
    all.push_back({.tokens = std::move((*tokens)[i]),
                   .category = static_cast<std::size_t>(category),
                   .id = prompts_[i].id});
  }
  return all;
}

void BenchCommand::describe(const LocalRuntime& local) {
  const Target& target = local.target();
  const CompletionRequest& r = request_.request;
  setting_.target = target.info().path;
  setting_.target_description = target.info().description;
  if (local.draft_info()) setting_.draft = local.draft_info()->path;
  setting_.drafter = to_string(drafters_);
  setting_.width = r.width == kAutoWidth ? "auto" : std::to_string(r.width);
  setting_.rule = api::rule_name(r.rule);
  setting_.exactness = target.exactness().verdict();
  setting_.exactness_coverage = target.exactness().coverage;
  setting_.temperature = r.sampling.temperature;
  setting_.seed = chosen_seed(r);
  setting_.max_tokens = r.max_tokens;
  const std::int32_t threads = model_.target.n_threads;
  setting_.threads = threads > 0 ? threads : llama::physical_cores();
  setting_.repetitions = repeat_ > 0 ? repeat_ : kLeastRepetitions;
  setting_.until = static_cast<double>(until_);
  setting_.prompts = static_cast<std::int64_t>(prompts_.size());
  setting_.command = command_line();
  setting_.machine = this_machine();
}

Result<Completion> BenchCommand::generate_text(LocalRuntime& local, const Work& work,
                                               std::int32_t repetition, bool speculative,
                                               std::int32_t max_tokens) {
  CompletionRequest request = request_.request;
  request.prompt.assign(work.tokens.begin(), work.tokens.end());
  request.seed = static_cast<std::int64_t>(setting_.seed) + repetition;
  request.max_tokens = max_tokens;
  request.drafters = drafters_;
  request.speculative = speculative;
  const Result<std::shared_ptr<const CompletionResult>> result =
      generate(local, std::move(request), *signals_, *progress_, {});
  if (!result.ok()) return result.status();
  const Completion& completion = (*result)->completion;
  if (!completion.error.ok()) return completion.error;
  return completion;
}

Status BenchCommand::measure_pair(LocalRuntime& local, const Work& work, std::size_t index,
                                  std::int32_t repetition) {
  const bool counts = repetition >= 0;
  const std::int32_t n = request_.request.max_tokens;
  const std::int32_t max_tokens = counts ? n : (n < 0 ? 16 : std::min(n, 16));
  const std::size_t turn = index + static_cast<std::size_t>(std::max(repetition, 0));
  std::optional<Completion> texts[2];  // plain, speculative
  double cpu_ms[2] = {0.0, 0.0};
  for (const std::size_t i : {turn % 2, (turn + 1) % 2}) {
    const double before = processor_ms();
    Result<Completion> text =
        generate_text(local, work, std::max(repetition, 0), /*speculative=*/i == 1, max_tokens);
    cpu_ms[i] = processor_ms() - before;
    if (!text.ok()) return text.status();
    if (signals_->raised()) return cancelled("interrupted");
    texts[i] = std::move(*text);
  }
  const SpeculationStats& stats = texts[1]->speculation;
  if (!stats.enabled && !stats.reason.empty()) {
    return unsupported("there is nothing to measure, speculation is off: " + stats.reason);
  }
  if (!counts) return Status();
  pairs_.push_back({.category = work.category,
                    .repetition = repetition,
                    .identical = texts[0]->tokens == texts[1]->tokens,
                    .plain = texts[0]->timings,
                    .speculative = texts[1]->timings,
                    .plain_steps = texts[0]->speculation,
                    .speculative_steps = stats,
                    .prompt = index});
  // Of a target elsewhere this process sees nothing.
  if (!model_.target.isolate && model_.target.workers.empty()) {
    pairs_.back().processor = {.plain_ms = cpu_ms[0], .speculative_ms = cpu_ms[1]};
  }
  if (oracle_ && repetition == 0) pairs_.back().said = std::move(texts[1]->tokens);
  return Status();
}

Status BenchCommand::measure(LocalRuntime& local, const std::vector<Work>& work) {
  const std::size_t n_warm = std::min(static_cast<std::size_t>(warm_up_), work.size());
  for (std::size_t i = 0; i < n_warm; ++i) {
    progress_->update("warming up", static_cast<double>(i) / static_cast<double>(n_warm));
    OUTRIDER_RETURN_IF_ERROR(
        measure_pair(local, work[i], i, /*repetition=*/-1).with_context("prompt " + work[i].id));
  }
  std::int32_t& n = setting_.repetitions;
  for (std::int32_t r = 0; r < n; ++r) {
    const double all = static_cast<double>(work.size()) * n;
    for (std::size_t i = 0; i < work.size(); ++i) {
      progress_->update("repetition " + std::to_string(r + 1) + " of " + std::to_string(n) +
                            ", prompt " + std::to_string(i + 1) + " of " +
                            std::to_string(work.size()),
                        static_cast<double>(pairs_.size()) / all);
      OUTRIDER_RETURN_IF_ERROR(
          measure_pair(local, work[i], i, r).with_context("prompt " + work[i].id));
    }
    const bool more = repeat_ == 0 && r + 1 == n && n < kMostRepetitions;
    if (more && !sum_up(setting_, pairs_, /*interrupted=*/false).is_sure()) ++n;
  }
  return Status();
}

// Last of all: the drafters know no text afterwards.
Status BenchCommand::ask_oracles(LocalRuntime& local, const std::vector<Work>& work) {
  for (std::size_t i = 0; i < pairs_.size(); ++i) {
    BenchPair& pair = pairs_[i];
    if (pair.repetition != 0) continue;
    progress_->update("asking an oracle",
                      static_cast<double>(i) / static_cast<double>(work.size()));
    const Result<OracleTimes> times =
        ask_oracle(local,
                   {.prompt = work[pair.prompt].tokens,
                    .said = pair.said,
                    .seed = setting_.seed,
                    .after_first = pair.speculative.predicted_after_first,
                    .stats = &pair.speculative_steps},
                   request_.request, *signals_);
    if (!times.ok()) return times.status().with_context("the oracle");
    pair.oracle = *times;
  }
  return Status();
}

// What was measured, whole or not, then what went wrong.
int BenchCommand::report(LocalRuntime& local, const Status& failure) {
  const bool interrupted = signals_->raised();
  BenchResult result = sum_up(setting_, pairs_, interrupted || !failure.ok());
  const Status planned =
      local.runtime().with_idle_target([&result](LanguageModel&, const Engine& engine) {
        result.costs = engine.planner().target_cost().points();
        result.score = engine.planner().score();
      });
  if (!planned.ok() && failure.ok()) return fail(planned);
  std::vector<std::int32_t> widths;
  for (const CostPoint& point : result.costs) widths.push_back(point.width);
  // Where it can't be had, the report goes without.
  if (!interrupted && failure.ok()) {
    Result<MachineFloor> floor = measure_floor(target_options(model_), setting_.threads, widths);
    if (floor.ok()) result.floor = std::move(floor->floor);
  }
  if (interrupted) {
    print_warning(
        "interrupted: " + std::to_string(pairs_.size()) + " of " +
        std::to_string(static_cast<std::int64_t>(prompts_.size()) * setting_.repetitions) +
        " pairs of runs were measured, and " + std::to_string(result.overall.pairs) + " count");
  }
  const bool anything = result.overall.pairs > 0;
  TextOutput output(STDOUT_FILENO, /*color=*/false);
  if (anything || failure.ok()) {
    output.write(output_.json ? json::encode(bench_json(result)) + "\n" : bench_table(result));
  }
  const Status written =
      report_ && anything ? write_whole_file(*report_, bench_report(result)) : Status();
  if (!output.status().ok()) return fail(output.status());
  if (!failure.ok()) return fail(failure);
  if (!written.ok()) return fail(written.with_context("--report"));
  return interrupted ? signals_->exit_code() : kDone;
}

int BenchCommand::run() {
  const int constraint = read_constraint(request_);
  if (constraint != kDone) return constraint;
  const Status writable = report_ ? check_writable(*report_) : Status();
  if (!writable.ok()) return fail(writable.with_context("--report"));
  Result<std::vector<Prompt>> prompts = read_prompt_file(*prompts_file_, /*limit=*/0);
  if (prompts.ok()) prompts = choose_prompts(std::move(*prompts), choice_);
  if (!prompts.ok()) return fail(prompts.status());
  prompts_ = std::move(*prompts);
  setting_.categories = categories_of(prompts_);
  SignalWatch signals;
  ProgressBar progress;
  signals_ = &signals;
  progress_ = &progress;
  const LocalHooks hooks{
      .progress = progress, .signals = signals, .log = log_sink(output_, progress)};
  const Result<std::unique_ptr<LocalRuntime>> local = open(hooks);
  progress.clear();
  if (!local.ok()) return fail(local.status(), signals);
  (*local)->print_warnings(request_.request);
  describe(**local);
  const Result<std::vector<Work>> work = read_work((*local)->target());
  if (!work.ok()) return fail(work.status());
  Status failure = measure(**local, *work);
  if (failure.ok() && oracle_) failure = ask_oracles(**local, *work);
  progress.clear();
  if (signals.raised()) failure = Status();
  return report(**local, failure);
}

}  // namespace

std::unique_ptr<Command> make_bench_command() { return std::make_unique<BenchCommand>(); }

}  // namespace outrider::tools
