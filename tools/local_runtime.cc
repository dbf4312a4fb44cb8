#include "tools/local_runtime.h"

#include <filesystem>
#include <utility>

#include "draft/drafter_table.h"
#include "tools/options/field_words.h"
#include "tools/report.h"

namespace outrider::tools {
namespace {

constexpr std::int64_t kProgressMs = 100;  // between two looks at how far it is

LlamaLoaderOptions loader_options(const LocalSetup& setup, Terminal& terminal) {
  LlamaLoaderOptions how = setup.loader;
  how.log = terminal.log;
  how.probe_progress = [&bar = terminal.progress](double f) {
    bar.update("checking exactness", f);
  };
  return how;
}

// Of a target that takes fewer tokens in a step than `request` may ask for; empty: nothing.
std::string width_warning(const Target& target, const CompletionRequest& request) {
  const Capabilities& caps = target.capabilities();
  const std::int32_t width = opened_width(request);
  if (request.width == 1 || !request.speculative || caps.max_width >= width) return "";
  if (request.width == kAutoWidth && caps.max_width > 1) return "";  // the planner's to choose
  std::string limit = "'" + target.info().path + "' takes at most " +
                      std::to_string(caps.max_width) +
                      (caps.max_width == 1 ? " token" : " tokens") + " in a step here";
  if (caps.n_batch < width && caps.max_width == caps.n_batch) {
    limit = "--batch " + std::to_string(caps.n_batch) + " leaves no room for wider steps";
  } else if (caps.max_width == 1 && !caps.rollback_reason.empty()) {
    limit = in_options(caps.rollback_reason);
  }
  if (caps.max_width == 1) return "speculation is off: " + limit;
  return limit + ", so the width is " + std::to_string(caps.max_width) + ", not " +
         std::to_string(width);
}

}  // namespace

LocalSetup setup_for(const RequestArguments& a, const ModelArguments& model) {
  const DrafterPlan drafters = chosen_drafters(a, model);
  LocalSetup setup{.target = target_options(model)};
  setup.target->widest = opened_width(a.request);
  setup.loader.speculation = !drafters.empty();
  setup.loader.measure_costs = !drafters.empty() && a.request.width == kAutoWidth;
  if (!a.request.drafters.empty() && !mentions_own_head(drafters)) {
    setup.target->mtp = HeadChoice::kOff;
  }
  if (mentions_draft(drafters)) setup.draft = draft_options(model);
  setup.files = files_to_read(a.files, drafters);
  setup.request = a.request;
  return setup;
}

LocalRuntime::LocalRuntime(const LocalSetup& setup, Terminal& terminal)
    : terminal_(terminal), loader_(loader_options(setup, terminal)) {}

Result<std::unique_ptr<LocalRuntime>> LocalRuntime::open(
    const LocalSetup& setup, Terminal& terminal, const std::function<void(Runtime&)>& created) {
  std::unique_ptr<LocalRuntime> local(new LocalRuntime(setup, terminal));
  OUTRIDER_RETURN_IF_ERROR(prepare_folders(setup.runtime));
  RuntimeOptions options = setup.runtime;
  options.not_kept = print_not_kept;
  OUTRIDER_ASSIGN_OR_RETURN(local->runtime_, Runtime::create(options, local->loader_));
  if (created) created(*local->runtime_);
  if (setup.target) {
    OUTRIDER_RETURN_IF_ERROR(local->load(*setup.target, setup.draft));
    // Said before anything is answered, or measured for minutes.
    OUTRIDER_RETURN_IF_ERROR(check_lone_head(setup.request, local->target()));
  }
  OUTRIDER_RETURN_IF_ERROR(local->attach(setup.files));
  return local;
}

Status LocalRuntime::load(const ModelOptions& target, const std::optional<ModelOptions>& draft) {
  OUTRIDER_RETURN_IF_ERROR(runtime_->load(ModelRole::kTarget, target, draft));
  bool is_cancelled = false;
  do {
    const RuntimeStatus status = runtime_->status();
    const ModelStatus& loading =
        status.target.state == ModelState::kLoading ? status.target : status.draft;
    if (!loading.path.empty()) {
      const std::string file = std::filesystem::path(loading.path).filename().string();
      terminal_.progress.update("loading " + file, loading.progress);
    }
    if (!terminal_.signals.raised() || is_cancelled) continue;
    (void)runtime_->cancel_load(ModelRole::kTarget);  // not found: it is done already
    (void)runtime_->cancel_load(ModelRole::kDraft);
    is_cancelled = true;
  } while (!runtime_->wait_loaded(kProgressMs));
  terminal_.progress.clear();
  target_ = runtime_->target();
  const RuntimeStatus status = runtime_->status();
  for (const ModelRole role : {ModelRole::kTarget, ModelRole::kDraft}) {
    const ModelStatus& loaded = role == ModelRole::kTarget ? status.target : status.draft;
    OUTRIDER_RETURN_IF_ERROR(in_options(loaded.error, role));
    for (const std::string& note : loaded.notes) {
      warnings_.push_back("'" + loaded.path + "': " + in_options(note, role));
    }
  }
  return Status();
}

Status LocalRuntime::attach(const std::vector<DrafterFile>& files) {
  for (const DrafterFile& file : files) {
    const Status asked = runtime_->attach(file);
    OUTRIDER_RETURN_IF_ERROR(asked.field().empty() ? asked : asked.spelled(file_option(file)));
  }
  (void)runtime_->wait_loaded(-1);
  for (const DrafterStatus& drafter : runtime_->status().drafters) {
    for (const DrafterFileStatus& file : drafter.files) {
      if (!file.error.ok()) return file.error.with_context(file_option(file.file));
    }
  }
  return Status();
}

void LocalRuntime::print_warnings(const std::optional<CompletionRequest>& request) const {
  for (const std::string& warning : warnings_) print_warning(warning);
  const std::string narrow = request ? width_warning(target(), *request) : "";
  if (!narrow.empty()) print_warning(narrow);
}

void LocalRuntime::print_template_warning() const {
  const std::string warning = no_template_warning(target());
  if (!warning.empty()) print_warning(warning);
}

}  // namespace outrider::tools
