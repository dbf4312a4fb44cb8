// outrider calibrate: what passes of the models take here.
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "engine/engine.h"
#include "json/json.h"
#include "lab/calibration.h"
#include "lab/draft_costs.h"
#include "llama/base/backend.h"
#include "llama/open_target.h"
#include "store/atomic_file.h"
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

constexpr std::int32_t kMostWidth = 64;
constexpr std::int32_t kMostDepth = 1 << 20;

constexpr const char* kCalibrateDetails =
    R"(T(b) is what one pass of the target over b tokens takes, on which every choice of speculation
rests: a step of b tokens pays when it yields more than T(b)/T(1). It is jagged (four tokens may
take less than two), so widths are measured and not computed. Each is measured --repeat times, in
turn with the others; shown are the median, and between which times half of the passes lie.
Beside it stands the least that a step can take on this machine, the longer of reading all weights
once and of making its products, and what it takes with llama.cpp's kernels (--kernels).
With -d also what the draft model's passes take, and what its products would in other types of
weights: fewer bits are not always cheaper, and guess less well.
Loading a model measures the usual widths once and keeps them in the cache folder for --width
auto; so does this command, and --refresh replaces what is kept. Loading also compares batches with
single steps, for 10 to 30 seconds each time, until all widths are compared; this command does all
of that at once, which takes minutes for a large model. What is found is kept for the options that
it depends on: give the --threads, --batch, --exact and cache types that the model will be used
with, and --slots 4 for 'rpc' and the C interface.
The output of --json is a cost file for 'replay --cost'.)";

class CalibrateCommand : public Command {
 public:
  std::string name() const override { return "calibrate"; }
  std::string summary() const override {
    return "measure what steps of each width take on this machine";
  }
  std::string details() const override { return kCalibrateDetails; }
  void add_options(CLI::App& app) override;
  void check() override;
  int run() override;

 private:
  Status measure(LocalRuntime& local, const SignalWatch& signals, ProgressBar& progress);
  Result<MeasuredCurve> measure_curve(LanguageModel& model, std::int32_t depth,
                                      const SignalWatch& signals,
                                      const std::function<void(double)>& progress);
  Status measure_floor(const SignalWatch& signals, ProgressBar& progress);
  Status measure_draft(const LocalRuntime& local, Drafter& drafter, const SignalWatch& signals);

  ModelArguments model_;
  std::vector<std::int32_t> widths_ = {1, 2, 3, 4, 8, 16};  // rising
  std::vector<std::int32_t> depths_ = {64};
  std::int32_t repeat_ = 9;
  bool refresh_ = false;
  std::int32_t slots_ = 1;
  std::optional<std::string> plot_;
  OutputArguments output_;

  Calibration result_;
};

// A comma-separated list of whole numbers; the default is what `values` holds.
void add_list(CLI::App& app, const std::string& name, std::vector<std::int32_t>& values,
              std::int64_t most, const std::string& help) {
  std::string shown;
  for (const std::int32_t value : values)
    shown += (shown.empty() ? "" : ",") + std::to_string(value);
  CLI::Option* option = app.add_option(
      name,
      [&values, name, most](const CLI::results_t& results) {
        values.clear();
        std::string rest = results.back() + ",";
        for (std::size_t comma; (comma = rest.find(',')) != std::string::npos;
             rest.erase(0, comma + 1)) {
          const std::int32_t value = static_cast<std::int32_t>(parse_integer(
              name, rest.substr(0, comma), 1, most,
              "whole numbers from 1 to " + std::to_string(most) + " with commas between them"));
          const bool twice = std::find(values.begin(), values.end(), value) != values.end();
          if (!twice) values.push_back(value);
        }
        return true;
      },
      help);
  option->group("Measuring")->type_name("N,...")->default_str(shown);
  option->multi_option_policy(CLI::MultiOptionPolicy::TakeLast);
}

std::string too_deep(std::int32_t depth, std::int32_t widest, std::int32_t n_ctx) {
  return "--depth " + std::to_string(depth) + " and a pass of " + std::to_string(widest) +
         " do not fit the context of " + std::to_string(n_ctx) + " tokens; give a larger --ctx";
}

