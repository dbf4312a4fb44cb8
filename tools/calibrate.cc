// outrider calibrate: what passes of the models take here.
#include <algorithm>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "lab/calibrate_run.h"
#include "llama/exactness/exactness_cache.h"
#include "store/atomic_file.h"
#include "store/cache_folder.h"
#include "tools/command.h"
#include "tools/local_runtime.h"
#include "tools/options/model_options.h"
#include "tools/options/options.h"
#include "tools/options/usage.h"
#include "tools/output_file.h"
#include "tools/report.h"

namespace outrider::tools {
namespace {

constexpr const char* kCalibrateDetails =
    R"(T(b) is what one pass of the target over b tokens takes. Every choice of speculation depends
on it: a step of b tokens pays when it yields more than T(b)/T(1). It is jagged (four tokens may
take less than two), so widths are measured and not computed. Each is measured --repeat times, in
turn with the others; shown are the median, and between which times half of the passes lie.
Beside it stands the least that a step can take on this machine, the longer of reading all weights
once and of making its products, and what it takes with llama.cpp's kernels (--kernels) at their
fastest settings, exact or not. Where one of these fails, what was measured before it is printed.
With -d also what the draft model's passes take, and what its products would in other types of
weights: fewer bits are not always cheaper, and guess less well.
Loading a model measures the usual widths once and keeps them in the cache folder for --width
auto; so does this command, and --refresh replaces what is kept. Loading also compares batches with
single steps, for 10 to 30 seconds each time, until all widths are compared; this command does all
of that at once, which takes minutes for a large model. What is found is kept for the options that
it depends on: give the --threads, --batch, --exact and cache types that the model will be used
with, and --slots 4 for serve, rpc and the C interface.
The output of --json is a cost file for 'replay --cost'.)";

class CalibrateCommand : public Command {
 public:
  CalibrateCommand()
      : Command("calibrate", "measure what steps of each width take on this machine",
                kCalibrateDetails) {}
  void add_options(CLI::App& app) override;
  void check() override;
  Status prepare() override { return plot_ ? check_output_file(plot_file()) : Status(); }
  ModelArguments* models() override { return &model_; }
  Result<int> run() override;

 private:
  OutputFile plot_file() const {
    return {.option = "--plot", .path = *plot_, .reads = model_files(model_)};
  }
  Status measure(Terminal& terminal, lab::Calibration& result) const;

