// outrider bench: how much faster is speculation, here, on these prompts?
#include <unistd.h>

#include <algorithm>
#include <ctime>
#include <optional>
#include <string>
#include <utility>
#include <vector>

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

  Result<std::vector<Work>> read_work(const Session& session) const;
  Result<std::unique_ptr<Session>> open(const SessionHooks& hooks);
  void describe(const Session& session);
  Result<Completion> generate_text(Session& session, const Work& work, std::int32_t repetition,
                                   bool speculative, std::int32_t max_tokens);
  Status measure_pair(Session& session, const Work& work, std::size_t index,
                      std::int32_t repetition);
  Status measure(Session& session, const std::vector<Work>& work);
  Status ask_oracles(Session& session, const std::vector<Work>& work);
  int report(const Session& session, const Status& failure);

  std::optional<std::string> prompts_file_;
  std::optional<std::string> category_list_;
  PromptChoice choice_;
  bool chat_ = false;
  std::int32_t repeat_ = 0;
  float until_ = 0.05f;
  std::int32_t warm_up_ = 1;
  bool oracle_ = false;
  ModelArguments model_;
  SamplingArguments sampling_;
  SpeculationArguments speculation_;
  std::optional<std::string> report_;
  OutputArguments output_;

  // While it runs.
  std::vector<Prompt> prompts_;
  SpeculationPlan plan_;
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
  sampling_.max_tokens = 128;
  add_sampling_options(app, sampling_);
  add_stop_option(app, sampling_);
  add_speculation_options(app, speculation_, model_);
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
  check_sampling(sampling_);
  if (sampling_.max_tokens == 0 || sampling_.max_tokens == 1) {
    throw UsageError("--max-tokens is " + std::to_string(sampling_.max_tokens) +
                     ", but must be at least 2, or -1: speeds are of what follows the first token");
  }
  check_speculation(speculation_, model_);
  if (oracle_ && speculation_.rule != "coupled") {
    throw UsageError("--oracle is there, but --rule is '" + speculation_.rule + "'",
                     "which guesses hold is drawn with that rule; take --rule coupled");
  }
  plan_ = plan_speculation(speculation_, model_);
  if (oracle_ && plan_.drafters.mentions("recycle")) {
    throw UsageError("--oracle is there, but --drafter has 'recycle'",
                     "which guesses from what the target says in its run; leave it out");
  }
  if (!plan_.off_reason.empty()) {
    throw UsageError("there is nothing to measure: " + plan_.off_reason,
                     "plain decoding is always measured beside speculation");
  }
}

// With measured costs also where the width is fixed: they are part of the result.
Result<std::unique_ptr<Session>> BenchCommand::open(const SessionHooks& hooks) {
  SessionOptions options{.target = target_options(model_),
                         .planned = true,
                         .widest_is_wish = plan_.width != kAutoWidth};
  options.target.widest = opened_width(speculation_);
  choose_drafters(plan_, speculation_, model_, options);
  return Session::open(options, hooks);
}