void CalibrateCommand::add_options(CLI::App& app) {
  add_model_options(app, model_);
  add_list(app, "--widths", widths_, kMostWidth,
           "tokens of a pass that are measured; 1 is always among them");
  add_list(
      app, "--depth", depths_, kMostDepth,
      "tokens in front of the passes: attention over a longer text takes longer. The first one "
      "is the curve of --json, and what the draft model is measured at");
  OptionGroup measuring(app, "Measuring");
  measuring.add_integer("--repeat", repeat_, 1, 10000, "how often each width is measured");
  measuring.add_switch("--refresh", refresh_,
                       "measure anew what loading keeps of this model in the cache folder");
  measuring.add_integer("--slots", slots_, 1, 64,
                        "completions that will run at once, as of 'rpc': what is found exact is "
                        "kept for 1, 2, and 3 or more of them");
  add_exact_option(app, "Measuring", model_);
  OptionGroup output(app, "Output");
  output.add_text("--plot", plot_, "FILE",
                  "also draw the curve into this file, as SVG (replaced if it exists)");
  add_output_options(app, output_);
}

void CalibrateCommand::check() {
  require_model(model_);
  if (plot_ && plot_->empty()) throw UsageError("--plot is '', but must be a file's name");
  widths_.push_back(1);
  std::sort(widths_.begin(), widths_.end());
  widths_.erase(std::unique(widths_.begin(), widths_.end()), widths_.end());
  // Said now, and not after half a minute of probing. 0: as the model was trained.
  for (const std::int32_t depth : depths_) {
    if (model_.target.n_ctx > 0 && depth + widths_.back() > model_.target.n_ctx) {
      throw UsageError(too_deep(depth, widths_.back(), model_.target.n_ctx));
    }
  }
}

Result<MeasuredCurve> CalibrateCommand::measure_curve(LanguageModel& model, std::int32_t depth,
                                                      const SignalWatch& signals,
                                                      const std::function<void(double)>& progress) {
  const Capabilities& caps = model.capabilities();
  if (caps.rollback != Rollback::kAny) {
    return unsupported("nothing can be measured: '" + *model_.model + "' cannot take tokens back" +
                       (caps.rollback_reason.empty() ? "" : ": " + caps.rollback_reason));
  }
  const std::int32_t most = std::min(caps.max_width, caps.n_batch);
  const std::int32_t widest = widths_.back();
  if (widest > most) {
    return invalid_argument("--widths has " + std::to_string(widest) + ", but '" + *model_.model +
                            "' takes at most " + std::to_string(most) + " tokens in a step here");
  }
  if (depth + widest > caps.n_ctx) {
    return invalid_argument(too_deep(depth, widest, caps.n_ctx));
  }
  MeasureOptions options;
  options.widths = widths_;
  // One width alone has nothing to be compared with: a second one is measured and not shown.
  if (widths_.size() == 1) options.widths = {1, 1};
  options.depth = depth;
  options.budget_ms = 1e12;
  options.rounds = repeat_;
  options.cancel = signals.flag();
  options.on_round = [&](std::int32_t round) {
    progress(static_cast<double>(round) / static_cast<double>(repeat_ + 1));
  };
  Result<std::vector<CostSamples>> samples = measure_cost_samples(model, options);
  if (!samples.ok()) return samples.status();
  samples->resize(widths_.size());
  return curve_of(depth, *samples);
}

// The machine's limits, and the first depth's curve with llama.cpp's kernels. The runtime is gone
// by now: two copies of a large model may not fit into memory.
Status CalibrateCommand::measure_floor(const SignalWatch& signals, ProgressBar& progress) {
  ModelOptions options = target_options(model_);
  progress.update("measuring the machine's limits", 0.0);
  if (result_.draft && result_.draft->kernels.own) {
    Result<TypeCosts> types = measure_type_costs(result_.draft->path, result_.draft_threads);
    if (!types.ok()) return types.status();
    result_.draft_types = *std::move(types);
  }
  Result<MachineFloor> floor = lab::measure_floor(options, result_.threads, widths_);
  if (!floor.ok()) return floor.status();
  result_.limits = floor->limits;
  result_.floor = std::move(floor->floor);
  if (result_.floor.empty()) return Status();
  if (!result_.target.kernels.own) return Status();
  options.kernels = KernelChoice::kStock;
  options.widest = std::max(kOpenedWidth, widths_.back());
  const LoadHooks hooks{.progress = {}, .cancel = signals.flag(), .log = {}};
  llama::TargetOptions how;
  how.widest = options.widest;
  how.probe_budget_ms = 1.0;  // only its times are asked for
  how.cache_folder = std::filesystem::path();
  Result<llama::OpenedTarget> stock = llama::open_target(options, hooks, how);
  if (!stock.ok()) return stock.status();
  Result<MeasuredCurve> curve = measure_curve(
      *stock->model, depths_.front(), signals,
      [&](double fraction) { progress.update("measuring llama.cpp's kernels", fraction); });
  if (!curve.ok()) return curve.status();
  result_.stock = *std::move(curve);
  return Status();
}