  ModelArguments model_;
  lab::CalibratePlan plan_{.widths = {1, 2, 3, 4, 8, 16}, .depths = {64}};
  bool refresh_ = false;
  std::int32_t slots_ = 1;
  std::optional<std::string> plot_;
};

void CalibrateCommand::add_options(CLI::App& app) {
  add_model_options(app, model_);
  OptionGroup measuring(app, "Measuring");
  measuring.add_integers("--widths", plan_.widths,
                         {1, field_named(speculation_fields(), "width").range.max},
                         "tokens of a pass that are measured; 1 is always among them");
  measuring.add_integers(
      "--depth", plan_.depths, {1, 1 << 20},
      "tokens in front of the passes: attention over a longer text takes longer. The first one "
      "is the curve of --json, and what the draft model is measured at");
  measuring.add_integer("--repeat", plan_.repeat, {1, 10000}, "how often each width is measured");
  measuring.add_switch("--refresh", refresh_,
                       "measure anew what loading keeps of this model in the cache folder");
  measuring.add_integer(
      "--slots", slots_, field_named(runtime_fields(), "slots").range,
      "completions that will run at once, as of serve and rpc: what is found exact is "
      "kept for 1, 2, and 3 or more of them");
  add_exact_option(app, "Measuring", model_);
  OptionGroup output(app, "Output");
  output.add_text("--plot", plot_, "FILE",
                  "also draw the curve into this file, as SVG (replaced if it exists)");
  add_output_options(app, output_);
}

void CalibrateCommand::check() {
  require_model(model_);
  if (plot_ == "") throw UsageError("--plot is '', but must be a file's name");
  std::vector<std::int32_t>& widths = plan_.widths;
  widths.push_back(1);
  std::sort(widths.begin(), widths.end());
  widths.erase(std::unique(widths.begin(), widths.end()), widths.end());
  // Said now, and not after half a minute of probing. 0: as the model was trained.
  if (model_.target.n_ctx <= 0) return;
  for (const std::int32_t depth : plan_.depths) {
    const std::string deep = lab::too_deep(depth, widths.back(), model_.target.n_ctx);
    if (!deep.empty()) throw UsageError(deep);
  }
}

Status CalibrateCommand::measure(Terminal& terminal, lab::Calibration& result) const {
  LocalSetup setup{.target = plan_.target};
  setup.runtime.slots = slots_;
  setup.loader.refresh_costs = refresh_;
  setup.loader.probe_budget_ms = 1e12;  // all the time that it needs
  if (model_.draft_model) setup.draft = plan_.draft;
  OUTRIDER_ASSIGN_OR_RETURN(std::unique_ptr<LocalRuntime> local,
                            LocalRuntime::open(setup, terminal));
  local->print_warnings(CompletionRequest{.width = plan_.target.widest});
  OUTRIDER_RETURN_IF_ERROR(lab::measure_models(local->harness(), plan_, result));
  local.reset();  // two copies of a large model may not fit into memory
  OUTRIDER_RETURN_IF_ERROR(lab::measure_machine(plan_, terminal.watcher(), result));
  if (!lab::wants_stock_curve(result)) return Status();
  LocalSetup stock{.target = plan_.target};
  stock.target->kernels = KernelChoice::kStock;
  stock.target->exact = ExactMode::kOff;  // what their bits cost is not asked for
  stock.loader.measure_costs = false;
  stock.loader.probe_budget_ms = 1.0;  // only its times are asked for
  stock.loader.cache_folder = std::filesystem::path();
  OUTRIDER_ASSIGN_OR_RETURN(local, LocalRuntime::open(stock, terminal));
  return lab::measure_stock(local->harness(), plan_, result);
}

// What loading keeps is half of what the command is for, and loading does not fail for want of it.
Status check_kept() {
  const std::filesystem::path folder = llama::default_cache_folder();
  const Status possible = folder.empty()
                              ? not_found("there is no folder for it; OUTRIDER_CACHE names one")
                              : check_cache_file(folder / "costs" / "check");
  return possible.with_context("what was measured cannot be kept");
}

Result<int> CalibrateCommand::run() {
  if (model_.draft_model && model_.draft_name != kDraftModelName) {
    return unsupported("'" + *model_.draft_model + "' is a trained head (" +
                       std::string(model_.draft_name) +
                       "), whose passes cannot be measured apart from a text that the target "
                       "reads; leave it out (bench says what it gains)");
  }
  // Models of the hub are files now.
  if (plot_) OUTRIDER_RETURN_IF_ERROR(check_not_read(plot_file()));
  plan_.target = target_options(model_);
  plan_.target.widest = std::max(kOpenedWidth, plan_.widths.back());
  if (model_.draft_model) plan_.draft = draft_options(model_);
  lab::Calibration result;
  result.machine = this_machine();
  result.command = command_line();
  const Status measured = measure(watch(), result);
  if (result.curves.empty()) return measured;
  OUTRIDER_RETURN_IF_ERROR(
      print(lab::calibration_json(result), lab::calibration_table(result)).status());
  const Status drawn = plot_ ? write_whole_file(*plot_, lab::calibration_plot(result)) : Status();
  OUTRIDER_RETURN_IF_ERROR(measured);
  OUTRIDER_RETURN_IF_ERROR(drawn.with_context("--plot"));
  OUTRIDER_RETURN_IF_ERROR(check_kept());
  return kDone;
}

}  // namespace

std::unique_ptr<Command> make_calibrate_command() { return std::make_unique<CalibrateCommand>(); }

}  // namespace outrider::tools