Result<std::vector<BenchCommand::Work>> BenchCommand::read_work(const Session& session) const {
  Result<std::vector<std::vector<Token>>> tokens = session.tokenize(prompts_, chat_);
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

void BenchCommand::describe(const Session& session) {
  setting_.target = session.target_info().path;
  setting_.target_description = session.target_info().description;
  if (session.draft_info() != nullptr) setting_.draft = session.draft_info()->path;
  setting_.drafter = to_string(plan_.drafters);
  setting_.width = speculation_.width;
  setting_.rule = speculation_.rule;
  setting_.exactness = session.exactness().verdict();
  setting_.exactness_coverage = session.exactness().coverage;
  setting_.temperature = sampling_.options.temperature;
  setting_.seed = chosen_seed(sampling_);
  setting_.max_tokens = sampling_.max_tokens;
  setting_.threads = model_.threads > 0 ? model_.threads : llama::physical_cores();
  setting_.repetitions = repeat_ > 0 ? repeat_ : kLeastRepetitions;
  setting_.until = static_cast<double>(until_);
  setting_.prompts = static_cast<std::int64_t>(prompts_.size());
  setting_.command = command_line();
  setting_.machine = this_machine();
}

Result<Completion> BenchCommand::generate_text(Session& session, const Work& work,
                                               std::int32_t repetition, bool speculative,
                                               std::int32_t max_tokens) {
  const std::uint64_t seed = setting_.seed + static_cast<std::uint64_t>(repetition);
  Result<Request> request =
      session.request(work.tokens, sampling_.options, seed, speculative ? plan_.width : 1);
  if (!request.ok()) return request.status();
  request->max_tokens = max_tokens;
  request->stop = sampling_.stop;
  if (speculative) {
    request->rule = chosen_rule(speculation_);
    request->draft = chosen_shape(speculation_);
    request->drafters = plan_.drafters;
  } else {
    request->speculative = false;
  }
  Result<Completion> completion = generate(session, std::move(*request), *signals_, *progress_,
                                           [](const Update&) { return true; });
  if (completion.ok() && !completion->error.ok()) return completion->error;
  return completion;
}

Status BenchCommand::measure_pair(Session& session, const Work& work, std::size_t index,
                                  std::int32_t repetition) {
  const bool counts = repetition >= 0;
  const std::int32_t n = sampling_.max_tokens;
  const std::int32_t max_tokens = counts ? n : (n < 0 ? 16 : std::min(n, 16));
  const std::size_t turn = index + static_cast<std::size_t>(std::max(repetition, 0));
  std::optional<Completion> texts[2];  // plain, speculative
  double cpu_ms[2] = {0.0, 0.0};
  for (const std::size_t i : {turn % 2, (turn + 1) % 2}) {
    const double before = processor_ms();
    Result<Completion> text =
        generate_text(session, work, std::max(repetition, 0), /*speculative=*/i == 1, max_tokens);
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
  if (!model_.isolate && !model_.workers) {
    pairs_.back().processor = {.plain_ms = cpu_ms[0], .speculative_ms = cpu_ms[1]};
  }
  if (oracle_ && repetition == 0) pairs_.back().said = std::move(texts[1]->tokens);
  return Status();
}

Status BenchCommand::measure(Session& session, const std::vector<Work>& work) {
  const std::size_t n_warm = std::min(static_cast<std::size_t>(warm_up_), work.size());
  for (std::size_t i = 0; i < n_warm; ++i) {
    progress_->update("warming up", static_cast<double>(i) / static_cast<double>(n_warm));
    OUTRIDER_RETURN_IF_ERROR(
        measure_pair(session, work[i], i, /*repetition=*/-1).with_context("prompt " + work[i].id));
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
          measure_pair(session, work[i], i, r).with_context("prompt " + work[i].id));
    }
    const bool more = repeat_ == 0 && r + 1 == n && n < kMostRepetitions;
    if (more && !sum_up(setting_, pairs_, /*interrupted=*/false).is_sure()) ++n;
  }
  return Status();
}

// Last of all: the drafters know no text afterwards.
Status BenchCommand::ask_oracles(Session& session, const std::vector<Work>& work) {
  for (std::size_t i = 0; i < pairs_.size(); ++i) {
    BenchPair& pair = pairs_[i];
    if (pair.repetition != 0) continue;
    progress_->update("asking an oracle",
                      static_cast<double>(i) / static_cast<double>(work.size()));
    const Result<OracleTimes> times =
        ask_oracle(session,
                   {.prompt = work[pair.prompt].tokens,
                    .said = pair.said,
                    .seed = setting_.seed,
                    .after_first = pair.speculative.predicted_after_first,
                    .stats = &pair.speculative_steps},
                   sampling_.options, chosen_shape(speculation_), *signals_);
    if (!times.ok()) return times.status().with_context("the oracle");
    pair.oracle = *times;
  }
  return Status();
}

// What was measured, whole or not, then what went wrong.
int BenchCommand::report(const Session& session, const Status& failure) {
  const bool interrupted = signals_->raised();
  BenchResult result = sum_up(setting_, pairs_, interrupted || !failure.ok());
  const Planner& planner = session.engine().planner();
  result.costs = planner.target_cost().points();
  std::vector<std::int32_t> widths;
  for (const CostPoint& point : result.costs) widths.push_back(point.width);
  // Where it can't be had, the report goes without.
  if (!interrupted && failure.ok()) {
    Result<MachineFloor> floor = measure_floor(target_options(model_), setting_.threads, widths);
    if (floor.ok()) result.floor = std::move(floor->floor);
  }
  result.score = planner.score();
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
  const int constraint = read_constraint(sampling_);
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
  const SessionHooks hooks{
      .progress = progress, .signals = signals, .log = log_sink(output_, progress)};
  const Result<std::unique_ptr<Session>> session = open(hooks);
  progress.clear();
  if (!session.ok()) return fail(session.status(), signals);
  for (const std::string& warning : (*session)->warnings()) print_warning(warning);
  describe(**session);
  const Result<std::vector<Work>> work = read_work(**session);
  if (!work.ok()) return fail(work.status());
  Status failure = measure(**session, *work);
  if (failure.ok() && oracle_) failure = ask_oracles(**session, *work);
  progress.clear();
  if (signals.raised()) failure = Status();
  return report(**session, failure);
}

}  // namespace

std::unique_ptr<Command> make_bench_command() { return std::make_unique<BenchCommand>(); }

}  // namespace outrider::tools