Status CalibrateCommand::measure_draft(const LocalRuntime& local, Drafter& drafter,
                                       const SignalWatch& signals) {
  Result<std::unique_ptr<Sampler>> sampler = local.target().make_sampler(SamplingOptions());
  if (!sampler.ok()) return sampler.status();
  DraftMeasureOptions options;
  options.n_vocab = local.target().vocabulary().size();
  options.depth = depths_.front();
  options.rounds = repeat_;
  options.cancelled = [&signals] { return signals.raised(); };
  drafter.set_interrupt(signals.flag());
  const Result<DraftSamples> samples = measure_draft_costs(drafter, **sampler, options);
  drafter.set_interrupt(nullptr);
  if (!samples.ok()) return samples.status().with_context("measuring the draft model");
  if (samples->first_ms.empty()) return internal_error("the draft model made no pass");
  result_.draft = local.draft_info();
  const std::int32_t threads = draft_options(model_).n_threads;
  result_.draft_threads = threads > 0 ? threads : llama::physical_cores();
  result_.first_pass = summarise(samples->first_ms);
  if (!samples->further_ms.empty()) result_.further_pass = summarise(samples->further_ms);
  return Status();
}

Status CalibrateCommand::measure(LocalRuntime& local, const SignalWatch& signals,
                                 ProgressBar& progress) {
  const Target& target = local.target();
  result_.target = target.info();
  result_.exactness = target.exactness().verdict();
  result_.exactness_coverage = target.exactness().coverage;
  const std::int32_t threads = model_.target.n_threads;
  result_.threads = threads > 0 ? threads : llama::physical_cores();
  const double n = static_cast<double>(depths_.size());
  Status measured;
  const auto work = [&](LanguageModel& model, const Engine& engine) {
    for (std::size_t i = 0; i < depths_.size() && measured.ok(); ++i) {
      Result<MeasuredCurve> curve = measure_curve(model, depths_[i], signals, [&](double fraction) {
        progress.update("measuring behind " + std::to_string(depths_[i]) + " tokens",
                        (static_cast<double>(i) + fraction) / n);
      });
      measured = curve.status();
      if (curve.ok()) result_.curves.push_back(*std::move(curve));
    }
    Drafter* const draft = engine.drafters().front();  // the draft model's place
    if (measured.ok() && draft != nullptr) measured = measure_draft(local, *draft, signals);
  };
  OUTRIDER_RETURN_IF_ERROR(local.runtime().with_idle_target(work));
  return measured;
}

int CalibrateCommand::run() {
  if (plot_) {
    const Status writable = check_writable(*plot_);
    if (!writable.ok()) return fail(writable.with_context("--plot"));
  }
  SignalWatch signals;
  ProgressBar progress;
  LocalSetup setup{.target = target_options(model_)};
  setup.runtime.slots = slots_;
  setup.loader.refresh_costs = refresh_;
  setup.loader.probe_budget_ms = 1e12;  // all the time that it needs
  setup.target->widest = std::max(kOpenedWidth, widths_.back());
  if (model_.draft_model) setup.draft = draft_options(model_);
  const LocalHooks hooks{
      .progress = progress, .signals = signals, .log = log_sink(output_, progress)};
  Result<std::unique_ptr<LocalRuntime>> local = LocalRuntime::open(setup, hooks);
  progress.clear();
  if (!local.ok()) return fail(local.status(), signals);
  (*local)->print_warnings({.width = setup.target->widest});
  result_.machine = this_machine();
  result_.command = command_line();
  Status measured = measure(**local, signals, progress);
  local->reset();
  if (measured.ok()) measured = measure_floor(signals, progress);
  progress.clear();
  if (!measured.ok()) return fail(measured, signals);
  TextOutput output(STDOUT_FILENO, /*color=*/false);
  output.write(output_.json ? json::encode(calibration_json(result_)) + "\n"
                            : calibration_table(result_));
  if (!output.status().ok()) return fail(output.status());
  if (!plot_) return kDone;
  const Status drawn = write_whole_file(*plot_, calibration_plot(result_));
  return drawn.ok() ? kDone : fail(drawn.with_context("--plot"));
}

}  // namespace

std::unique_ptr<Command> make_calibrate_command() { return std::make_unique<CalibrateCommand>(); }

}  // namespace outrider::tools
